/* SPDX-License-Identifier: BSD-3-Clause */
/* What chunks.c does with one completion, apart from where it comes from: a bit for each packet in memory of the
 * device, and for each chunk whose packets have all come a byte in memory of the host. */
#ifndef ROCEBOX_PROGRAMS_CHUNKS_H
#define ROCEBOX_PROGRAMS_CHUNKS_H

#include <stdint.h>

/* Packets that have a bit, a power of two: numbers beyond go round. */
#define CHUNKS_PACKETS (1u << 19)

/* Packet `number` has come, of a chunk of 1 << `log_chunk` packets, at most 64. 1: its chunk is complete, and the
 * chunk's bits are clear for the packets that have these numbers next. */
static inline int chunks_take(uint64_t* bits, uint32_t number, uint32_t log_chunk) {
  const uint32_t at = number & (CHUNKS_PACKETS - 1), size = 1u << log_chunk;
  const uint64_t bit = 1ull << (at & 63);
  const uint64_t chunk = (size == 64 ? ~0ull : (1ull << size) - 1) << (at & 63 & ~(size - 1));
  /* Threads share words, so bits are set and cleared atomically; who sets a chunk's last one has completed it. */
  const uint64_t before = __atomic_fetch_or(&bits[at / 64], bit, __ATOMIC_ACQ_REL);
  if ((before & bit) || ((before | bit) & chunk) != chunk) return 0;
  __atomic_fetch_and(&bits[at / 64], ~chunk, __ATOMIC_ACQ_REL);
  return 1;
}

#endif
