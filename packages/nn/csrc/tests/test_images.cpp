// Resampling, grids, windows, padding, bags and CTC against plain loops in double precision, and adjoints against each
// other.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "../kernels/bag.h"
#include "../kernels/ctc.h"
#include "../kernels/image.h"
#include "../kernels/pad.h"
#include "../kernels/window.h"

namespace {

int failures = 0;
std::mt19937 rng(7);

int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

template <class T>
std::vector<T> random_values(int64_t n, double bound = 1) {
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v) x = static_cast<T>(std::uniform_real_distribution<double>(-bound, bound)(rng));
  return v;
}

template <class T>
constexpr int kType = sizeof(T) == 8;
template <class T>
constexpr rl::DType kDType = sizeof(T) == 8 ? rl::DType::Float64 : rl::DType::Float32;

template <class T>
void expect_near(const char* what, double expected, double got) {
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-11;
  if (std::fabs(expected - got) <= tolerance * (1 + std::fabs(expected))) return;
  std::printf("%s: %g instead of %g\n", what, got, expected);
  ++failures;
}

template <class T>
double dot(const std::vector<T>& a, const std::vector<T>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class T>
void check_resample() {
  rl::Resample r{pick(1, 4), pick(1, 40), pick(1, 40), pick(0, 1) * pick(0, 20) + 1, pick(1, 6), nullptr, nullptr};
  std::vector<int64_t> places(static_cast<size_t>(r.out * r.taps));
  for (int64_t& p : places) p = pick(0, r.in - 1);
  const auto weights = random_values<T>(r.out * r.taps), x = random_values<T>(r.outer * r.in * r.inner),
             dy = random_values<T>(r.outer * r.out * r.inner);
  r.places = places.data(), r.weights = weights.data();
  std::vector<T> y(dy.size()), dx(x.size());
  rl::image_kernels().resample[kType<T>](r, x.data(), y.data());
  rl::resample_adjoint(kDType<T>, r, dy.data(), dx.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t l = static_cast<int64_t>(i) % r.inner, j = static_cast<int64_t>(i) / r.inner % r.out,
                  o = static_cast<int64_t>(i) / r.inner / r.out;
    double sum = 0;
    for (int64_t k = 0; k < r.taps; ++k) {
      const auto at = static_cast<size_t>(j * r.taps + k);
      sum += static_cast<double>(weights[at]) *
             static_cast<double>(x[static_cast<size_t>((o * r.in + places[at]) * r.inner + l)]);
    }
    expect_near<T>("resample", sum, static_cast<double>(y[i]));
  }
  expect_near<T>("resample_adjoint", dot(y, dy), dot(x, dx));
}

// The output is linear in the image, so the gradient of the image is the adjoint; the slopes of the grid are compared
// with differences.
void check_grid(rl::GridMode mode, rl::GridPadding padding, int n) {
  rl::GridShape s{2,    pick(1, 10), pick(1, 150),   n, {pick(1, 6), pick(1, 6), n == 3 ? pick(1, 6) : 1},
                  mode, padding,     pick(0, 1) == 1};
  const int64_t plane = s.size[0] * s.size[1] * s.size[2];
  const auto x = random_values<double>(s.batch * s.channels * plane),
             grid = random_values<double>(s.batch * s.points * n, 1.5),
             dy = random_values<double>(s.batch * s.channels * s.points);
  std::vector<double> y(dy.size()), dx(x.size()), dgrid(grid.size()), ahead(dy.size()), behind(dy.size());
  const rl::ImageTable& run = rl::image_kernels();
  run.grid[1](s, x.data(), grid.data(), y.data());
  run.grid_backward_input[1](s, grid.data(), dy.data(), dx.data());
  run.grid_backward_grid[1](s, x.data(), grid.data(), dy.data(), dgrid.data());
  expect_near<double>("grid_backward_input", dot(y, dy), dot(x, dx));
  const auto i = static_cast<size_t>(pick(0, static_cast<int64_t>(grid.size()) - 1));
  auto moved = grid;
  const double step = 1e-7;
  moved[i] += step;
  run.grid[1](s, x.data(), moved.data(), ahead.data());
  moved[i] -= 2 * step;
  run.grid[1](s, x.data(), moved.data(), behind.data());
  const double slope = (dot(ahead, dy) - dot(behind, dy)) / (2 * step);
  if (std::fabs(slope - dgrid[i]) > 1e-5 * (1 + std::fabs(slope)) && mode != rl::GridMode::Nearest) {
    std::printf("grid_backward_grid: %g instead of %g\n", dgrid[i], slope);
    ++failures;
  }
  const std::vector<float> x32(x.begin(), x.end()), grid32(grid.begin(), grid.end());
  std::vector<float> y32(y.size());
  run.grid[0](s, x32.data(), grid32.data(), y32.data());
  for (size_t k = 0; k < y.size() && mode != rl::GridMode::Nearest; ++k)
    expect_near<float>("grid", y[k], static_cast<double>(y32[k]));
}

void check_windows() {
  rl::PoolShape s{pick(1, 3), {}, {}, {}, {}, {}, {}};
  int64_t in = s.planes, columns = s.planes;
  for (int d = 0; d < 3; ++d) {
    s.in[d] = pick(1, 7), s.kernel[d] = pick(1, 3), s.stride[d] = pick(1, 3), s.padding[d] = pick(0, 3);
    s.dilation[d] = pick(1, 2);
    const int64_t space = s.in[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    if (space < 0) return;
    s.out[d] = space / s.stride[d] + 1;
    in *= s.in[d], columns *= s.kernel[d] * s.out[d];
  }
  const auto x = random_values<double>(in), dy = random_values<double>(columns);
  std::vector<double> y(dy.size()), dx(x.size());
  rl::unfold(rl::DType::Float64, s, x.data(), y.data());
  rl::fold(rl::DType::Float64, s, dy.data(), dx.data());
  expect_near<double>("fold", dot(y, dy), dot(x, dx));
}

template <class T>
void check_bags(rl::BagMode mode) {
  rl::Bags g{pick(1, 5), pick(1, 9), pick(1, 40), nullptr, nullptr, pick(-1, 3), mode, nullptr};
  std::vector<int64_t> bounds{0}, indices;
  for (int64_t b = 0; b < g.bags; ++b) bounds.push_back(bounds.back() + pick(0, 5));
  for (int64_t i = 0; i < bounds.back(); ++i) indices.push_back(pick(0, g.rows - 1));
  g.indices = indices.data(), g.bounds = bounds.data();
  const auto table = random_values<T>(g.rows * g.width), dy = random_values<T>(g.bags * g.width);
  std::vector<T> y(dy.size()), dtable(table.size());
  std::vector<int64_t> source(dy.size());
  rl::bag_kernels().forward[kType<T>](g, table.data(), y.data(), source.data());
  rl::bag_kernels().backward[kType<T>](g, dy.data(), source.data(), dtable.data());
  expect_near<T>("bag", dot(y, dy), dot(table, dtable));
}

// Two steps, one label: the paths are (blank, a), (a, blank) and (a, a).
void check_ctc() {
  const double p = 0.25, log_probs[] = {std::log(1 - p), std::log(p), std::log(1 - p), std::log(p)};
  const int64_t target = 1, steps = 2, labels = 1;
  const rl::Ctc c{2, 1, 2, 1, log_probs, &target, &steps, &labels, 0};
  double loss, history[6], grad[4];
  const double one = 1;
  rl::ctc(rl::DType::Float64, c, &loss, history);
  expect_near<double>("ctc", -std::log(2 * p * (1 - p) + p * p), loss);
  rl::ctc_backward(rl::DType::Float64, c, &one, &loss, history, false, grad);
  const double with_a = (p * (1 - p) + p * p) / (2 * p * (1 - p) + p * p);  // at either step
  for (int t = 0; t < 2; ++t) expect_near<double>("ctc_backward", p - with_a, grad[2 * t + 1]);
}

// Every element of a padded tensor by the rule of one position, and the adjoint against it.
void check_pad(rl::PadMode mode) {
  rl::Pad s;
  s.mode = mode, s.lines = static_cast<int>(pick(1, 4)), s.outer = pick(1, 3), s.inner = pick(1, 3);
  int64_t in_size = s.outer * s.inner, out_size = in_size;
  for (int d = 0; d < s.lines; ++d) {
    const int64_t in = pick(1, 5), most = mode == rl::PadMode::Reflect ? in - 1 : 4;
    const bool crops = mode == rl::PadMode::Constant || mode == rl::PadMode::Circular;  // before it pads
    const int64_t before = pick(1 - in, most), after = pick(1 - in - (before < 0 || !crops ? before : 0), most);
    s.line[d] = rl::PadLine(in, before, after);
    in_size *= in, out_size *= s.line[d].out;
  }
  const auto x = random_values<double>(in_size), dy = random_values<double>(out_size);
  std::vector<double> y(dy.size()), dx(x.size()), expected(x.size());
  const double value = 7;
  rl::pad(s, sizeof(double), x.data(), &value, y.data());
  rl::pad_adjoint(rl::DType::Float64, s, dy.data(), dx.data());
  for (int64_t i = 0; i < out_size; ++i) {
    int64_t rest = i / s.inner, from = i % s.inner, stride = s.inner;
    bool inside = true;
    for (int d = s.lines - 1; d >= 0; --d) {
      const rl::PadLine& line = s.line[d];
      int64_t p = rest % line.out - line.before;
      rest /= line.out;
      const int64_t first = line.begin - line.before, last = line.end - line.before;  // what is left of the input
      inside = inside && p >= first && p < last;
      switch (mode) {
        case rl::PadMode::Constant: break;
        case rl::PadMode::Replicate: p = p < 0 ? 0 : p >= line.in ? line.in - 1 : p; break;
        case rl::PadMode::Reflect: p = p < 0 ? -p : p >= line.in ? 2 * line.in - 2 - p : p; break;
        case rl::PadMode::Circular:
          while (p < first) p += last - first;
          while (p >= last) p -= last - first;
      }
      from += p * stride, stride *= line.in;
    }
    from += rest * stride;
    const bool filled = mode == rl::PadMode::Constant && !inside;
    expect_near<double>("pad", filled ? value : x[static_cast<size_t>(from)], y[static_cast<size_t>(i)]);
    if (!filled) expected[static_cast<size_t>(from)] += dy[static_cast<size_t>(i)];
  }
  for (size_t i = 0; i < dx.size(); ++i) expect_near<double>("pad_adjoint", expected[i], dx[i]);
}

}  // namespace

int main() {
  for (int i = 0; i < 100; ++i) {
    check_resample<float>();
    check_resample<double>();
    check_windows();
    for (rl::PadMode mode :
         {rl::PadMode::Constant, rl::PadMode::Reflect, rl::PadMode::Replicate, rl::PadMode::Circular}) {
      check_pad(mode);
    }
    for (rl::BagMode mode : {rl::BagMode::Sum, rl::BagMode::Mean, rl::BagMode::Max}) {
      check_bags<float>(mode);
      check_bags<double>(mode);
    }
  }
  for (rl::GridPadding padding : {rl::GridPadding::Zeros, rl::GridPadding::Border, rl::GridPadding::Reflection}) {
    for (int i = 0; i < 20; ++i) {
      for (rl::GridMode mode : {rl::GridMode::Linear, rl::GridMode::Nearest, rl::GridMode::Cubic})
        check_grid(mode, padding, 2);
      check_grid(rl::GridMode::Linear, padding, 3);
    }
  }
  check_ctc();
  std::printf(failures == 0 ? "images: ok\n" : "images: %d failures\n", failures);
  return failures != 0;
}
