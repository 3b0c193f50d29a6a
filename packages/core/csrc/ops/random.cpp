// Random tensors. Every device gets the numbers that the CPU draws, so a seed means the same everywhere.
#include "../random/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "../parallel.h"
#include "../random/implicit.h"
#include "ops.h"
#include "view.h"

namespace rl {

namespace {

constexpr int64_t kImplicitGrain = 256;  // derivatives of about a third of a microsecond each

long long ll(int64_t x) { return static_cast<long long>(x); }

const Arg& param(const Call& c, const char* name) {
  for (int i = 0; i < c.op->nparams; ++i)
    if (!std::strcmp(c.op->params[i].name, name)) return c.args[i];
  static const Arg none;
  return none;
}

Generator& generator(const Call& c) { return generator_of(c, param(c, "generator")); }

DType dtype_or(const Call& c, DType otherwise) {
  const Arg& a = param(c, "dtype");
  return a.kind == Kind::DType ? a.dtype : otherwise;
}

// A CPU tensor of t's shape whose elements are in memory as t's are, without gaps: PyTorch draws in that order.
Ref<Tensor> ordered_like(const Tensor* t, DType dtype) {
  Dims order(t->ndim), strides(t->ndim);
  for (int d = 0; d < t->ndim; ++d) order[d] = d;
  std::stable_sort(order.v, order.v + t->ndim, [&](int64_t a, int64_t b) { return t->strides[a] > t->strides[b]; });
  for (int64_t i = t->ndim - 1, step = 1; i >= 0; --i) {
    const int d = static_cast<int>(order[static_cast<int>(i)]);
    strides[d] = step;
    step *= t->sizes[d];
  }
  return empty_strided(t->ndim, t->sizes, strides.v, dtype, {kCPU, -1});
}

// Calls fill(data) for contiguous CPU memory of t's elements in the order of t's memory.
template <class F>
void fill_elements(Tensor* t, F&& fill) {
  if (t->device.type == kMeta || t->numel == 0) return;
  if (t->is_cpu() && t->contiguous()) return fill(t->data);
  Ref<Tensor> drawn = ordered_like(t, t->dtype);
  if (t->is_cpu() && same_geometry(t, drawn.get())) return fill(t->data);
  fill(drawn->data);
  copy_into(t, drawn.get());
}

void check_floating(const Tensor* t, const char* what) {
  if (!is_floating(t->dtype))
    fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", what, legacy_name(t->dtype));
}

// ---- fills; each checks its parameters as PyTorch does

void check_continuous(const Tensor* t, const char* what) {
  if (!is_floating(t->dtype))
    fail(
        PyExc_RuntimeError,
        "%s distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
        what, legacy_name(t->dtype));
}

// Of a complex tensor both parts.
void uniform(Tensor* t, Generator& g, double from, double to) {
  if (!is_complex(t->dtype)) check_floating(t, "check_uniform_bounds");
  if (!(from <= to))
    fail(PyExc_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
  fill_elements(t, [&](char* data) { fill_uniform(g, t->dtype, data, t->numel, from, to); });
}

void normal(Tensor* t, Generator& g, double mean, double std) {
  if (!is_inexact(t->dtype))
    fail(PyExc_NotImplementedError, "\"normal_kernel_cpu\" not implemented for '%s'", legacy_name(t->dtype));
  if (!(std >= 0)) fail(PyExc_RuntimeError, "normal expects std >= 0.0, but found std %g", std);
  fill_elements(t, [&](char* data) { fill_normal(g, t->dtype, data, t->numel, mean, std, !t->contiguous()); });
}

// The integers that a dtype holds, as random_ bounds them; floating dtypes up to where integers are exact.
void integer_limits(DType d, double* low, double* high) {
  switch (d) {
    case DType::Bool: *low = 0, *high = 1; return;
    case DType::UInt8: *low = 0, *high = 255; return;
    case DType::Int8: *low = -128, *high = 127; return;
    case DType::Int16: *low = -32768, *high = 32767; return;
    case DType::Int32: *low = -0x1p31, *high = 0x1p31 - 1; return;
    case DType::Float16: *low = -65504, *high = 65504; return;
    default: *low = -INFINITY, *high = INFINITY; return;
  }
}

// Integers up to 2^precision are exact in a floating dtype.
int precision(DType d) {
  switch (d) {
    case DType::Float16: return 11;
    case DType::BFloat16: return 8;
    case DType::Float32: return 24;
    default: return 53;
  }
}

const char* c_name(DType d) {
  switch (d) {
    case DType::Bool: return "bool";
    case DType::UInt8: return "unsigned char";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short";
    case DType::Int32: return "int";
    case DType::Float16: return "c10::Half";
    case DType::BFloat16: return "c10::BFloat16";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    default: return name(d);
  }
}

// Warns of integers that a floating dtype of `bits` bits of precision rounds.
void warn_unless_exact(const char* what, int64_t value, int bits, DType d) {
  const int64_t highest = int64_t{1} << bits;
  if (value >= -highest && value <= highest) return;
  if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                       "%s is out of bounds [-(2^%d), 2^%d]. Due to precision limitations %s can support discrete "
                       "uniform distribution only within this range.",
                       what, bits, bits, c_name(d)) < 0)
    throw PythonError();
}

// A bound that moves `v` by one integer, if the dtype rounds that to the far side of v, else v itself: `direction` 1
// gives the lowest integer to draw so that no number falls below v, -1 the end so that none reaches v.
int64_t inner_bound(int64_t v, int direction, int bits) {
  const int64_t next = v + direction;
  const uint64_t size = next < 0 ? -static_cast<uint64_t>(next) : static_cast<uint64_t>(next);
  int shift = -bits;
  for (uint64_t left = size; left != 0; left >>= 1) ++shift;
  if (shift <= 0) return v;
  const uint64_t step = uint64_t{1} << shift, rest = size % step;
  const bool up = rest > step / 2 || (rest == step / 2 && size / step % 2 != 0);
  const uint64_t rounded = size - rest + (up ? step : 0);
  if (rounded >> 63 != 0) return v;
  const int64_t value = next < 0 ? -static_cast<int64_t>(rounded) : static_cast<int64_t>(rounded);
  const bool outside = direction > 0 ? value < v : value >= v;
  return outside ? value + direction * static_cast<int64_t>(step) : v;
}

// from <= r < to.
void integers(Tensor* t, Generator& g, int64_t from, int64_t to) {
  if (is_complex(t->dtype))
    fail(PyExc_RuntimeError,
         "check_random_bounds handles only integral, floating-point and boolean types, got dtype %s", name(t->dtype));
  if (from >= to)
    fail(PyExc_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", ll(from),
         ll(to));
  double low, high;
  integer_limits(t->dtype, &low, &high);
  if (static_cast<double>(from) < low || static_cast<double>(from) > high)
    fail(PyExc_RuntimeError, "from is out of bounds for %s. Choose a wider dtype.", c_name(t->dtype));
  if (static_cast<double>(to - 1) < low || static_cast<double>(to - 1) > high)
    fail(PyExc_RuntimeError, "to - 1 is out of bounds for %s. Choose a wider dtype.", c_name(t->dtype));
  if (is_floating(t->dtype)) {
    const int bits = precision(t->dtype);
    warn_unless_exact("from", from, bits, t->dtype);
    warn_unless_exact("to - 1", to - 1, bits, t->dtype);
    from = inner_bound(from, 1, bits);
    to = inner_bound(to, -1, bits);
    if (from >= to)
      fail(PyExc_RuntimeError,
           "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= to=%lld",
           ll(from), ll(to));
  }
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  fill_elements(t, [&](char* data) { fill_random_range(g, t->dtype, data, t->numel, range, from); });
}

// ---- in place

PyObject* self_of(Call& c) { return Py_NewRef(object(c.args[0].tensor)); }

PyObject* uniform_kernel(Call& c) {
  uniform(c.args[0].tensor, generator(c), c.args[1].to_double(), c.args[2].to_double());
  return self_of(c);
}

PyObject* normal_kernel(Call& c) {
  normal(c.args[0].tensor, generator(c), c.args[1].to_double(), c.args[2].to_double());
  return self_of(c);
}

// random_(), random_(to), random_(from, to or None)
PyObject* random_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  Generator& g = generator(c);
  if (is_complex(t->dtype))
    fail(PyExc_NotImplementedError, "\"random_kernel_cpu\" not implemented for '%s'", legacy_name(t->dtype));
  fill_elements(t, [&](char* data) { fill_random(g, t->dtype, data, t->numel); });
  return self_of(c);
}

