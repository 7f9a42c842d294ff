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

// Whole vectors; what is left over is done byte by byte.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void xor_vectors(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
  typedef std::uint64_t Vector __attribute__((vector_size(Bytes), aligned(1), may_alias));
  std::size_t at = 0;
  for (; at + 4 * Bytes <= count; at += 4 * Bytes)
    for (std::size_t i = 0; i < 4 * Bytes; i += Bytes)
      *reinterpret_cast<Vector*>(to + at + i) ^= *reinterpret_cast<const Vector*>(from + at + i);
  for (; at + Bytes <= count; at += Bytes)
    *reinterpret_cast<Vector*>(to + at) ^= *reinterpret_cast<const Vector*>(from + at);
  for (; at < count; at++) to[at] ^= from[at];
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void xor_avx2(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
  xor_vectors<32>(to, from, count);
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
  xor_vectors<16>(to, from, count);
}

}  // namespace rocebox::lowar
