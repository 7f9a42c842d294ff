// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <rte_common.h>
#include <rte_prefetch.h>

#include <cstddef>

namespace rocebox {

/// Asks for the line of the cache that `place` is in, to be read or written soon. Not by __builtin_prefetch(): a
/// function in which there is nothing else has no effect in GCC's eyes, so unless it is inlined GCC leaves out the
/// calls of it.
[[gnu::always_inline]] inline void prefetch_line(const void* place) { rte_prefetch0(place); }

/// The same for what is needed some microseconds later, as far as the second level: that has more misses under way.
[[gnu::always_inline]] inline void prefetch_far_line(const void* place) { rte_prefetch1(place); }

/// All lines from that of `from` to that before `to`.
[[gnu::always_inline]] inline void prefetch_lines(const void* from, const void* to) {
  for (const auto* at = static_cast<const std::byte*>(from); at < to; at += RTE_CACHE_LINE_SIZE) prefetch_line(at);
}
[[gnu::always_inline]] inline void prefetch_far_lines(const void* from, const void* to) {
  for (const auto* at = static_cast<const std::byte*>(from); at < to; at += RTE_CACHE_LINE_SIZE) prefetch_far_line(at);
}

}  // namespace rocebox
