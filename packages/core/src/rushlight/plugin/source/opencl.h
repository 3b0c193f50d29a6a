// The names of generated kernels in OpenCL C.
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define KERNEL __kernel void
#define DEVICE
#define GLOBAL __global
#define SHARED __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_ITEM get_local_id(0)
#define WORK_ITEM get_global_id(0)

typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef float2 c64;
#ifdef cl_khr_fp64
typedef double f64;
typedef double2 c128;
#endif
#define f16 half

#define load_half(p, i) vload_half(i, p)
#define store_half(p, i, x) vstore_half(x, i, p)
#define as_f32(bits) as_float(bits)
#define bits_of(x) as_uint(x)
#define make_c64(x, y) ((float2)(x, y))
#define make_c128(x, y) ((double2)(x, y))

// The nearest integer that there is, 0 for NaN
#define sat_i8(x) convert_char_sat(x)
#define sat_i16(x) convert_short_sat(x)
#define sat_i32(x) convert_int_sat(x)
#define sat_i64(x) convert_long_sat(x)
#define sat_u8(x) convert_uchar_sat(x)
#define sat_u16(x) convert_ushort_sat(x)
#define sat_u32(x) convert_uint_sat(x)
#define sat_u64(x) convert_ulong_sat(x)

#define swap_u32(p, old, to) atomic_cmpxchg((volatile __global uint *)(p), old, to)
#define swap_u64(p, old, to) atom_cmpxchg((volatile __global ulong *)(p), old, to)
