// Makes a Loop of a formula for one element. Only for ISA sources.
//
//   Registrar ops(table);
//   ops.unary<Ints, Floats>("square", [](auto x) { return x * x; });
//   ops.add<1, 1, Floats>("leaky_relu", [](auto x, const auto* p) { return x > 0 ? x : x * p[0]; });
//
// One dense loop over whole vectors is compiled per formula and type. A remainder is padded, and any other layout is
// packed into buffers, to meet the same code: this keeps the binary small, and gives an element the same bits whatever
// the strides and the length. A formula on float also serves Float16 and BFloat16, widened on the way in and rounded
// on the way out.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include "half.h"
#include "loop_table.h"

namespace rl {
namespace RL_ISA {

template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  constexpr Complex(T real, T imaginary = 0) : re(real), im(imaginary) {}
};
template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<Complex<T>> : std::true_type {};

// ---- Types in memory ----

// How an element is kept in memory: so many bytes, or a half that is computed as a float.
enum class Cell : uint8_t { Bytes1, Bytes2, Bytes4, Bytes8, Bytes16, Half, BHalf };

constexpr int64_t memory_size(Cell c) { return c >= Cell::Half ? 2 : int64_t{1} << static_cast<int>(c); }
constexpr int64_t buffer_size(Cell c) { return c >= Cell::Half ? 4 : memory_size(c); }

template <class T>
constexpr Cell cell_of() {
  return sizeof(T) == 1   ? Cell::Bytes1
         : sizeof(T) == 2 ? Cell::Bytes2
         : sizeof(T) == 4 ? Cell::Bytes4
         : sizeof(T) == 8 ? Cell::Bytes8
                          : Cell::Bytes16;
}

template <class T>
constexpr DType dtype_of() {
  using std::is_same_v;
  return is_same_v<T, uint8_t>           ? DType::UInt8
         : is_same_v<T, int8_t>          ? DType::Int8
         : is_same_v<T, int16_t>         ? DType::Int16
         : is_same_v<T, int32_t>         ? DType::Int32
         : is_same_v<T, int64_t>         ? DType::Int64
         : is_same_v<T, Half>            ? DType::Float16
         : is_same_v<T, BHalf>           ? DType::BFloat16
         : is_same_v<T, float>           ? DType::Float32
         : is_same_v<T, double>          ? DType::Float64
         : is_same_v<T, Complex<float>>  ? DType::Complex64
         : is_same_v<T, Complex<double>> ? DType::Complex128
                                         : DType::Bool;
}

// A byte of a bool tensor may hold any value: it is true where it is not zero.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <class T>
static inline T load(const char* p, int64_t i) {
  const Stored<T> v = reinterpret_cast<const Stored<T>*>(p)[i];
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else {
    return v;
  }
}

// ---- Layouts ----

using Dense = void (*)(char* out, const char* const* in, int64_t n, const void* params);

inline constexpr int kMaxInputs = 3;

// A dense loop over multiples of `block` elements, and its operands: cells[0] is the output's.
struct Plan {
  Dense dense;
  int16_t block;
  int8_t inputs;
  Cell cells[kMaxInputs + 1];
};

inline constexpr int64_t kBufferBytes = 4096;

template <class T>
inline void gather(const char* in, int64_t stride, char* out, int64_t n) {
  T* o = reinterpret_cast<T*>(out);
  if (stride == 0) {
    const T value = *reinterpret_cast<const T*>(in);
    for (int64_t i = 0; i < n; ++i) o[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) o[i] = *reinterpret_cast<const T*>(in + i * stride);
  }
}

template <class T>
inline void scatter(const char* in, char* out, int64_t stride, int64_t n) {
  const T* v = reinterpret_cast<const T*>(in);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(out + i * stride) = v[i];
}

template <class T>
inline void gather_wide(const char* in, int64_t stride, char* out, int64_t n) {
  float* o = reinterpret_cast<float*>(out);
  if (stride == sizeof(T)) return widen(reinterpret_cast<const T*>(in), o, n);
  if (stride == 0) {
    const float value = to_float(*reinterpret_cast<const T*>(in));
    for (int64_t i = 0; i < n; ++i) o[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) o[i] = to_float(*reinterpret_cast<const T*>(in + i * stride));
  }
}

template <class T>
inline void scatter_narrow(const char* in, char* out, int64_t stride, int64_t n) {
  const float* v = reinterpret_cast<const float*>(in);
  if (stride == sizeof(T)) return narrow(v, reinterpret_cast<T*>(out), n);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, Half>) {
      *reinterpret_cast<T*>(out + i * stride) = to_half(v[i]);
    } else {
      *reinterpret_cast<T*>(out + i * stride) = to_bhalf(v[i]);
    }
  }
}

