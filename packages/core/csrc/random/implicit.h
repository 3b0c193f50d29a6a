// How samples of the gamma and the beta distribution move with its parameters while their quantile stays: implicit
// reparameterisation (Figurnov, Mohamed and Mnih, 2018), dx/da = -(dF/da) / f for a distribution function F and its
// density f. The sums below are those of F / f, differentiated term by term; on its side of the mean each has terms of
// one sign.
#pragma once
#include <cstdint>

namespace rl {

// By the shape, of a number of the gamma distribution of scale 1. T is float or double.
template <class T>
void gamma_derivatives(const T* shapes, const T* x, T* out, int64_t n);

// By the concentration `a` of a coordinate x of a Dirichlet point whose concentrations sum to `total`, over 1 - x.
template <class T>
void beta_derivatives(const T* x, const T* a, const T* total, T* out, int64_t n);

}  // namespace rl
