// The names of generated kernels in CUDA C++, for NVRTC: no header is included.
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ inline
#define GLOBAL
#define SHARED __shared__
#define BARRIER __syncthreads()
#define LOCAL_ITEM threadIdx.x
#define WORK_ITEM ((u64)blockIdx.x * blockDim.x + threadIdx.x)

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef float2 c64;
typedef double2 c128;
typedef u16 f16; // its bits

DEVICE f32 load_half(const f16 *p, u64 i) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(p[i]));
  return x;
}
DEVICE void store_half(f16 *p, u64 i, f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p[i]) : "f"(x)); }
DEVICE f32 as_f32(u32 bits) { return __uint_as_float(bits); }
DEVICE u32 bits_of(f32 x) { return __float_as_uint(x); }

DEVICE c64 make_c64(f32 x, f32 y) { return make_float2(x, y); }
DEVICE c64 operator+(c64 a, c64 b) { return make_float2(a.x + b.x, a.y + b.y); }
DEVICE c64 operator-(c64 a, c64 b) { return make_float2(a.x - b.x, a.y - b.y); }
DEVICE c64 operator-(c64 a) { return make_float2(-a.x, -a.y); }
DEVICE c128 make_c128(f64 x, f64 y) { return make_double2(x, y); }
DEVICE c128 operator+(c128 a, c128 b) { return make_double2(a.x + b.x, a.y + b.y); }
DEVICE c128 operator-(c128 a, c128 b) { return make_double2(a.x - b.x, a.y - b.y); }
DEVICE c128 operator-(c128 a) { return make_double2(-a.x, -a.y); }

// The nearest integer that there is, 0 for NaN
template <class T, class F> DEVICE T saturated(F x) {
  const T top = (T)-1 < 0 ? (T)((1ull << (8 * sizeof(T) - 1)) - 1) : (T)-1, bottom = (T)~top;
  return x != x ? (T)0 : x >= (F)top ? top : x <= (F)bottom ? bottom : (T)x;
}
#define sat_i8 saturated<i8>
#define sat_i16 saturated<i16>
#define sat_i32 saturated<i32>
#define sat_i64 saturated<i64>
#define sat_u8 saturated<u8>
#define sat_u16 saturated<u16>
#define sat_u32 saturated<u32>
#define sat_u64 saturated<u64>

#define swap_u32(p, old, to) atomicCAS((u32 *)(p), old, to)
#define swap_u64(p, old, to) atomicCAS((u64 *)(p), old, to)