PyObject* random_to_kernel(Call& c) {
  integers(c.args[0].tensor, generator(c), 0, c.args[1].to_int());
  return self_of(c);
}

PyObject* random_from_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const int64_t from = c.args[1].to_int();
  if (!c.args[2].none()) {
    integers(t, generator(c), from, c.args[2].to_int());
    return self_of(c);
  }
  if (is_complex(t->dtype))
    fail(PyExc_RuntimeError,
         "random_from_to_impl handles only integral, floating-point and boolean types, got dtype %s", name(t->dtype));
  // Up to the highest integer of the dtype; of int64 that may be all 2^64 values.
  double low, high;
  integer_limits(t->dtype, &low, &high);
  const int64_t top = t->dtype == DType::Int64 ? INT64_MAX
                      : is_floating(t->dtype)  ? int64_t{1} << precision(t->dtype)
                                               : static_cast<int64_t>(high);
  if (from > top)
    fail(PyExc_RuntimeError, "random_ expects 'from' to be less than or equal to 'to', but got from=%lld > to=%lld",
         ll(from), ll(top));
  const uint64_t range = static_cast<uint64_t>(top) - static_cast<uint64_t>(from) + 1;
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_random_range(g, t->dtype, data, t->numel, range, from); });
  return self_of(c);
}

