/* SPDX-License-Identifier: BSD-3-Clause */
/* Count-Min sketch: how much has been counted for a key? Never less than it was; more than e / width of all that was
 * counted too much with a probability of e^-depth at most. All zeros is an empty one.
 *   COUNT_MIN(bytes_of, 10, 4)   struct bytes_of, 4 rows of 2^10 counters, and
 *   void bytes_of_add(struct bytes_of*, uint64_t key, uint32_t n);      counters stop at their largest
 *   uint32_t bytes_of_estimate(const struct bytes_of*, uint64_t key);
 */
#ifndef ROCEBOX_COUNT_MIN_H
#define ROCEBOX_COUNT_MIN_H

#include "hash.h"

#define COUNT_MIN(name, log2_width, depth)                                                                  \
  struct name {                                                                                             \
    uint32_t rows[depth][1u << (log2_width)];                                                               \
  };                                                                                                        \
  static inline uint32_t name##_place(uint64_t key, uint32_t row) {                                         \
    return (uint32_t)rocebox_hash(key ^ rocebox_hash(row)) & ((1u << (log2_width)) - 1);                    \
  }                                                                                                         \
  static inline __attribute__((unused)) void name##_add(struct name* sketch, uint64_t key, uint32_t n) {    \
    for (uint32_t row = 0; row < (depth); row++) {                                                          \
      uint32_t* counter = &sketch->rows[row][name##_place(key, row)];                                       \
      *counter = *counter + n < n ? UINT32_MAX : *counter + n;                                              \
    }                                                                                                       \
  }                                                                                                         \
  static inline __attribute__((unused)) uint32_t name##_estimate(const struct name* sketch, uint64_t key) { \
    uint32_t least = UINT32_MAX;                                                                            \
    for (uint32_t row = 0; row < (depth); row++) {                                                          \
      const uint32_t counted = sketch->rows[row][name##_place(key, row)];                                   \
      if (counted < least) least = counted;                                                                 \
    }                                                                                                       \
    return least;                                                                                           \
  }                                                                                                         \
  ROCEBOX_STATIC_ASSERT((log2_width) < 32 && (depth) > 0, "rows have counters")

#endif
