// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/packet/prefetch.h"
#include "runtime/roce/icrc.h"

namespace rocebox::lowar {
namespace {

// Each bit of the input moves about half the bits of the result. It is folded before it is multiplied, too: a product
// has its upper bits in its own upper bits only, and what they change in one packet would be made up for in another.
std::uint64_t mix(std::uint64_t word) {
  word ^= word >> 32;
  word *= 0x9E3779B97F4A7C15ull;
  word ^= word >> 29;
  word *= 0xD6E8FEB86659FD93ull;
  return word;
}

constexpr std::uint32_t kClassAndLabel = 0x0FFFFFFF;

}  // namespace

namespace {

// What the headers below BTH give to the image, as numbers.
struct BelowBth {
  std::uint64_t udp_source_port, udp_checksum, ip_word, hop_limit, tos;
};

[[gnu::always_inline]] inline BelowBth below_bth(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  const auto* udp = reinterpret_cast<const roce::Udp*>(packet.data() + meta.udp_offset);
  if (meta.ip_version == 4) {
    const auto* header = reinterpret_cast<const roce::Ipv4*>(ip);
    return {udp->source_port, udp->checksum, header->identification << 16 | header->flags_fragment, header->ttl,
            header->tos};
  }
  const auto* header = reinterpret_cast<const roce::Ipv6*>(ip);
  return {udp->source_port, udp->checksum, header->version_class_label & kClassAndLabel, header->hop_limit, 0};
}

}  // namespace

// Written as two words: what is written in smaller pieces cannot be read back as words before it has left the store
// buffer, which takes longer than all the rest here.
CodedPrefix prefix_of(Packet packet) {
  const BelowBth below = below_bth(packet);
  struct {
    roce::Be64 first;
    roce::Be32 second;
  } words;
  words.first = std::uint64_t{transport_bytes(packet)} << 48 | below.udp_source_port << 32 | below.ip_word;
  words.second = below.hop_limit << 24 | below.tos << 16 | below.udp_checksum;
  return std::bit_cast<CodedPrefix>(words);
}

// The processor's own prefetching needs some accesses before it sees where they lead, and begins anew in each page: it
// is given a start at the beginning and behind the first border between pages, and does the rest better by itself.
void prefetch_transport(Packet packet) {
  if (!roce::icrc_held(packet)) return;
  const std::uint8_t* from = transport(packet);
  const std::uint32_t count = transport_bytes(packet);
  constexpr std::uint32_t kLine = 64, kPage = 4096, kAtStart = 16 * kLine, kAtPage = 8 * kLine;
  const auto page = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(from) % kPage);
  for (std::uint32_t at = 0; at < std::min(count, kAtStart); at += kLine) prefetch_line(from + at);
  for (std::uint32_t at = page; at < std::min(count, page + kAtPage); at += kLine) prefetch_line(from + at);
}

Sums sums_of(Packet packet) {
  const roce::Bth& bth = roce::bth(packet);
  const BelowBth below = below_bth(packet);
  const std::uint64_t set = std::uint64_t{bth.fecn_becn_resv6} << 56 | bth.psn << 32 | roce::icrc_stored(packet);
  const std::uint64_t label = packet.meta().ip_version == 4 ? 0 : below.ip_word;
  const std::uint64_t hops = label << 32 | below.udp_checksum << 16 | below.hop_limit << 8 | below.tos;
  return {static_cast<std::uint32_t>(mix(set) >> 32),
          static_cast<std::uint16_t>(mix(hops ^ 0x10000000000000ull) >> 48)};
}

namespace {

// Words of any alignment. (Members of structs: as template arguments such types would lose their attributes.)
struct Word32 {
  typedef std::uint32_t Type __attribute__((aligned(1), may_alias));
};
struct Word64 {
  typedef std::uint64_t Type __attribute__((aligned(1), may_alias));
};
struct Word128 {
  typedef std::uint64_t Type __attribute__((vector_size(16), aligned(1), may_alias));
};
struct Word256 {
  typedef std::uint64_t Type __attribute__((vector_size(32), aligned(1), may_alias));
};

template <class Word>
[[gnu::always_inline]] inline void xor_word(std::uint8_t* to, const std::uint8_t* from) {
  using Type = typename Word::Type;
  *reinterpret_cast<Type*>(to) ^= *reinterpret_cast<const Type*>(from);
}

// Vectors four at a time, then ever smaller words: what is left over is mostly a multiple of four.
template <class Word>
[[gnu::always_inline]] inline void xor_words(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
  constexpr std::size_t kBytes = sizeof(typename Word::Type);
  std::size_t at = 0;
  for (; at + 4 * kBytes <= count; at += 4 * kBytes) {
    xor_word<Word>(to + at, from + at);
    xor_word<Word>(to + at + kBytes, from + at + kBytes);
    xor_word<Word>(to + at + 2 * kBytes, from + at + 2 * kBytes);
    xor_word<Word>(to + at + 3 * kBytes, from + at + 3 * kBytes);
  }
  for (; at + 16 <= count; at += 16) xor_word<Word128>(to + at, from + at);
  for (; at + 8 <= count; at += 8) xor_word<Word64>(to + at, from + at);
  for (; at + 4 <= count; at += 4) xor_word<Word32>(to + at, from + at);
  for (; at < count; at++) to[at] ^= from[at];
}

#if defined(__x86_64__)
// Tuned for what has AVX2: for older processors each wide load is cut in two, which takes twice the time.
[[gnu::target("avx2,tune=haswell")]] void xor_avx2(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
  xor_words<Word256>(to, from, count);
}
#endif

}  // namespace

void xor_into(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
#if defined(__x86_64__)
  static const bool has_avx2 = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
  }();
  if (has_avx2) return xor_avx2(to, from, count);  // the compiler leaves wide vectors at its end
#endif
  xor_words<Word128>(to, from, count);
}

}  // namespace rocebox::lowar