struct Pair64 {
  uint64_t a, b;
};

inline void gather_cells(Cell cell, const char* in, int64_t stride, char* out, int64_t n) {
  switch (cell) {
    case Cell::Bytes1: return gather<uint8_t>(in, stride, out, n);
    case Cell::Bytes2: return gather<uint16_t>(in, stride, out, n);
    case Cell::Bytes4: return gather<uint32_t>(in, stride, out, n);
    case Cell::Bytes8: return gather<uint64_t>(in, stride, out, n);
    case Cell::Bytes16: return gather<Pair64>(in, stride, out, n);
    case Cell::Half: return gather_wide<Half>(in, stride, out, n);
    case Cell::BHalf: return gather_wide<BHalf>(in, stride, out, n);
  }
}

inline void scatter_cells(Cell cell, const char* in, char* out, int64_t stride, int64_t n) {
  switch (cell) {
    case Cell::Bytes1: return scatter<uint8_t>(in, out, stride, n);
    case Cell::Bytes2: return scatter<uint16_t>(in, out, stride, n);
    case Cell::Bytes4: return scatter<uint32_t>(in, out, stride, n);
    case Cell::Bytes8: return scatter<uint64_t>(in, out, stride, n);
    case Cell::Bytes16: return scatter<Pair64>(in, out, stride, n);
    case Cell::Half: return scatter_narrow<Half>(in, out, stride, n);
    case Cell::BHalf: return scatter_narrow<BHalf>(in, out, stride, n);
  }
}

// Dense operands of any length. The remainder is padded with copies of its first element, which is safe to compute.
inline void run_dense(const Plan& plan, char* out, const char* const* in, int64_t n, const void* params) {
  const int64_t whole = n & -int64_t{plan.block};
  if (whole != 0) plan.dense(out, in, whole, params);
  if (whole == n) return;
  alignas(64) char buffers[kMaxInputs + 1][64 * 16];
  const char* padded[kMaxInputs] = {};
  for (int k = 0; k < plan.inputs; ++k) {
    const int64_t size = buffer_size(plan.cells[k + 1]);
    const Cell cell = size == 4 ? Cell::Bytes4 : plan.cells[k + 1];
    gather_cells(cell, in[k] + whole * size, 0, buffers[k], plan.block);
    __builtin_memcpy(buffers[k], in[k] + whole * size, (n - whole) * size);
    padded[k] = buffers[k];
  }
  const int64_t size = buffer_size(plan.cells[0]);
  plan.dense(buffers[kMaxInputs], padded, plan.block, params);
  __builtin_memcpy(out + whole * size, buffers[kMaxInputs], (n - whole) * size);
}

// Operands of any stride.
inline void run_packed(const Plan& plan, char* const* data, const int64_t* strides, int64_t n, const void* params) {
  alignas(64) char buffers[kMaxInputs + 1][kBufferBytes];
  int64_t widest = 1;
  bool direct[kMaxInputs + 1];
  for (int k = 0; k <= plan.inputs; ++k) {
    const Cell cell = plan.cells[k];
    if (buffer_size(cell) > widest) widest = buffer_size(cell);
    direct[k] = cell < Cell::Half && strides[k] == memory_size(cell);
  }
  const int64_t chunk = kBufferBytes / widest;
  for (int k = 1; k <= plan.inputs; ++k) {
    if (strides[k] == 0) gather_cells(plan.cells[k], data[k], 0, buffers[k], n < chunk ? n : chunk);
  }
  for (int64_t i = 0; i < n; i += chunk) {
    const int64_t m = n - i < chunk ? n - i : chunk;
    const char* in[kMaxInputs] = {};
    for (int k = 1; k <= plan.inputs; ++k) {
      const char* p = data[k] + i * strides[k];
      if (!direct[k] && strides[k] != 0) gather_cells(plan.cells[k], p, strides[k], buffers[k], m);
      in[k - 1] = direct[k] ? p : buffers[k];
    }
    char* out = data[0] + i * strides[0];
    run_dense(plan, direct[0] ? out : buffers[0], in, m, params);
    if (!direct[0]) scatter_cells(plan.cells[0], buffers[0], out, strides[0], m);
  }
}

