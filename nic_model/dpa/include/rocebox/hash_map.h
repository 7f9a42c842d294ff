/* SPDX-License-Identifier: BSD-3-Clause */
/* Hash map of a fixed size: numbers to values, by linear probing. Of 2^N slots 7 of 8 can be used, so that a search
 * ends. All zeros is an empty one. HASH_MAP(flows, struct flow, 10)   struct flows of 896 entries, and struct flow*
 * flows_find(struct flows*, uint64_t key);      null: it is not there struct flow* flows_insert(struct flows*, uint64_t
 * key);    what is there, or a new one of zeros; null: all are used int flows_remove(struct flows*, uint64_t key);
 * whether it was there uint32_t flows_count(const struct flows*); A pointer holds until the next flows_remove.
 */
#ifndef ROCEBOX_HASH_MAP_H
#define ROCEBOX_HASH_MAP_H

#include "hash.h"

#define HASH_MAP(name, value_type, log2_slots)                                                               \
  struct name {                                                                                              \
    uint32_t count;                                                                                          \
    struct {                                                                                                 \
      uint64_t key;                                                                                          \
      uint8_t used;                                                                                          \
      value_type value;                                                                                      \
    } slots[1u << (log2_slots)];                                                                             \
  };                                                                                                         \
  enum { name##_mask = (1u << (log2_slots)) - 1, name##_most = (1u << (log2_slots)) / 8 * 7 };               \
  /* Where the key is, or would be. */                                                                       \
  static inline uint32_t name##_place(const struct name* map, uint64_t key) {                                \
    uint32_t at = (uint32_t)rocebox_hash(key) & name##_mask;                                                 \
    while (map->slots[at].used && map->slots[at].key != key) at = (at + 1) & name##_mask;                    \
    return at;                                                                                               \
  }                                                                                                          \
  static inline __attribute__((unused)) uint32_t name##_count(const struct name* map) { return map->count; } \
  static inline __attribute__((unused)) value_type* name##_find(struct name* map, uint64_t key) {            \
    const uint32_t at = name##_place(map, key);                                                              \
    return map->slots[at].used ? &map->slots[at].value : 0;                                                  \
  }                                                                                                          \
  static inline __attribute__((unused)) value_type* name##_insert(struct name* map, uint64_t key) {          \
    const uint32_t at = name##_place(map, key);                                                              \
    if (map->slots[at].used) return &map->slots[at].value;                                                   \
    if (map->count >= name##_most) return 0;                                                                 \
    map->count++;                                                                                            \
    __builtin_memset(&map->slots[at], 0, sizeof map->slots[at]);                                             \
    map->slots[at].key = key;                                                                                \
    map->slots[at].used = 1;                                                                                 \
    return &map->slots[at].value;                                                                            \
  }                                                                                                          \
  /* What stands behind it moves up, where its search would not find it otherwise. */                        \
  static inline __attribute__((unused)) int name##_remove(struct name* map, uint64_t key) {                  \
    uint32_t hole = name##_place(map, key);                                                                  \
    if (!map->slots[hole].used) return 0;                                                                    \
    for (uint32_t at = (hole + 1) & name##_mask; map->slots[at].used; at = (at + 1) & name##_mask) {         \
      const uint32_t home = (uint32_t)rocebox_hash(map->slots[at].key) & name##_mask;                        \
      if (((at - home) & name##_mask) < ((at - hole) & name##_mask)) continue;                               \
      map->slots[hole] = map->slots[at];                                                                     \
      hole = at;                                                                                             \
    }                                                                                                        \
    map->slots[hole].used = 0;                                                                               \
    map->count--;                                                                                            \
    return 1;                                                                                                \
  }                                                                                                          \
  ROCEBOX_STATIC_ASSERT((log2_slots) >= 3 && (log2_slots) < 32, "7 of 8 slots are some")

#endif
