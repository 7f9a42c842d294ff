/* SPDX-License-Identifier: BSD-3-Clause */
/* HyperLogLog: how many different keys were there? The error's standard deviation is 1.04 / sqrt(2^N) of the number.
 * All zeros is an empty one. HYPERLOGLOG(peers, 10)   struct peers of 2^10 bytes, and void peers_add(struct peers*,
 * uint64_t key); uint64_t peers_estimate(const struct peers*);    without floating point; one division
 */
#ifndef ROCEBOX_HYPERLOGLOG_H
#define ROCEBOX_HYPERLOGLOG_H

#include "fxp16.h"
#include "hash.h"

/* From a register's ranks (2^-rank each, in units of 2^-32) and the registers that are 0. */
static inline uint64_t rocebox_hyperloglog_estimate(uint64_t sum, uint32_t zeros, uint32_t log2_registers) {
  const uint64_t registers = UINT64_C(1) << log2_registers;
  /* 0.7213 / (1 + 1.079 / m), and the constants of 16, 32 and 64 registers, in 1/65536. */
  const uint64_t alpha = log2_registers == 4   ? 44106
                         : log2_registers == 5 ? 45679
                         : log2_registers == 6 ? 46465
                                               : (UINT64_C(47271) << 16) / (65536 + (70713 >> log2_registers));
  const uint64_t raw = (alpha * registers * registers << 8) / ((sum >> 8) | 1);
  if (raw * 2 > registers * 5 || zeros == 0) return raw;
  /* Few keys: by the registers that none has come to, m * ln(m / zeros). */
  const uint64_t log2_share = fxp16_log2((uint32_t)registers << 12) - fxp16_log2(zeros << 12);
  return (registers * log2_share * 45426 + (UINT64_C(1) << 31)) >> 32; /* ln 2 is 45426 / 65536 */
}

#define HYPERLOGLOG(name, log2_registers)                                                  \
  struct name {                                                                            \
    uint8_t ranks[1u << (log2_registers)];                                                 \
  };                                                                                       \
  static inline __attribute__((unused)) void name##_add(struct name* log, uint64_t key) {  \
    const uint64_t hash = rocebox_hash(key);                                               \
    const uint32_t which = (uint32_t)hash & ((1u << (log2_registers)) - 1);                \
    const uint64_t rest = hash >> (log2_registers) | UINT64_C(1) << 31;                    \
    const uint8_t rank = (uint8_t)(__builtin_ctzll(rest) + 1);                             \
    if (log->ranks[which] < rank) log->ranks[which] = rank;                                \
  }                                                                                        \
  static inline __attribute__((unused)) uint64_t name##_estimate(const struct name* log) { \
    uint64_t sum = 0;                                                                      \
    uint32_t zeros = 0;                                                                    \
    for (uint32_t i = 0; i < 1u << (log2_registers); i++) {                                \
      sum += UINT64_C(1) << (32 - log->ranks[i]);                                          \
      zeros += log->ranks[i] == 0;                                                         \
    }                                                                                      \
    return rocebox_hyperloglog_estimate(sum, zeros, log2_registers);                       \
  }                                                                                        \
  ROCEBOX_STATIC_ASSERT((log2_registers) >= 4 && (log2_registers) <= 16, "registers are 16 to 65536")

#endif