PyObject* bernoulli_number_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const double p = c.args[1].to_double();
  if (!(p >= 0 && p <= 1)) fail(PyExc_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  if (is_complex(t->dtype))
    fail(PyExc_NotImplementedError, "\"bernoulli_scalar_cpu_\" not implemented for '%s'", legacy_name(t->dtype));
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_bernoulli(g, t->dtype, data, t->numel, p); });
  return self_of(c);
}

// One draw an element with the probability in `p`, whose shape broadcasts to the tensor's.
void bernoulli_by(Call& c, Tensor* t, Tensor* p) {
  if (is_complex(t->dtype))
    fail(PyExc_NotImplementedError, "\"bernoulli_tensor_cpu_\" not implemented for '%s'", legacy_name(t->dtype));
  if (!is_floating(p->dtype))
    fail(PyExc_NotImplementedError, "expected probabilities tensor to have floating type, got dtype %s",
         legacy_name(p->dtype));
  Generator& g = generator(c);
  if (t->device.type == kMeta || t->numel == 0) return;
  const DType p_dtype = p->dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  Ref<Tensor> chances = ordered_like(t, p_dtype);
  copy_into(chances.get(), p);
  const auto check = [&](auto* v) {
    if (!std::all_of(v, v + chances->numel, [](auto x) { return x >= 0 && x <= 1; }))
      fail(PyExc_RuntimeError,
           "Expected p_in >= 0 && p_in <= 1 to be true, but got false: every probability is in [0, 1].");
  };
  p_dtype == DType::Float64 ? check(reinterpret_cast<const double*>(chances->data))
                            : check(reinterpret_cast<const float*>(chances->data));
  fill_elements(t, [&](char* data) { fill_bernoulli(g, t->dtype, data, t->numel, p_dtype, chances->data); });
}

PyObject* bernoulli_tensor_kernel(Call& c) {
  bernoulli_by(c, c.args[0].tensor, c.args[1].tensor);
  return self_of(c);
}

PyObject* exponential_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const double lambda = c.args[1].to_double();
  check_continuous(t, "Exponential");
  if (!(lambda > 0)) fail(PyExc_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_exponential(g, t->dtype, data, t->numel, lambda); });
  return self_of(c);
}

