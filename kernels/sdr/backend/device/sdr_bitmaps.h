/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of slots and bitmaps (3.2 to 3.4): what posting a message, a packet's completion and completing a message
 * do to the memory in sdr_device.h. The worker on the DPA, the host that posts, and MessageTable all go by these. C,
 * and C++. */
#ifndef ROCEBOX_SDR_BITMAPS_H
#define ROCEBOX_SDR_BITMAPS_H

#include "sdr_device.h"

/* What is added to an address of chunk bytes to come to where the caller can write them. */
struct sdr_reach {
  int can_write;
  uint64_t added;
};

static inline struct sdr_slot* sdr_slot_of(const struct sdr_table* t, uint32_t message) {
  return (struct sdr_slot*)t->slots + message;
}
static inline uint64_t* sdr_words_of(const struct sdr_table* t, uint32_t message) {
  return (uint64_t*)t->bitmap + (uint64_t)message * t->words;
}
static inline uint32_t* sdr_words_left_of(const struct sdr_table* t, uint32_t message) {
  return (uint32_t*)t->words_left + (uint64_t)message * t->chunks;
}
static inline uint32_t sdr_chunks_of(const struct sdr_table* t, uint32_t packets) {
  return (packets + (1u << t->chunk_shift) - 1) >> t->chunk_shift;
}

/* The slot is free, and `packets` fit. The chunk bytes are the caller's to clear. Packets behind the last one count as
 * come, so that the last chunk needs no rule of its own. For one thread, and not beside arrivals of this generation. */
static inline void sdr_post(const struct sdr_table* t, uint32_t message, uint32_t generation, uint32_t packets,
                            uint64_t chunks) {
  struct sdr_slot* slot = sdr_slot_of(t, message);
  uint64_t* words = sdr_words_of(t, message);
  const uint32_t used = (packets + 63) / 64;
  for (uint32_t i = 0; i < used; i++) words[i] = 0;
  if (packets % 64) words[used - 1] = ~0ull << packets % 64;
  slot->packets = packets;
  slot->chunks = chunks;
  slot->chunks_left = sdr_chunks_of(t, packets);
  slot->fragments = slot->user = 0;
  if (t->words_left) {
    const uint32_t a_chunk = (1u << t->chunk_shift) / 64;
    for (uint32_t i = 0; i < slot->chunks_left; i++) {
      const uint32_t from_here = used - i * a_chunk;
      sdr_words_left_of(t, message)[i] = from_here < a_chunk ? from_here : a_chunk;
    }
  }
  __atomic_store_n(&slot->generation, generation, __ATOMIC_RELEASE);
}

/* What comes later touches nothing. */
static inline void sdr_free(const struct sdr_table* t, uint32_t message) {
  __atomic_store_n(&sdr_slot_of(t, message)->generation, SDR_FREE, __ATOMIC_RELEASE);
}

/* The first copy of a fragment counts. */
static inline void sdr_take_fragment(const struct sdr_table* t, struct sdr_slot* slot, uint32_t offset,
                                     uint32_t fragment) {
  const uint32_t index = offset % (32 / t->fragment_bits);
  if (__atomic_load_n(&slot->fragments, __ATOMIC_RELAXED) >> index & 1) return;
  __atomic_fetch_or(&slot->user, fragment << (index * t->fragment_bits), __ATOMIC_RELAXED);
  __atomic_fetch_or(&slot->fragments, 1u << index, __ATOMIC_RELEASE);
}

/* Whether all fragments of the user's immediate are here; the split has room for some. */
static inline int sdr_user_immediate(const struct sdr_table* t, uint32_t message, uint32_t* value) {
  const struct sdr_slot* slot = sdr_slot_of(t, message);
  const uint32_t count = 32 / t->fragment_bits, all = count == 32 ? ~0u : (1u << count) - 1;
  if (__atomic_load_n(&slot->fragments, __ATOMIC_ACQUIRE) != all) return 0;
  *value = __atomic_load_n(&slot->user, __ATOMIC_RELAXED);
  return 1;
}

/* Whether the packet's bit was the last one of its chunk; `before` is the word without it. */
static inline int sdr_ends_chunk(const struct sdr_table* t, uint32_t message, uint32_t chunk, uint64_t before,
                                 uint64_t bit) {
  if (t->words_left == 0) {
    const uint32_t size = 1u << t->chunk_shift;
    const uint64_t whole = size == 64 ? ~0ull : ((1ull << size) - 1) << ((chunk << t->chunk_shift) % 64);
    return ((before | bit) & whole) == whole;
  }
  if ((before | bit) != ~0ull) return 0;
  return __atomic_fetch_sub(sdr_words_left_of(t, message) + chunk, 1, __ATOMIC_ACQ_REL) == 1;
}

/* Whoever sets the last bit of a chunk, by an atomic operation on its word, sets the chunk's byte by a plain store. */
static inline uint32_t sdr_set_packet(const struct sdr_table* t, struct sdr_slot* slot, struct sdr_reach reach,
                                      uint32_t message, uint32_t packet) {
  const uint64_t bit = 1ull << (packet % 64);
  const uint64_t before = __atomic_fetch_or(sdr_words_of(t, message) + packet / 64, bit, __ATOMIC_ACQ_REL);
  const uint32_t chunk = packet >> t->chunk_shift;
  if (before & bit) return SDR_DUPLICATE;
  if (!sdr_ends_chunk(t, message, chunk, before, bit)) return SDR_PACKET;
  if (reach.can_write) __atomic_store_n((uint8_t*)(slot->chunks + reach.added) + chunk, 1, __ATOMIC_RELEASE);
  return __atomic_fetch_sub(&slot->chunks_left, 1, __ATOMIC_ACQ_REL) == 1 ? SDR_MESSAGE : SDR_CHUNK;
}

/* A completion's immediate, in the machine's order, of so many bytes by a queue pair of that generation. Generation
 * first, then bounds, then the bit. Any number of threads may call it. */
static inline uint32_t sdr_arrive(const struct sdr_table* t, struct sdr_reach reach, uint32_t generation,
                                  uint32_t immediate, uint32_t bytes) {
  const uint32_t message = immediate >> (t->offset_bits + t->fragment_bits);
  const uint32_t packet = immediate >> t->fragment_bits & ((1u << t->offset_bits) - 1);
  if (message >= t->messages) return SDR_NO_MESSAGE;
  struct sdr_slot* slot = sdr_slot_of(t, message);
  const uint32_t posted = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);
  if (posted != generation) return posted == SDR_FREE ? SDR_NO_MESSAGE : SDR_LATE_GENERATION;
  if (bytes != 0 && packet >= slot->packets) return SDR_OUTSIDE;
  if (bytes == 0 && (t->fragment_bits == 0 || packet >= 32 / t->fragment_bits)) return SDR_OUTSIDE;
  if (t->fragment_bits != 0) sdr_take_fragment(t, slot, packet, immediate & ((1u << t->fragment_bits) - 1));
  if (bytes == 0) return SDR_FRAGMENT;
  return sdr_set_packet(t, slot, reach, message, packet);
}

#endif
