// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/image.h"

#include <cstring>

#include "runtime/roce/icrc.h"

namespace rocebox::lowar {
namespace {

// Multiply, fold, multiply: each bit of the input moves about half the bits of the result.
std::uint64_t mix(std::uint64_t word) {
  word *= 0x9E3779B97F4A7C15ull;
  word ^= word >> 32;
  word *= 0xD6E8FEB86659FD93ull;
  return word;
}

constexpr std::uint32_t kClassAndLabel = 0x0FFFFFFF;

}  // namespace

CodedPrefix prefix_of(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  const auto* udp = reinterpret_cast<const roce::Udp*>(packet.data() + meta.udp_offset);
  CodedPrefix prefix{};
  prefix.transport_bytes = transport_bytes(packet);
  prefix.udp_source_port = udp->source_port;
  prefix.udp_checksum = udp->checksum;
  if (meta.ip_version == 4) {
    const auto* header = reinterpret_cast<const roce::Ipv4*>(ip);
    prefix.ip_word = header->identification << 16 | header->flags_fragment;
    prefix.hop_limit = header->ttl;
    prefix.tos = header->tos;
  } else {
    const auto* header = reinterpret_cast<const roce::Ipv6*>(ip);
    prefix.ip_word = header->version_class_label & kClassAndLabel;
    prefix.hop_limit = header->hop_limit;
  }
  return prefix;
}

Sums sums_of(Packet packet) {
  const roce::Bth& bth = roce::bth(packet);
  const CodedPrefix prefix = prefix_of(packet);
  const std::uint64_t set = std::uint64_t{bth.fecn_becn_resv6} << 56 | bth.psn << 32 | roce::icrc_stored(packet);
  const std::uint64_t label = packet.meta().ip_version == 4 ? 0 : prefix.ip_word.get();
  const std::uint64_t hops =
      label << 32 | prefix.udp_checksum << 16 | std::uint64_t{prefix.hop_limit} << 8 | prefix.tos;
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