PyObject* cauchy_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const double median = c.args[1].to_double(), sigma = c.args[2].to_double();
  check_continuous(t, "Cauchy");
  if (!(sigma > 0)) fail(PyExc_RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_cauchy(g, t->dtype, data, t->numel, median, sigma); });
  return self_of(c);
}

PyObject* log_normal_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const double mean = c.args[1].to_double(), std = c.args[2].to_double();
  check_floating(t, "log_normal_cpu");
  if (!(std > 0)) fail(PyExc_RuntimeError, "log_normal_ expects std > 0.0, but found std=%g", std);
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_log_normal(g, t->dtype, data, t->numel, mean, std); });
  return self_of(c);
}

PyObject* geometric_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  const double p = c.args[1].to_double();
  if (t->dtype == DType::Bool || is_complex(t->dtype))
    fail(PyExc_NotImplementedError, "\"geometric_cpu\" not implemented for '%s'", legacy_name(t->dtype));
  if (!(p > 0 && p < 1)) fail(PyExc_RuntimeError, "geometric_ expects p to be in (0, 1), but got p=%g", p);
  Generator& g = generator(c);
  fill_elements(t, [&](char* data) { fill_geometric(g, t->dtype, data, t->numel, p); });
  return self_of(c);
}

// ---- new tensors

Ref<Tensor> sized(Call& c, int at, DType dtype) { return empty(c.args[at].count, c.args[at].ints, dtype, c.device); }
Ref<Tensor> like(Call& c) {
  const Tensor* t = c.args[0].tensor;
  const DType dtype = dtype_or(c, t->dtype);
  return t->device == c.device ? empty_preserving(t, dtype) : empty(t->ndim, t->sizes, dtype, c.device);
}

PyObject* rand_kernel(Call& c) {
  Ref<Tensor> t = sized(c, 0, dtype_or(c, g_default_dtype));
  uniform(t.get(), generator(c), 0, 1);
  return t.release_object();
}

PyObject* randn_kernel(Call& c) {
  Ref<Tensor> t = sized(c, 0, dtype_or(c, g_default_dtype));
  normal(t.get(), generator(c), 0, 1);
  return t.release_object();
}

PyObject* randint_kernel(Call& c) {
  Ref<Tensor> t = sized(c, 1, dtype_or(c, DType::Int64));
  integers(t.get(), generator(c), 0, c.args[0].to_int());
  return t.release_object();
}

PyObject* randint_low_kernel(Call& c) {
  Ref<Tensor> t = sized(c, 2, dtype_or(c, DType::Int64));
  integers(t.get(), generator(c), c.args[0].to_int(), c.args[1].to_int());
  return t.release_object();
}

PyObject* rand_like_kernel(Call& c) {
  Ref<Tensor> t = like(c);
  uniform(t.get(), generator(c), 0, 1);
  return t.release_object();
}

PyObject* randn_like_kernel(Call& c) {
  Ref<Tensor> t = like(c);
  normal(t.get(), generator(c), 0, 1);
  return t.release_object();
}

PyObject* randint_like_kernel(Call& c) {
  Ref<Tensor> t = like(c);
  integers(t.get(), generator(c), 0, c.args[1].to_int());
  return t.release_object();
}

PyObject* randint_like_low_kernel(Call& c) {
  Ref<Tensor> t = like(c);
  integers(t.get(), generator(c), c.args[1].to_int(), c.args[2].to_int());
  return t.release_object();
}