inline void run_plan(const Plan& plan, char* const* data, const int64_t* strides, int64_t n, const void* params) {
  bool dense = true;
  for (int k = 0; k <= plan.inputs; ++k)
    dense &= plan.cells[k] < Cell::Half && strides[k] == memory_size(plan.cells[k]);
  if (dense) return run_dense(plan, data[0], data + 1, n, params);
  run_packed(plan, data, strides, n, params);
}

// ---- From a formula to a loop ----

template <class... T>
struct Types {};

using Ints = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Floats = Types<float, double>;  // and with float, Half and BHalf
using Complexes = Types<Complex<float>, Complex<double>>;
using Bools = Types<bool>;

struct Nothing {};  // also the type of absent parameters

// A lambda without captures holds nothing, so it can be made where only its type is known.
template <class F>
static inline F formula() {
  static_assert(std::is_empty_v<F>, "a formula captures nothing: its parameters come through `params`");
  return __builtin_bit_cast(F, Nothing{});
}

// How many parameters a formula takes; kRaw: it takes the pointer itself, as const void*.
inline constexpr int kRaw = -1;

// A local copy of the parameters, which the stores of a loop cannot change.
template <int kParams, class P>
struct Params {
  P values[kParams];
  explicit Params(const void* from) {
    for (int k = 0; k < kParams; ++k) values[k] = static_cast<const P*>(from)[k];
  }
};
template <class P>
struct Params<0, P> {
  explicit Params(const void*) {}
};
template <class P>
struct Params<kRaw, P> {
  const void* values;
  explicit Params(const void* from) : values(from) {}
};

template <class F, int kParams, class P, class... A>
static inline auto evaluate(const Params<kParams, P>& params, A... a) {
  if constexpr (kParams == 0) {
    return formula<F>()(a...);
  } else {
    return formula<F>()(a..., params.values);
  }
}

// Formulas that are right for most values only come with a measure, which is below a limit for those, and with another
// formula that serves the rest.
struct NoGuard {
  static constexpr bool kGuards = false;
};
template <class M, class Slow>
struct Guard {
  static constexpr bool kGuards = true;
  using Measure = M;
  using Serve = Slow;
};

inline constexpr int64_t kGuardBlock = 2048;

// F(A...) -> R for every element. P is the type of the parameters.
template <class F, class G, class R, int kParams, class P, class... A>
struct Kernel {
  using Values = Params<kParams, P>;
  static constexpr int kInputs = sizeof...(A);

  // Whole vectors of 64 bytes of the narrowest operand.
  static constexpr int64_t narrowest() {
    int64_t size = sizeof(R);
    for (int64_t s : {static_cast<int64_t>(sizeof(A))...}) size = s < size ? s : size;
    return size;
  }
  static constexpr int64_t kBlock = 64 / narrowest();

  template <size_t... K>
  static inline void loop(char* out, const char* const* in, int64_t n, const Values& params,
                          std::index_sequence<K...>) {
    auto* o = reinterpret_cast<Stored<R>*>(out);
    const char* const source[] = {in[K]...};
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<R>(evaluate<F>(params, load<A>(source[K], i)...));
  }

