// Random numbers into contiguous memory, with the values that PyTorch's CPU generator gives for the same seed.
#pragma once
#include <cstdint>

#include "generator.h"
#include "rushlight/dtype.h"

namespace rl {

// Floating and complex dtypes; [from, to), of complex ones both parts.
void fill_uniform(Generator&, DType, void* out, int64_t n, double from, double to);
// Floating dtypes. Complex ones are two real elements each, of std / sqrt(2). `strided`: the stream that PyTorch gives
// to memory that is not contiguous (and to fewer than 16 elements).
void fill_normal(Generator&, DType, void* out, int64_t n, double mean, double std, bool strided = false);

// base + r with r in [0, range); range = 0 is all of int64 (whatever the base). Integral, bool and floating dtypes.
void fill_random_range(Generator&, DType, void* out, int64_t n, uint64_t range, int64_t base);
// All non-negative values of an integral dtype, all integers that a floating dtype holds exactly.
void fill_random(Generator&, DType, void* out, int64_t n);
void fill_randperm(Generator&, int64_t* out, int64_t n);

// Any dtype but complex.
void fill_bernoulli(Generator&, DType, void* out, int64_t n, double p);
// A probability for each element; p_dtype is Float32 or Float64.
void fill_bernoulli(Generator&, DType, void* out, int64_t n, DType p_dtype, const void* p);

// Floating dtypes.
void fill_exponential(Generator&, DType, void* out, int64_t n, double lambda);
void fill_cauchy(Generator&, DType, void* out, int64_t n, double median, double sigma);
void fill_log_normal(Generator&, DType, void* out, int64_t n, double mean, double std);
// Any dtype but bool and complex.
void fill_geometric(Generator&, DType, void* out, int64_t n, double p);

// In place: rates that are not negative to Poisson numbers.
void fill_poisson(Generator&, double* rates, int64_t n);

// Numbers of the gamma distributions of scale 1, from the shapes in `shapes`; dtype Float32 or Float64.
void fill_gamma(Generator&, DType, void* out, const void* shapes, int64_t n);
// Rows of `k` such numbers, each divided by its sum: points of the simplex.
void fill_dirichlet(Generator&, DType, void* out, const void* shapes, int64_t rows, int64_t k);

// In place: numbers of trials to numbers of successes, of probability chances[i] each; dtype Float32 or Float64.
void fill_binomial(Generator&, DType, void* counts, const void* chances, int64_t n);

// `samples` draws with replacement from each of `rows` rows of `n` weights that are finite, not negative and not all 0,
// of dtype Float32 or Float64.
void fill_multinomial(Generator&, int64_t* out, int64_t rows, int64_t samples, DType, const void* weights, int64_t n);

}  // namespace rl