PyObject* randperm_kernel(Call& c) {
  const int64_t n = c.args[0].to_int();
  if (n < 0) fail(PyExc_RuntimeError, "Trying to create tensor with negative dimension %lld: [%lld]", ll(n), ll(n));
  const DType dtype = dtype_or(c, DType::Int64);
  double low, high;
  integer_limits(dtype, &low, &high);
  if (is_complex(dtype) || dtype == DType::Bool)
    fail(PyExc_NotImplementedError, "\"randperm\" not implemented for '%s'", legacy_name(dtype));
  if (static_cast<double>(n) > high + 1)
    fail(PyExc_RuntimeError, "randperm: n is too large for dtype, got n=%lld, dtype=%s. Choose a wider dtype.", ll(n),
         name(dtype));
  Generator& g = generator(c);
  if (c.device.type == kMeta) return empty(1, &n, dtype, c.device).release_object();
  Ref<Tensor> order = empty(1, &n, DType::Int64, {kCPU, -1});
  fill_randperm(g, reinterpret_cast<int64_t*>(order->data), n);
  if (dtype == DType::Int64 && c.device.type == kCPU) return order.release_object();
  Ref<Tensor> result = empty(1, &n, dtype, c.device);
  copy_into(result.get(), order.get());
  return result.release_object();
}

PyObject* bernoulli_kernel(Call& c) {
  Ref<Tensor> t = empty_like(c.args[0].tensor, c.args[0].tensor->dtype);
  bernoulli_by(c, t.get(), c.args[0].tensor);
  return t.release_object();
}

// _multinomial_with_replacement(self, num_samples, *, generator): of the values, the checks are multinomial's.
PyObject* multinomial_kernel(Call& c) {
  Tensor* weights = c.args[0].tensor;
  const int64_t samples = c.args[1].to_int();
  if (weights->ndim < 1 || weights->ndim > 2 || is_complex(weights->dtype) || samples < 0)
    fail(PyExc_RuntimeError,
         "_multinomial_with_replacement: needs real weights of 1 or 2 dimensions, got %s of shape %s and "
         "num_samples=%lld. Call multinomial().",
         name(weights->dtype), shape_text(weights).c_str(), static_cast<long long>(samples));
  const int64_t n = weights->sizes[weights->ndim - 1];
  const int64_t rows = weights->ndim == 2 ? weights->sizes[0] : 1;
  const int64_t sizes[] = {rows, samples};
  const int64_t* shape = weights->ndim == 2 ? sizes : sizes + 1;
  if (c.device.type == kMeta) return empty(weights->ndim, shape, DType::Int64, c.device).release_object();
  if (!n && rows && samples)
    fail(PyExc_RuntimeError, "_multinomial_with_replacement: nothing to draw from, got shape %s",
         shape_text(weights).c_str());
  Ref<Tensor> drawn = empty(weights->ndim, shape, DType::Int64, {kCPU, -1});
  const DType summed = weights->dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  Ref<Tensor> chances = empty(weights->ndim, weights->sizes, summed, {kCPU, -1});
  copy_into(chances.get(), weights);
  fill_multinomial(generator(c), reinterpret_cast<int64_t*>(drawn->data), rows, samples, summed, chances->data, n);
  if (c.device.type == kCPU) return drawn.release_object();
  Ref<Tensor> result = empty(drawn->ndim, drawn->sizes, DType::Int64, c.device);
  copy_into(result.get(), drawn.get());
  return result.release_object();
}

