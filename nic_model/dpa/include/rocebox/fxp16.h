/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic in fixed point with 16 bits of fraction, without floating point and division: a DPA has neither at speed.
 * What does not fit is the largest value. */
#ifndef ROCEBOX_FXP16_H
#define ROCEBOX_FXP16_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t fxp16;
#define FXP16_ONE 65536u
#define FXP16_MAX UINT32_MAX

/* Of whole numbers, and of a quotient of constants. */
#define FXP16(whole) ((fxp16)(whole) << 16)
#define FXP16_OF(a, b) ((fxp16)(((uint64_t)(a) << 16) / (b)))

/* Exact, rounded down. */
static inline fxp16 fxp16_mul(fxp16 a, fxp16 b) {
  const uint64_t product = (uint64_t)a * b >> 16;
  return product > FXP16_MAX ? FXP16_MAX : (fxp16)product;
}

static inline fxp16 fxp16_add(fxp16 a, fxp16 b) { return a + b < a ? FXP16_MAX : a + b; }
static inline fxp16 fxp16_sub(fxp16 a, fxp16 b) { return a < b ? 0 : a - b; }

/* numerator / denominator, rounded down, bit by bit; of a quotient that has more than 32 bits, and by 0: the largest.
 */
static inline uint32_t fxp16_quotient(uint64_t numerator, uint32_t denominator) {
  if (denominator == 0 || numerator >> 32 >= denominator) return FXP16_MAX;
  uint64_t rest = numerator;
  uint32_t quotient = 0;
  for (int bit = 31; bit >= 0; bit--) {
    const uint64_t part = (uint64_t)denominator << bit;
    if (rest < part) continue;
    rest -= part;
    quotient |= 1u << bit;
  }
  return quotient;
}
static inline fxp16 fxp16_recip(fxp16 a) { return fxp16_quotient(UINT64_C(1) << 32, a); }
static inline fxp16 fxp16_div(fxp16 a, fxp16 b) { return fxp16_quotient((uint64_t)a << 16, b); }

/* The square root of a whole number, rounded down, bit by bit. */
static inline uint32_t fxp16_isqrt(uint64_t a) {
  uint64_t root = 0, bit = a ? UINT64_C(1) << ((63 - __builtin_clzll(a)) & ~1) : 0;
  for (; bit; bit >>= 2) {
    if (a >= root + bit) {
      a -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return (uint32_t)root;
}
static inline fxp16 fxp16_sqrt(fxp16 a) { return fxp16_isqrt((uint64_t)a << 16); }

/* 2 to the power of a: from a table of 2^(2^-i), one factor for each bit of the fraction. At most 2 of 65536 off at 1,
 * in proportion above. */
static inline fxp16 fxp16_pow2(fxp16 a) {
  /* 2^(1/2), 2^(1/4), ... with 31 bits of fraction. */
  static const uint32_t kRoots[16] = {0xB504F334, 0x9837F052, 0x8B95C1E4, 0x85AAC368, 0x82CD8699, 0x8164D1F4,
                                      0x80B1ED50, 0x8058D7D3, 0x802C6437, 0x8016302F, 0x800B179D, 0x80058BAF,
                                      0x8002C5D0, 0x800162E6, 0x8000B173, 0x800058B9};
  const uint32_t whole = a >> 16;
  if (whole >= 16) return FXP16_MAX;
  uint64_t product = UINT64_C(1) << 31;
  for (int i = 0; i < 16; i++)
    if (a >> (15 - i) & 1) product = product * kRoots[i] >> 31;
  return (fxp16)(product >> (15 - whole));
}

/* The logarithm to base 2, negative (as int32_t) below 1: bit by bit, by squaring. At most 2 of 65536 off. Of 0: the
 * least. */
static inline fxp16 fxp16_log2(fxp16 a) {
  if (a == 0) return 1u << 31;
  const int zeros = __builtin_clz(a);
  uint64_t x = (uint64_t)a << zeros; /* from 1 to 2 with 31 bits of fraction */
  uint32_t fraction = 0;
  for (int bit = 15; bit >= 0; bit--) {
    x = x * x >> 31;
    if (x >> 32) {
      fraction |= 1u << bit;
      x >>= 1;
    }
  }
  return ((uint32_t)(15 - zeros) << 16) + fraction;
}

#ifdef __cplusplus
}
#endif
#endif