  // The formula for all elements, then `Serve` for the rare ones, whose inputs must still be there. R is their type.
  template <size_t... K>
  static inline void guarded_loop(char* out, const char* const* in, int64_t n, std::index_sequence<K...>) {
    using Measure = typename G::Measure;
    using UInt = decltype(Measure()(A()...));
    const UInt limit = Measure::template limit<R>();
    R buffer[kGuardBlock];
    const bool in_place = ((in[K] == out) | ...);
    R* o = in_place ? buffer : reinterpret_cast<R*>(out);
    const char* const source[] = {in[K]...};
    UInt most = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const UInt measure = Measure()(load<A>(source[K], i)...);
      most = measure > most ? measure : most;
      o[i] = formula<F>()(load<A>(source[K], i)...);
    }
    if (__builtin_expect(most >= limit, 0)) {
      for (int64_t i = 0; i < n; ++i) {
        if (Measure()(load<A>(source[K], i)...) >= limit) {
          o[i] = formula<typename G::Serve>()(load<A>(source[K], i)...);
        }
      }
    }
    if (in_place) __builtin_memcpy(out, buffer, n * sizeof(R));
  }

  // n is a multiple of kBlock, which spares the remainder of the loop.
  __attribute__((flatten)) static void blocks(char* out, const char* const* in, int64_t n, const void* params) {
    constexpr auto kAll = std::index_sequence_for<A...>();
    if constexpr (G::kGuards) {
      for (int64_t i = 0; i < n; i += kGuardBlock) {
        const char* at[kInputs] = {};
        for (int k = 0; k < kInputs; ++k) at[k] = in[k] + i * int64_t{sizeof(R)};
        const int64_t m = n - i < kGuardBlock ? n - i : kGuardBlock;
        guarded_loop(out + i * int64_t{sizeof(R)}, at, m & -kBlock, kAll);
      }
    } else {
      loop(out, in, n & -kBlock, Values(params), kAll);
    }
  }

  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan{blocks, kBlock, kInputs, {cell_of<R>(), cell_of<A>()...}};
    run_plan(kPlan, data, strides, n, params);
  }

  // For Half and BHalf: `kHalf` stands for float in memory, but for input kWide, which is float there too.
  template <Cell kHalf, int kWide = -1>
  static void run_half(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    static constexpr Plan kPlan = half_plan<kHalf, kWide>(std::index_sequence_for<A...>());
    run_packed(kPlan, data, strides, n, params);
  }

 private:
  template <Cell kHalf, int kWide, size_t... K>
  static constexpr Plan half_plan(std::index_sequence<K...>) {
    return {blocks,
            kBlock,
            kInputs,
            {std::is_same_v<R, float> ? kHalf : cell_of<R>(),
             (std::is_same_v<A, float> && kWide != static_cast<int>(K) ? kHalf : cell_of<A>())...}};
  }
};

// A binary kernel for the commonest ops and dtypes: no detour for short operands, nor where one of them is one value.
template <class F, class R, class T>
struct HotKernel : Kernel<F, NoGuard, R, 0, T, T, T> {
  enum class Single { None, First, Second };

  template <Single kSingle>
  __attribute__((flatten)) static void dense(char* out, const char* const* in, int64_t n, const void*) {
    auto* o = reinterpret_cast<Stored<R>*>(out);
    const char *a = in[0], *b = in[1];
    if constexpr (kSingle == Single::None) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) o[i] = formula<F>()(load<T>(a, i), load<T>(b, i));
    } else {
      const T value = load<T>(kSingle == Single::First ? a : b, 0);
      const char* other = kSingle == Single::First ? b : a;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const T x = load<T>(other, i);
        o[i] = kSingle == Single::First ? formula<F>()(value, x) : formula<F>()(x, value);
      }
    }
  }

  __attribute__((noinline)) static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    constexpr int64_t kOut = sizeof(R), kIn = sizeof(T);
    if (strides[0] == kOut) {
      if (strides[1] == kIn && strides[2] == kIn) return dense<Single::None>(data[0], data + 1, n, params);
      if (strides[1] == kIn && strides[2] == 0) return dense<Single::Second>(data[0], data + 1, n, params);
      if (strides[1] == 0 && strides[2] == kIn) return dense<Single::First>(data[0], data + 1, n, params);
    }
    static constexpr Plan kPlan{dense<Single::None>, 1, 2, {cell_of<R>(), cell_of<T>(), cell_of<T>()}};
    run_packed(kPlan, data, strides, n, params);
  }
};

// K with its two inputs exchanged.
template <class K>
struct Swapped {
  static void run(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    char* const other[] = {data[0], data[2], data[1]};
    const int64_t other_strides[] = {strides[0], strides[2], strides[1]};
    K::run(other, other_strides, n, params);
  }
  template <Cell kHalf>
  static void run_half(char* const* data, const int64_t* strides, int64_t n, const void* params) {
    char* const other[] = {data[0], data[2], data[1]};
    const int64_t other_strides[] = {strides[0], strides[2], strides[1]};
    K::template run_half<kHalf>(other, other_strides, n, params);
  }
};