// poisson(self, *, generator)
PyObject* poisson_kernel(Call& c) {
  Tensor* rates = c.args[0].tensor;
  check_floating(rates, "poisson_cpu");
  Ref<Tensor> result = empty(rates->ndim, rates->sizes, rates->dtype, rates->device);
  if (c.device.type == kMeta) return result.release_object();
  Ref<Tensor> doubles = empty(rates->ndim, rates->sizes, DType::Float64, {kCPU, -1});
  copy_into(doubles.get(), rates);
  auto* v = reinterpret_cast<double*>(doubles->data);
  if (std::any_of(v, v + doubles->numel, [](double x) { return !(x >= 0); }))
    fail(PyExc_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
  fill_poisson(generator(c), v, doubles->numel);
  copy_into(result.get(), doubles.get());
  return result.release_object();
}

// binomial(count, prob, *, generator)
PyObject* binomial_kernel(Call& c) {
  Tensor *count = c.args[0].tensor, *chance = c.args[1].tensor;
  for (const Tensor* t : {count, chance}) {
    if (!is_floating(t->dtype))
      fail(PyExc_ValueError, "binomial only supports floating-point dtypes for %s, got: %s",
           t == count ? "count" : "prob", legacy_name(t->dtype));
  }
  if (count->dtype != chance->dtype)
    fail(PyExc_RuntimeError, "Found dtype %s but expected %s: binomial takes count and prob of one dtype.",
         legacy_name(chance->dtype), legacy_name(count->dtype));
  Dims sizes(count->ndim, count->sizes);
  broadcast("binomial", sizes, chance->ndim, chance->sizes);
  Ref<Tensor> result = empty(sizes.n, sizes.v, count->dtype, c.device);
  if (c.device.type == kMeta) return result.release_object();
  const DType computed = count->dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  Ref<Tensor> counts = empty(sizes.n, sizes.v, computed, {kCPU, -1});
  Ref<Tensor> chances = empty(sizes.n, sizes.v, computed, {kCPU, -1});
  copy_into(counts.get(), count);
  copy_into(chances.get(), chance);
  fill_binomial(generator(c), computed, counts->data, chances->data, counts->numel);
  copy_into(result.get(), counts.get());
  return result.release_object();
}

// A contiguous CPU tensor of t's values; t is Float32 or Float64.
Ref<Tensor> shapes_of(const char* what, Tensor* t) {
  if (t->dtype != DType::Float32 && t->dtype != DType::Float64)
    fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", what, legacy_name(t->dtype));
  Ref<Tensor> shapes = empty(t->ndim, t->sizes, t->dtype, {kCPU, -1});
  copy_into(shapes.get(), t);
  return shapes;
}

PyObject* on_device_of(const Tensor* t, Ref<Tensor> drawn) {
  if (t->device.type == kCPU) return drawn.release_object();
  Ref<Tensor> result = empty(t->ndim, t->sizes, t->dtype, t->device);
  copy_into(result.get(), drawn.get());
  return result.release_object();
}

// _standard_gamma(self, generator): in the order of the elements, whatever that of the memory.
PyObject* standard_gamma_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (c.device.type == kMeta) return empty(t->ndim, t->sizes, t->dtype, c.device).release_object();
  Ref<Tensor> drawn = shapes_of("gamma_cpu", t);
  fill_gamma(generator(c), t->dtype, drawn->data, drawn->data, drawn->numel);
  return on_device_of(t, std::move(drawn));
}

// _sample_dirichlet(self, generator): along the last dimension.
PyObject* dirichlet_kernel(Call& c) {
  Tensor* t = c.args[0].tensor;
  if (c.device.type == kMeta) return empty(t->ndim, t->sizes, t->dtype, c.device).release_object();
  Ref<Tensor> drawn = shapes_of("dirichlet", t);
  const int64_t k = t->ndim ? t->sizes[t->ndim - 1] : 1;
  if (drawn->numel) fill_dirichlet(generator(c), t->dtype, drawn->data, drawn->data, drawn->numel / k, k);
  return on_device_of(t, std::move(drawn));
}

// The tensors of a call, of one dtype (Float32 or Float64), broadcast: contiguous, on the CPU, the first for the
// result.
template <class F>
PyObject* implicit_kernel(Call& c, const char* what, F&& run) {
  Dims sizes(c.args[0].tensor->ndim, c.args[0].tensor->sizes);
  for (int i = 1; i < c.op->nparams; ++i) {
    const Tensor* t = c.args[i].tensor;
    broadcast(what, sizes, t->ndim, t->sizes);
    if (t->dtype != c.args[0].tensor->dtype)
      fail(PyExc_RuntimeError, "%s: takes tensors of one dtype, got %s and %s. Convert one of them.", what,
           legacy_name(c.args[0].tensor->dtype), legacy_name(t->dtype));
  }
  Ref<Tensor> result = empty(sizes.n, sizes.v, c.args[0].tensor->dtype, c.device);
  if (c.device.type == kMeta) return result.release_object();
  Ref<Tensor> inputs[3];
  for (int i = 0; i < c.op->nparams; ++i) {
    inputs[i] = empty(sizes.n, sizes.v, c.args[i].tensor->dtype, {kCPU, -1});
    copy_into(inputs[i].get(), c.args[i].tensor);
  }
  const auto all = [&](auto zero) {
    using T = decltype(zero);
    T* data[3];
    for (int i = 0; i < c.op->nparams; ++i) data[i] = reinterpret_cast<T*>(inputs[i]->data);
    Unlocked unlocked(result->numel > kImplicitGrain);
    parallel_for(0, result->numel, kImplicitGrain, [&](int64_t begin, int64_t end) { run(data, begin, end - begin); });
  };
  switch (result->dtype) {
    case DType::Float32: all(float{}); break;
    case DType::Float64: all(double{}); break;
    default: fail(PyExc_NotImplementedError, "\"%s\" not implemented for '%s'", what, legacy_name(result->dtype));
  }
  if (c.device.type == kCPU) return inputs[0].release_object();
  copy_into(result.get(), inputs[0].get());
  return result.release_object();
}

