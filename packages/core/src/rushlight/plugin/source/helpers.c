// Functions that expressions call as `$name`, for a type T whose parts are of the type R. A kernel gets the ones that it
// calls, each as `name_T`. A blank line ends a function. What is not C is in the prelude of each language.

u16 bfloat16(float x) {
  const u32 bits = bits_of(x);
  return x != x ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16; // to the nearest, halves to the even one
}

T sign(T x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

T maximum(T x, T y) { return x != x || x > y ? x : y; }

T minimum(T x, T y) { return x != x || x < y ? x : y; }

T heaviside(T x) { return x < 0 ? 0 : x > 0 ? 1 : x; }

int outside(T n) { return n < 0 || n >= (T)(sizeof(T) * 8); }

// Integers: a division by zero gives 0, as one by -1 never overflows.
T floor_quotient(T x, T y) {
  if (y == 0) return 0;
  if ((T)-1 < 0 && y == (T)-1) return -x;
  const T q = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

T floor_remainder(T x, T y) {
  if (y == 0 || ((T)-1 < 0 && y == (T)-1)) return 0;
  const T r = x % y;
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

T truncated_remainder(T x, T y) { return y == 0 || ((T)-1 < 0 && y == (T)-1) ? 0 : x % y; }

T integer_power(T x, T n) {
  if (n < 0) return x == 1 ? 1 : x == (T)-1 ? (n & 1 ? -1 : 1) : 0;
  T y = 1;
  for (; n; n >>= 1) {
    if (n & 1) y *= x;
    x *= x;
  }
  return y;
}

T gcd(T x, T y) {
  while (y) {
    const T r = (T)-1 < 0 && y == (T)-1 ? 0 : x % y;
    x = y;
    y = r;
  }
  return x < 0 ? -x : x;
}

T lcm(T x, T y) {
  T a = x, b = y;
  while (b) {
    const T r = (T)-1 < 0 && b == (T)-1 ? 0 : a % b;
    a = b;
    b = r;
  }
  const T m = a == 0 ? 0 : x / a * y;
  return m < 0 ? -m : m;
}

// Real numbers
T remainder(T x, T y) {
  const T r = fmod(x, y);
  return r == 0 ? copysign(r, y) : (r < 0) != (y < 0) ? r + y : r;
}

T floor_divide(T x, T y) {
  if (y == 0) return x / y;
  const T r = fmod(x, y), q = (x - r) / y - (r != 0 && (r < 0) != (y < 0) ? 1 : 0);
  if (q == 0) return copysign((T)0, x / y);
  const T whole = floor(q);
  return q - whole > (T)0.5f ? whole + 1 : whole;
}

T logaddexp(T x, T y) {
  if (x == y) return x + (T)0.69314718055994530942;
  return x != x || y != y ? x + y : fmax(x, y) + log1p(exp(-fabs(x - y)));
}

T logaddexp2(T x, T y) {
  if (x == y) return x + 1;
  return x != x || y != y ? x + y : fmax(x, y) + log1p(exp2(-fabs(x - y))) * (T)1.44269504088896340736;
}

// Complex numbers
T multiply(T x, T y) { return MAKE(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); }

// R. L. Smith, Algorithm 116: Complex division (1962): no overflow where the quotient has none
T divide(T x, T y) {
  if (fabs(y.x) >= fabs(y.y)) {
    const R r = y.x == 0 && y.y == 0 ? 0 : y.y / y.x, d = y.x + y.y * r;
    return MAKE((x.x + x.y * r) / d, (x.y - x.x * r) / d);
  }
  const R r = y.x / y.y, d = y.y + y.x * r;
  return MAKE((x.x * r + x.y) / d, (x.y * r - x.x) / d);
}

T complex_exp(T z) {
  const R size = exp(z.x);
  return z.y == 0 ? MAKE(size, z.y) : MAKE(size * cos(z.y), size * sin(z.y));
}

T complex_log(T z) { return MAKE(log(hypot(z.x, z.y)), atan2(z.y, z.x)); }

T complex_sqrt(T z) {
  const R size = hypot(z.x, z.y);
  if (size == 0) return MAKE(0, z.y);
  const R a = sqrt((size + fabs(z.x)) / 2), b = fabs(z.y) / (2 * a);
  return z.x >= 0 ? MAKE(a, copysign(b, z.y)) : MAKE(b, copysign(a, z.y));
}

T complex_sin(T z) { return MAKE(sin(z.x) * cosh(z.y), cos(z.x) * sinh(z.y)); }

T complex_cos(T z) { return MAKE(cos(z.x) * cosh(z.y), -sin(z.x) * sinh(z.y)); }

T complex_sinh(T z) { return MAKE(sinh(z.x) * cos(z.y), cosh(z.x) * sin(z.y)); }

T complex_cosh(T z) { return MAKE(cosh(z.x) * cos(z.y), sinh(z.x) * sin(z.y)); }

// W. Kahan, Branch cuts for complex elementary functions (1987)
T complex_tanh(T z) {
  if (fabs(z.x) > 20) return MAKE(copysign((R)1, z.x), copysign((R)0, z.y));
  const R t = tan(z.y), b = 1 + t * t, s = sinh(z.x), r = sqrt(1 + s * s), d = 1 + b * s * s;
  return MAKE(b * r * s / d, t / d);
}

T complex_tan(T z) {
  if (fabs(z.y) > 20) return MAKE(copysign((R)0, z.x), copysign((R)1, z.y));
  const R t = tan(z.x), b = 1 + t * t, s = sinh(z.y), r = sqrt(1 + s * s), d = 1 + b * s * s;
  return MAKE(t / d, b * r * s / d);
}

T complex_power(T x, T y) {
  if (y.x == 0 && y.y == 0) return MAKE(1, 0);
  if (x.x == 0 && x.y == 0) return MAKE(0, 0);
  const R l = log(hypot(x.x, x.y)), a = atan2(x.y, x.x), size = exp(y.x * l - y.y * a), turn = y.y * l + y.x * a;
  return MAKE(size * cos(turn), size * sin(turn));
}

// J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011): Philox4x32-10
u64 philox(u64 seed, u64 n) {
  u32 a = (u32)n, b = (u32)(n >> 32), c = 0, d = 0, key = (u32)seed, other = (u32)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 x = (u64)0xD2511F53u * a, y = (u64)0xCD9E8D57u * c;
    a = (u32)(y >> 32) ^ b ^ key;
    b = (u32)y;
    c = (u32)(x >> 32) ^ d ^ other;
    d = (u32)x;
    key += 0x9E3779B9u;
    other += 0xBB67AE85u;
  }
  return (u64)b << 32 | a;
}

// In [0, 1), with as many bits as T has
T uniform(u64 bits) {
  if (sizeof(T) == 4) return (T)((u32)bits >> 8) * (T)0x1p-24f;
  return (T)(bits >> 11) * (T)0x1p-53f;
}

// G. E. P. Box and M. E. Muller, A note on the generation of random normal deviates (1958)
T normal(u64 bits) {
  const T u = ((T)(u32)bits + 1) * (T)0x1p-32f, turn = (T)(bits >> 32) * (T)0x1p-31f;
  return sqrt(-2 * log(u)) * cospi(turn);
}

// An index into a dimension of n, counted from the end where it is negative; 0 and a fault where it is outside
i64 place(i64 i, i64 n, GLOBAL int *fault) {
  if (i < 0) i += n;
  if (i >= 0 && i < n) return i;
  *fault = 1;
  return 0;
}
