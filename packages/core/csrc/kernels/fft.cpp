#include "fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "../allocator.h"
#include "../determinism.h"
#include "../parallel.h"

namespace rl {
namespace {

constexpr int kLargestPrime = 31;    // above, Bluestein's convolution is faster than the definition
constexpr size_t kPlans = 64;        // that are kept
constexpr int64_t kLongest = 65536;  // signals side by side that fit the cache
constexpr int64_t kLong = 256;       // points from which the parts of a signal fill the lanes
constexpr int64_t kGrain = 4096;     // points that are worth a thread

const FftTable& table() {
  static const FftTable table = [] {
    FftTable filled;
    RL_ISA_CALL(fill_fft, filled);
    return filled;
  }();
  return table;
}

template <class T>
const FftLoops<T>& loops() {
  if constexpr (sizeof(T) == 4) {
    return table().floats;
  } else {
    return table().doubles;
  }
}

template <class T>
constexpr int64_t kLanes = kFftBytes / static_cast<int64_t>(sizeof(T));

struct Memory : Scratch {
  explicit Memory(size_t nbytes) : Scratch(nbytes) {
    if (as<void>() == nullptr) throw std::bad_alloc();
  }
};

template <class T>
size_t scratch_size(const FftPlan<T>& plan, int64_t n, int64_t count) {
  return static_cast<size_t>(fft_scratch(plan, n, static_cast<int>(count)));
}

// exp(-2 pi i k / n) as a pair, the angle brought to an eighth of the circle.
template <class T>
void push_root(std::vector<T>& to, int64_t k, int64_t n) {
  k %= n;
  const int64_t eighth = 8 * k / n;
  const int64_t quarter = (eighth + 1) / 2;
  const double angle = 2 * M_PI * (static_cast<double>(8 * k - 2 * quarter * n) / 8) / static_cast<double>(n);
  const double c = std::cos(angle), s = std::sin(angle);
  const double cosines[] = {c, -s, -c, s, c}, sines[] = {s, c, -s, -c, s};
  to.push_back(static_cast<T>(cosines[quarter]));
  to.push_back(static_cast<T>(-sines[quarter]));
}

template <class T>
struct Plan {
  std::vector<int> factors;
  std::vector<T> twiddles, roots, chirps, spectrum;
  std::vector<T> turns;    // for real signals of twice the size
  int64_t rows = 0;        // of the matrix that a long signal is transformed as, or 0
  std::vector<T> between;  // what its elements are multiplied by between columns and rows, see FftLines
  std::shared_ptr<const Plan> chirp;
  FftPlan<T> view{};
};

template <class T>
std::shared_ptr<const Plan<T>> plan_for(int64_t n);

std::vector<int> factors_of(int64_t n) {
  std::vector<int> factors;
  while (n % 4 == 0) {
    factors.push_back(4);
    n /= 4;
  }
  for (int p = 2; n > 1 && p <= kLargestPrime; ++p) {
    while (n % p == 0) {
      factors.push_back(p);
      n /= p;
    }
  }
  if (n > 1) factors.clear();  // a larger prime is left
  return factors;
}

bool is_smooth(int64_t n) {
  for (int p : {2, 3, 5})
    while (n % p == 0) n /= p;
  return n == 1;
}

template <class T>
void plan_passes(Plan<T>& plan, int64_t n) {
  int64_t l1 = 1;
  for (int p : plan.factors) {
    const int64_t ido = n / (l1 * p);
    for (int64_t i = 0; i < ido; ++i)
      for (int j = 1; j < p; ++j) push_root(plan.twiddles, j * l1 * i, n);
    if (p > 5)
      for (int k = 0; k < p; ++k) {
        push_root(plan.roots, k, p);
        plan.roots.back() = -plan.roots.back();
      }
    l1 *= p;
  }
}

template <class T>
void plan_convolution(Plan<T>& plan, int64_t n) {
  int64_t m = 2 * n - 1;
  while (!is_smooth(m)) ++m;
  plan.chirp = plan_for<T>(m);
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    push_root(plan.chirps, square, 2 * n);
    square = (square + 2 * k + 1) % (2 * n);
  }
  std::vector<T> wave(2 * m, T(0));
  for (int64_t k = 0; k < n; ++k)
    for (int64_t at : {k, (m - k) % m}) {
      wave[2 * at] = plan.chirps[2 * k] / static_cast<T>(m);
      wave[2 * at + 1] = -plan.chirps[2 * k + 1] / static_cast<T>(m);
    }
  plan.spectrum.resize(2 * m);
  const int64_t zero = 0;
  const FftLines<T> lines{Fft::Forward, m,       1,      wave.data(), plan.spectrum.data(), &zero, &zero, 1, 1,
                          T(1),         nullptr, nullptr};
  const Memory scratch(scratch_size(plan.chirp->view, m, 1));
  loops<T>().run(plan.chirp->view, lines, scratch.as<void>());
}

// How many of the first factors make columns that are about as long as the rows.
template <class T>
void plan_halves(FftPlan<T>& plan) {
  plan.rows = 1;
  int64_t rows = 1;
  for (int f = 0; f < plan.count; ++f) {
    rows *= plan.factors[f];
    if (std::max(rows, plan.n / rows) >= std::max(plan.rows, plan.n / plan.rows)) break;
    plan.rows = rows;
    plan.head = f + 1;
  }
}

int64_t between_points(int64_t rows) { return kFftFine + (rows - 1) / kFftFine + 1; }

// The divisor nearest to the root that leaves both sides enough to fill all lanes.
template <class T>
void plan_matrix(Plan<T>& plan, int64_t n) {
  int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (rows >= kLanes<T> && n % rows != 0) --rows;
  if (rows < kLanes<T>) return;
  plan.rows = rows;
  const int64_t columns = n / rows;
  std::vector<T> pairs;
  for (int64_t j = 0; j < columns; j += kLanes<T>)
    for (int64_t point = 0; point < between_points(rows); ++point) {
      const int64_t k = point < kFftFine ? point : (point - kFftFine) * kFftFine;
      pairs.clear();
      for (int64_t lane = 0; lane < kLanes<T>; ++lane) push_root(pairs, k * (j + lane), n);
      for (int part = 0; part < 2; ++part)
        for (int64_t lane = 0; lane < kLanes<T>; ++lane) plan.between.push_back(pairs[2 * lane + part]);
    }
}

template <class T>
std::shared_ptr<const Plan<T>> make_plan(int64_t n) {
  auto plan = std::make_shared<Plan<T>>();
  plan->factors = factors_of(n);
  if (n == 1 || !plan->factors.empty()) {
    plan_passes(*plan, n);
    if (n >= kLong) plan_matrix(*plan, n);
  } else {
    plan_convolution(*plan, n);
  }
  for (int64_t k = 0; k <= n; ++k) push_root(plan->turns, k, 2 * n);
  plan->view = {n,
                static_cast<int>(plan->factors.size()),
                0,
                1,
                plan->factors.data(),
                plan->twiddles.data(),
                plan->roots.data(),
                plan->chirp ? &plan->chirp->view : nullptr,
                plan->chirps.data(),
                plan->spectrum.data()};
  plan_halves(plan->view);
  return plan;
}

template <class T>
std::shared_ptr<const Plan<T>> plan_for(int64_t n) {
  static auto* plans = new std::unordered_map<int64_t, std::shared_ptr<const Plan<T>>>();  // outlives all threads
  static auto* mutex = new std::mutex();
  {
    const std::lock_guard<std::mutex> lock(*mutex);
    const auto found = plans->find(n);
    if (found != plans->end()) return found->second;
  }
  auto plan = make_plan<T>(n);
  const std::lock_guard<std::mutex> lock(*mutex);
  if (plans->size() >= kPlans) plans->clear();
  plans->emplace(n, plan);
  return plan;
}

// Bailey's way (1990): the signal as a matrix, its columns transformed, turned, then its rows.
template <class T>
void run_long(const Plan<T>& plan, Fft kind, const T* in, T* out, int64_t n, int64_t stride, double scale) {
  const int64_t rows = plan.rows, columns = n / rows;
  const int64_t pitch = columns + kLanes<T>;  // off the powers of two, which would fill few sets of the caches
  const auto down = plan_for<T>(rows), across = plan_for<T>(columns);
  const Memory matrix(static_cast<size_t>(2 * rows * pitch) * sizeof(T));
  T* const middle = matrix.as<T>();
  // Lines k of `count`, at k times a distance.
  const auto pass = [&](const Plan<T>& part, int64_t count, FftLines<T> job, int64_t in_step, int64_t out_step) {
    const int64_t groups = (count + kLanes<T> - 1) / kLanes<T>;
    parallel_for(0, groups, std::max<int64_t>(1, kGrain / (job.n * kLanes<T>)), [&](int64_t begin, int64_t end) {
      const Memory scratch(scratch_size(part.view, job.n, kLanes<T>));
      for (int64_t g = begin; g < end; ++g) {
        FftLines<T> lines = job;
        int64_t in_at[kLanes<T>], out_at[kLanes<T>];
        lines.count = static_cast<int>(std::min(kLanes<T>, count - g * kLanes<T>));
        for (int l = 0; l < lines.count; ++l) {
          in_at[l] = (g * kLanes<T> + l) * in_step;
          out_at[l] = (g * kLanes<T> + l) * out_step;
        }
        lines.in_at = in_at;
        lines.out_at = out_at;
        if (job.factors != nullptr) lines.factors = job.factors + g * between_points(rows) * 2 * kLanes<T>;
        loops<T>().run(part.view, lines, scratch.as<void>());
      }
    });
  };
  pass(*down, columns,
       {kind, rows, 0, in, middle, nullptr, nullptr, columns * stride, pitch, T(1), nullptr, plan.between.data()},
       stride, 1);
  pass(*across, rows,
       {kind, columns, 0, middle, out, nullptr, nullptr, 1, rows * stride, static_cast<T>(scale), nullptr, nullptr},
       pitch, stride);
}

// A long real signal of even size: its neighbours in pairs are a complex one of half the size.
template <class T>
void run_long_real(const Plan<T>& plan, Fft kind, const T* in, T* out, int64_t n, double scale) {
  using C = std::complex<T>;
  const int64_t half = n / 2;
  const Memory memory(static_cast<size_t>(n) * sizeof(T));
  auto* const z = memory.as<C>();
  const auto* turns = reinterpret_cast<const C*>(plan.turns.data());
  const auto turned = [](C a, C w) {
    return C(a.real() * w.real() - a.imag() * w.imag(), a.real() * w.imag() + a.imag() * w.real());
  };
  if (kind == Fft::ToReal) {
    const auto* x = reinterpret_cast<const C*>(in);
    parallel_for(0, half, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const C a = k == 0 ? x[0].real() : x[k], b = k == 0 ? x[half].real() : std::conj(x[half - k]);
        const C turn = turned(a - b, std::conj(turns[k]));
        z[k] = a + b + C(-turn.imag(), turn.real());
      }
    });
    return run_long(plan, Fft::Backward, memory.as<T>(), out, half, 1, scale);
  }
  run_long(plan, Fft::Forward, in, memory.as<T>(), half, 1, 1);
  auto* y = reinterpret_cast<C*>(out);
  parallel_for(0, half + 1, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const C a = z[k == half ? 0 : k], b = std::conj(z[k == 0 ? 0 : half - k]), turn = turned(a - b, turns[k]);
      y[k] = (a + b + C(turn.imag(), -turn.real())) * static_cast<T>(scale / 2);
      if (kind == Fft::RealWhole && k > 0 && k < half) y[n - k] = std::conj(y[k]);
    }
  });
}