// The type of a formula's result as it is stored: C++ promotes small integers, which we undo.
template <class T, class Returned>
using Result = std::conditional_t<std::is_same_v<Returned, bool> || IsComplex<T>::value, Returned, T>;

template <class F, class G, int kParams, class T, class... A>
using KernelOf = Kernel<F, G, Result<T, decltype(evaluate<F>(Params<kParams, T>(nullptr), A()...))>, kParams, T, A...>;

// The types for which hot kernels pay; halves share the one of float.
template <class T>
inline constexpr bool kIsHot = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int64_t>;

template <class F, class T>
using HotKernelOf = std::conditional_t<kIsHot<T>, HotKernel<F, Result<T, decltype(formula<F>()(T(), T()))>, T>,
                                       KernelOf<F, NoGuard, 0, T, T, T>>;

// Registers formulas under a name for lists of types.
class Registrar {
 public:
  explicit Registrar(LoopTable& table) : table_(table) {}

  // The formula takes kInputs values and, where kParams is not 0, a pointer to the parameters.
  template <int kInputs, int kParams, class... Lists, class F>
  void add(const char* op, F) {
    (each<F, NoGuard, kParams, kInputs>(op, Lists()), ...);
  }
  template <class... Lists, class F>
  void unary(const char* op, F f) {
    add<1, 0, Lists...>(op, f);
  }
  template <class... Lists, class F>
  void binary(const char* op, F f) {
    add<2, 0, Lists...>(op, f);
  }
  template <class... Lists, class F>
  void ternary(const char* op, F f) {
    add<3, 0, Lists...>(op, f);
  }
  template <class... Lists, class F>
  void hot(const char* op, F) {
    (each_hot<F>(op, Lists()), ...);
  }
  // `swapped` is op with its inputs exchanged.
  template <class... Lists, class F>
  void hot(const char* op, const char* swapped, F f) {
    hot<Lists...>(op, f);
    (each_swapped<F>(swapped, Lists()), ...);
  }
  // Where the measure of the inputs is not below its limit, the formula does not hold and `slow` is called.
  template <int kInputs, class Measure, class... Lists, class F, class Slow>
  void guarded(const char* op, F, Slow) {
    (each<F, Guard<Measure, Slow>, 0, kInputs>(op, Lists()), ...);
  }

  // Binary loops of Half and BHalf whose input kWide is a float in memory.
  template <int kWide, class G = NoGuard, class F>
  void beside_float(const char* op, F) {
    using K = KernelOf<F, G, 0, float, float, float>;
    table_.set(op, DType::Float16, K::template run_half<Cell::Half, kWide>);
    table_.set(op, DType::BFloat16, K::template run_half<Cell::BHalf, kWide>);
  }

  template <class K, class T>
  void kernel(const char* op) {
    table_.set(op, dtype_of<T>(), K::run);
    if constexpr (std::is_same_v<T, float>) {
      table_.set(op, DType::Float16, K::template run_half<Cell::Half>);
      table_.set(op, DType::BFloat16, K::template run_half<Cell::BHalf>);
    }
  }

 private:
  template <class F, class G, int kParams, int kInputs, class... T>
  void each(const char* op, Types<T...>) {
    (one<F, G, kParams, kInputs, T>(op), ...);
  }

  template <class F, class... T>
  void each_hot(const char* op, Types<T...>) {
    (kernel<HotKernelOf<F, T>, T>(op), ...);
  }

  template <class F, class... T>
  void each_swapped(const char* op, Types<T...>) {
    (kernel<Swapped<HotKernelOf<F, T>>, T>(op), ...);
  }

  template <class F, class G, int kParams, int kInputs, class T>
  void one(const char* op) {
    if constexpr (kInputs == 1) {
      kernel<KernelOf<F, G, kParams, T, T>, T>(op);
    } else if constexpr (kInputs == 2) {
      kernel<KernelOf<F, G, kParams, T, T, T>, T>(op);
    } else {
      kernel<KernelOf<F, G, kParams, T, T, T, T>, T>(op);
    }
  }

  LoopTable& table_;
};

}  // namespace RL_ISA
}  // namespace rl