// _standard_gamma_grad(self, output)
PyObject* standard_gamma_grad_kernel(Call& c) {
  return implicit_kernel(c, "_standard_gamma_grad", [](auto* const* data, int64_t begin, int64_t n) {
    gamma_derivatives(data[0] + begin, data[1] + begin, data[0] + begin, n);
  });
}

// _dirichlet_grad(x, alpha, total)
PyObject* dirichlet_grad_kernel(Call& c) {
  return implicit_kernel(c, "_dirichlet_grad", [](auto* const* data, int64_t begin, int64_t n) {
    beta_derivatives(data[0] + begin, data[1] + begin, data[2] + begin, data[0] + begin, n);
  });
}

}  // namespace

void register_random_ops() {
  static const Native natives[] = {{"uniform_", uniform_kernel, kOnEveryDevice},
                                   {"normal_", normal_kernel, kOnEveryDevice},
                                   {"random_", random_kernel, kOnEveryDevice},
                                   {"random_.to", random_to_kernel, kOnEveryDevice},
                                   {"random_.from", random_from_kernel, kOnEveryDevice},
                                   {"bernoulli_.float", bernoulli_number_kernel, kOnEveryDevice},
                                   {"bernoulli_.Tensor", bernoulli_tensor_kernel, kOnEveryDevice},
                                   {"exponential_", exponential_kernel, kOnEveryDevice},
                                   {"cauchy_", cauchy_kernel, kOnEveryDevice},
                                   {"log_normal_", log_normal_kernel, kOnEveryDevice},
                                   {"geometric_", geometric_kernel, kOnEveryDevice},
                                   {"rand", rand_kernel, kOnEveryDevice},
                                   {"randn", randn_kernel, kOnEveryDevice},
                                   {"randint", randint_kernel, kOnEveryDevice},
                                   {"randint.low", randint_low_kernel, kOnEveryDevice},
                                   {"rand_like", rand_like_kernel, kOnEveryDevice},
                                   {"randn_like", randn_like_kernel, kOnEveryDevice},
                                   {"randint_like", randint_like_kernel, kOnEveryDevice},
                                   {"randint_like.low_dtype", randint_like_low_kernel, kOnEveryDevice},
                                   {"randperm", randperm_kernel, kOnEveryDevice},
                                   {"bernoulli", bernoulli_kernel, kOnEveryDevice},
                                   {"poisson", poisson_kernel, kOnEveryDevice},
                                   {"binomial", binomial_kernel, kOnEveryDevice},
                                   {"_standard_gamma", standard_gamma_kernel, kOnEveryDevice},
                                   {"_sample_dirichlet", dirichlet_kernel, kOnEveryDevice},
                                   {"_standard_gamma_grad", standard_gamma_grad_kernel, kOnEveryDevice},
                                   {"_dirichlet_grad", dirichlet_grad_kernel, kOnEveryDevice},
                                   {"_multinomial_with_replacement", multinomial_kernel, kOnEveryDevice}};
  register_natives(natives, sizeof natives / sizeof *natives);
}

}  // namespace rl
