/* SPDX-License-Identifier: BSD-3-Clause */
/* Bloom filter: has this key been seen? A yes may be wrong, a no is not. After n keys a yes is wrong with probability
 * (1 - e^(-hashes * n / bits))^hashes: 0.03 with 3 hashes and 8 bits a key. All zeros is an empty one.
 *   BLOOM_FILTER(flows_seen, 16, 3)   struct flows_seen of 2^16 bits, and
 *   int flows_seen_add(struct flows_seen*, uint64_t key);              whether it had been seen; it is from now on
 *   int flows_seen_has(const struct flows_seen*, uint64_t key);
 */
#ifndef ROCEBOX_BLOOM_FILTER_H
#define ROCEBOX_BLOOM_FILTER_H

#include "hash.h"

#define BLOOM_FILTER(name, log2_bits, hashes)                                                     \
  struct name {                                                                                   \
    uint32_t words[(1u << (log2_bits)) / 32];                                                     \
  };                                                                                              \
  static inline uint32_t name##_place(uint64_t hash, uint32_t which) {                            \
    return ((uint32_t)hash + which * ((uint32_t)(hash >> 32) | 1)) & ((1u << (log2_bits)) - 1);   \
  }                                                                                               \
  static inline __attribute__((unused)) int name##_has(const struct name* filter, uint64_t key) { \
    const uint64_t hash = rocebox_hash(key);                                                      \
    for (uint32_t i = 0; i < (hashes); i++) {                                                     \
      const uint32_t place = name##_place(hash, i);                                               \
      if (!(filter->words[place / 32] >> place % 32 & 1)) return 0;                               \
    }                                                                                             \
    return 1;                                                                                     \
  }                                                                                               \
  static inline __attribute__((unused)) int name##_add(struct name* filter, uint64_t key) {       \
    const uint64_t hash = rocebox_hash(key);                                                      \
    int seen = 1;                                                                                 \
    for (uint32_t i = 0; i < (hashes); i++) {                                                     \
      const uint32_t place = name##_place(hash, i), bit = 1u << place % 32;                       \
      seen &= (filter->words[place / 32] & bit) != 0;                                             \
      filter->words[place / 32] |= bit;                                                           \
    }                                                                                             \
    return seen;                                                                                  \
  }                                                                                               \
  ROCEBOX_STATIC_ASSERT((log2_bits) >= 5 && (log2_bits) < 32 && (hashes) > 0, "bits are words; hashes are some")

#endif
