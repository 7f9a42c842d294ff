/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash of numbers that the structures beside this use: each bit of the key moves half of the result's. */
#ifndef ROCEBOX_HASH_H
#define ROCEBOX_HASH_H

#include <stdint.h>

#ifdef __cplusplus
#define ROCEBOX_STATIC_ASSERT static_assert
#else
#define ROCEBOX_STATIC_ASSERT _Static_assert
#endif

static inline uint64_t rocebox_hash(uint64_t key) {
  key += UINT64_C(0x9E3779B97F4A7C15);
  key = (key ^ key >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  key = (key ^ key >> 27) * UINT64_C(0x94D049BB133111EB);
  return key ^ key >> 31;
}

#endif