template <class T>
void run(Fft kind, const T* in, T* out, int64_t outer, int64_t n, int64_t inner, double scale) {
  const bool real = kind != Fft::Forward && kind != Fft::Backward;
  const int64_t half = n / 2 + 1;
  const int64_t in_n = kind == Fft::ToReal ? half : n, out_n = kind == Fft::RealHalf ? half : n;
  const auto plan = plan_for<T>(real && n % 2 == 0 ? n / 2 : n);
  const int64_t lines = outer * inner, groups = (lines + kLanes<T> - 1) / kLanes<T>;
  const bool by_count = !g_determinism.batch_invariant;  // the way of a line may depend on how many there are
  if (plan->rows != 0 && ((by_count && lines < kLanes<T>) || n > kLongest) && (!real || (n % 2 == 0 && inner == 1))) {
    parallel_for(0, lines, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        if (real) {
          const int64_t in_pair = kind == Fft::ToReal ? 2 : 1, out_pair = 3 - in_pair;
          run_long_real(*plan, kind, in + in_pair * l * in_n, out + out_pair * l * out_n, n, scale);
        } else {
          const int64_t at = 2 * (l / inner * n * inner + l % inner);
          run_long(*plan, kind, in + at, out + at, n, inner, scale);
        }
      }
    });
    return;
  }
  const int64_t few = n > kLongest ? kLanes<T> : by_count ? kLanes<T> / 4 : 0;  // lines that are better one by one
  const auto run_lines = [&](int64_t first, int count, void* scratch) {
    int64_t in_at[kLanes<T>], out_at[kLanes<T>];
    int64_t o = first / inner, i = first % inner;
    for (int l = 0; l < count; ++l) {
      in_at[l] = o * in_n * inner + i;
      out_at[l] = o * out_n * inner + i;
      if (first + l + 1 < lines && ++i == inner) {
        i = 0;
        ++o;
      }
    }
    const FftLines<T> job{
        kind, n, count, in, out, in_at, out_at, inner, inner, static_cast<T>(scale), plan->turns.data(), nullptr};
    loops<T>().run(plan->view, job, scratch);
  };
  parallel_for(0, groups, std::max<int64_t>(1, kGrain / (n * kLanes<T>)), [&](int64_t begin, int64_t end) {
    const Memory scratch(scratch_size(plan->view, n, lines > few ? kLanes<T> : 1));
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * kLanes<T>, count = std::min(kLanes<T>, lines - first);
      if (count > few) {
        // A line that is alone has a loop of its own: where it must not, it runs as two.
        run_lines(first, static_cast<int>(std::max<int64_t>(count, 2)), scratch.as<void>());
      } else {
        for (int64_t l = 0; l < count; ++l) run_lines(first + l, 1, scratch.as<void>());
      }
    }
  });
}

}  // namespace

void run_fft(Fft kind, DType real, const void* in, void* out, int64_t outer, int64_t n, int64_t inner, double scale) {
  if (real == DType::Float32)
    run(kind, static_cast<const float*>(in), static_cast<float*>(out), outer, n, inner, scale);
  else
    run(kind, static_cast<const double*>(in), static_cast<double*>(out), outer, n, inner, scale);
}

}  // namespace rl
