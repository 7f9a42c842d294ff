/* SPDX-License-Identifier: BSD-3-Clause */
/* Exponentially weighted moving average of whole numbers: each sample has a weight of 1 / 2^N. Off by less than 2^N /
 * 2^16 from the exact one. All zeros is one without samples; the first sample is its average. */
#ifndef ROCEBOX_EWMA_H
#define ROCEBOX_EWMA_H

#include <stdint.h>

struct ewma {
  uint64_t sum; /* the average with 16 bits of fraction, and 1 */
};

static inline __attribute__((unused)) uint32_t ewma_value(const struct ewma* average) {
  return average->sum ? (uint32_t)((average->sum - 1) >> 16) : 0;
}

/* Returns the new average, rounded down. */
static inline __attribute__((unused)) uint32_t ewma_add(struct ewma* average, uint32_t sample, unsigned log2_weight) {
  const uint64_t wide = (uint64_t)sample << 16;
  if (average->sum == 0) {
    average->sum = wide + 1;
  } else {
    const uint64_t before = average->sum - 1;
    average->sum =
        1 + (wide >= before ? before + ((wide - before) >> log2_weight) : before - ((before - wide) >> log2_weight));
  }
  return ewma_value(average);
}

#endif
