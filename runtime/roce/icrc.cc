// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/icrc.h"

#include <isa-l/crc.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "runtime/packet/prefetch.h"
#include "runtime/packet/wide_vectors.h"
#include "runtime/roce/crc_algebra.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/ipv4_checksum.h"

namespace rocebox::roce {

using namespace crc;

namespace {

constexpr std::uint32_t kEditBytesMax = 16;

// Zeroes the bytes of a difference at frame offset `at` that the ICRC does not see.
void unmask_difference(const PacketMeta& meta, std::uint32_t at, std::uint8_t* difference, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; i++) {
    const std::uint32_t offset = at + i;
    const std::uint32_t ip = offset - meta.l3_offset, udp = offset - meta.udp_offset, bth = offset - meta.bth_offset;
    if (meta.ip_version == 4 ? (ip == 1 || ip == 8 || ip == 10 || ip == 11) : (ip - 1 < 3 || ip == 7))
      difference[i] = 0;
    else if (meta.ip_version == 6 && ip == 0)
      difference[i] &= 0xF0;
    else if (udp == 6 || udp == 7 || bth == 4)
      difference[i] = 0;
  }
}

// A change of bytes of the frame: [first, last) was `from` and is `to`.
struct Change {
  std::uint32_t first, last;
  const std::uint8_t *from, *to;
};

// One's-complement checksum that follows a change of bytes (RFC 1624, eqn. 3).
class ChecksumUpdate {
 public:
  // Takes in what of the change lies in [first, last), which begins at an even place of the sum.
  void cover(const Change& change, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t at = std::max(first, change.first); at < std::min(last, change.last); at++) {
      const unsigned shift = (at - first) & 1 ? 0 : 8;
      sum_ += (0xFFFFu - (std::uint32_t{change.from[at - change.first]} << shift)) +
              (std::uint32_t{change.to[at - change.first]} << shift);
    }
  }
  void apply(Be16& checksum) const {
    std::uint64_t sum = sum_ + static_cast<std::uint16_t>(~checksum.get());
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    checksum = ~sum & 0xFFFF;
  }

 private:
  std::uint64_t sum_ = 0;
};

void update_ipv4_checksum(const PacketMeta& meta, std::uint8_t* data, const Change& change) {
  auto* header = reinterpret_cast<Ipv4*>(data + meta.l3_offset);
  ChecksumUpdate update;
  update.cover(change, meta.l3_offset, meta.l3_offset + 10u);
  update.cover(change, meta.l3_offset + 12u, meta.l3_offset + header->header_bytes());
  update.apply(header->checksum);
}

// The UDP checksum covers the addresses and the datagram, the ICRC included.
void update_udp_checksum(const PacketMeta& meta, std::uint8_t* data, const Change& change, const Change& icrc) {
  auto* udp = reinterpret_cast<Udp*>(data + meta.udp_offset);
  if (udp->checksum == 0) return;  // unused
  const std::uint32_t addresses = meta.l3_offset + (meta.ip_version == 4 ? 12u : 8u);
  ChecksumUpdate update;
  update.cover(change, addresses, addresses + (meta.ip_version == 4 ? 8u : 32u));
  update.cover(change, meta.udp_offset, meta.udp_offset + 6u);
  update.cover(change, meta.bth_offset, meta.datagram_end);
  // The ICRC begins anywhere; its parity counts from the UDP header.
  update.cover(icrc, meta.udp_offset, meta.datagram_end);
  update.apply(udp->checksum);
  if (udp->checksum == 0) udp->checksum = 0xFFFF;
}

// What the ICRC sees as ones (A17.3.3), as bits of the little-endian word that holds it.
constexpr std::uint32_t kTos = 0x0000FF00, kTtl = 0x000000FF, kIpv4Checksum = 0xFFFF0000;  // words 0, 2, 2 of IPv4
constexpr std::uint32_t kClassAndLabel = 0xFFFFFF0F, kHopLimit = 0xFF000000;               // words 0, 1 of IPv6
constexpr std::uint32_t kUdpChecksum = 0xFFFF0000, kResv8a = 0x000000FF;                   // words 1 of UDP and BTH
// The CRC of the eight bytes of ones that stand for the LRH, which RoCEv2 does not have.
constexpr std::uint32_t kLrhCrc = ~[] {
  std::uint32_t state = 0xFFFFFFFFu;
  for (int byte = 0; byte < 8; byte++) state = times_x8(state ^ 0xFF);
  return state;
}();

// The change of the CRC when `difference` (size <= 16) lies `behind` bytes before the end of what is covered.
ROCEBOX_CLMUL std::uint32_t crc_change(const std::uint8_t* difference, std::uint32_t size, std::uint32_t behind) {
  std::uint8_t padded[20] = {};  // zeros in front change no CRC that starts from zero
  const std::uint32_t words = (size + 3) / 4;
  std::memcpy(padded + words * 4 - size, difference, size);
  Product sum{};
  for (std::uint32_t word = 0; word < words; word++)
    sum = add(sum, multiply(load32(padded + word * 4), kPowers.of(behind + 4 * (words - word))));
  return reduce(sum);
}

// What ones instead of the `mask` bits of the word at `at` change, before reduce().
ROCEBOX_CLMUL inline Product ones(const std::uint8_t* at, std::uint32_t mask, const std::uint8_t* end) {
  return multiply(~load32(at) & mask, kPowers.of(static_cast<std::uint32_t>(end - at)));
}

// Fetches as many bytes as it covers, piece by piece: what is asked for faster than it comes is not fetched at all.
std::uint32_t crc_fetching(std::uint32_t crc, const std::uint8_t* bytes, std::uint32_t count, Ahead ahead) {
  constexpr std::uint32_t kPiece = 512, kLine = 64;
  for (std::uint32_t at = 0; at < count; at += kPiece) {
    const std::uint32_t fetched = std::min(at + kPiece, ahead.bytes);
    for (std::uint32_t line = at; line < fetched; line += kLine) prefetch_line(ahead.from + line);
    crc = crc32_gzip_refl(crc, bytes + at, std::min(kPiece, count - at));
  }
  return crc;
}

// What the ICRC sees as ones, word by word from the IP header on, where nothing stands between the headers; three words
// of zeros before it.
constexpr std::uint32_t kShortBytes = 72;  // an ACK's in IPv6, and some more
using Masks = std::array<std::uint32_t, 3 + 20>;
constexpr Masks kIpv4Masks = {0, 0, 0, kTos, 0, kTtl | kIpv4Checksum, 0, 0, 0, kUdpChecksum, 0, kResv8a};
constexpr Masks kIpv6Masks = {0, 0, 0, kClassAndLabel, kHopLimit, 0, 0, 0, 0, 0, 0, 0, 0, 0, kUdpChecksum, 0, kResv8a};
#if defined(__x86_64__)
// Of the first block: which of its words are there, and the state before them.
constexpr std::array<std::uint32_t, 7> kHeld = {0, 0, 0, ~0u, ~0u, ~0u, ~0u}, kBefore = {0, 0, 0, ~kLrhCrc, 0, 0, 0};

// x^(8 * bytes) mod P, doubled: a product of 64 bits with it stands in its right place.
constexpr std::uint64_t doubled_power(unsigned bytes) {
  std::uint32_t power = 0x80000000u;
  for (unsigned i = 0; i < bytes; i++) power = times_x8(power);
  return std::uint64_t{power} << 1;
}

inline __m128i load_block(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

// Few words, in blocks of four (Gopal et al., as reduce()). Zeros before all that is covered change nothing, so the
// first block may begin in the Ethernet header.
ROCEBOX_CLMUL inline std::uint32_t compute_short(const std::uint8_t* ip, std::uint32_t count, const Masks& masks) {
  const std::uint32_t before = -count & 15, skip = 3 - before / 4;
  const std::uint8_t* at = ip - before;
  const std::uint8_t* const end = ip + count;
  const std::uint32_t* mask = masks.data() + skip;
  const __m128i by_block = _mm_set_epi64x(doubled_power(12), doubled_power(20));
  __m128i sum = _mm_or_si128(_mm_and_si128(load_block(at), load_block(&kHeld[skip])), load_block(mask));
  sum = _mm_xor_si128(sum, load_block(&kBefore[skip]));
  for (at += 16; at < end; at += 16) {
    mask += 4;
    const __m128i next = _mm_or_si128(load_block(at), load_block(mask));
    sum = _mm_xor_si128(_mm_clmulepi64_si128(sum, by_block, 0x00), _mm_clmulepi64_si128(sum, by_block, 0x11));
    sum = _mm_xor_si128(sum, next);
  }
  // 128 bits to 96, and to 64.
  const __m128i low = _mm_cvtsi32_si128(-1);
  sum = _mm_xor_si128(_mm_clmulepi64_si128(sum, by_block, 0x10), _mm_srli_si128(sum, 8));
  sum = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(sum, low), _mm_cvtsi64_si128(doubled_power(8)), 0x00),
                      _mm_srli_si128(sum, 4));
  const __m128i constants = _mm_set_epi64x(0x1F7011641, 0x1DB710641);
  const __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low), constants, 0x10);
  const __m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), constants, 0x00);
  return ~static_cast<std::uint32_t>(_mm_cvtsi128_si64(_mm_xor_si128(sum, multiple)) >> 32);
}
#else
inline std::uint32_t compute_short(const std::uint8_t* ip, std::uint32_t count, const Masks& masks) {
  Product sum = multiply((load32(ip) | masks[3]) ^ ~kLrhCrc, kPowers.of(count));
  for (std::uint32_t at = 4; at < count; at += 4)
    sum = add(sum, multiply(load32(ip + at) | masks[3 + at / 4], kPowers.of(count - at)));
  return ~reduce(sum);
}
#endif

// One pass over the bytes as they are; CRC is linear, so the masked ones are put right afterwards.
ROCEBOX_CLMUL std::uint32_t compute(Packet packet, Ahead ahead) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* ip = packet.data() + meta.l3_offset;
  const std::uint8_t* udp = packet.data() + meta.udp_offset;
  const std::uint8_t* bth = packet.data() + meta.bth_offset;
  const std::uint8_t* end = packet.data() + meta.datagram_end - kIcrcBytes;
  const auto count = static_cast<std::uint32_t>(end - ip);
  const bool is_ipv4 = meta.ip_version == 4;
  if (count <= kShortBytes && count % 4 == 0 && static_cast<std::size_t>(bth - udp) == sizeof(Udp) &&
      static_cast<std::size_t>(udp - ip) == (is_ipv4 ? sizeof(Ipv4) : sizeof(Ipv6)))
    return compute_short(ip, count, is_ipv4 ? kIpv4Masks : kIpv6Masks);
  Product change = add(ones(udp + 4, kUdpChecksum, end), ones(bth + 4, kResv8a, end));
  if (is_ipv4)
    change = add(change, add(ones(ip, kTos, end), ones(ip + 8, kTtl | kIpv4Checksum, end)));
  else
    change = add(change, add(ones(ip, kClassAndLabel, end), ones(ip + 4, kHopLimit, end)));
  const std::uint32_t masked = reduce(change);
  const std::uint32_t crc = ahead.bytes ? crc_fetching(kLrhCrc, ip, count, ahead) : crc32_gzip_refl(kLrhCrc, ip, count);
  leave_wide_vectors();
  return crc ^ masked;
}

}  // namespace

std::uint32_t icrc_compute(Packet packet) { return compute(packet, {}); }

std::uint32_t icrc_stored(Packet packet) { return load32(packet.data() + packet.meta().datagram_end - kIcrcBytes); }

IcrcStatus icrc_check(Packet packet, Ahead ahead) {
  if (!icrc_held(packet)) return IcrcStatus::kUnverifiable;
  return compute(packet, ahead) == icrc_stored(packet) ? IcrcStatus::kGood : IcrcStatus::kBad;
}

void icrc_store(Packet packet, Ahead ahead) {
  store32(packet.data() + packet.meta().datagram_end - kIcrcBytes, compute(packet, ahead));
}

namespace {

// Whether this one byte of the IPv4 header is one that a hop changes: no check sees it but the header's own.
bool is_hop_byte(const PacketMeta& meta, std::uint32_t offset) {
  const std::uint32_t ip = offset - meta.l3_offset;
  return meta.ip_version == 4 && (ip == offsetof(Ipv4, tos) || ip == offsetof(Ipv4, ttl));
}

// ECN marks and TTLs.
void edit_hop_byte(Packet packet, std::uint32_t offset, std::uint8_t value) {
  std::uint8_t& byte = packet.data()[offset];
  auto* header = reinterpret_cast<Ipv4*>(packet.data() + packet.meta().l3_offset);
  follow_byte(header->checksum, byte, value, (offset - packet.meta().l3_offset) & 1 ? 0 : 8);
  byte = value;
}

// Any edit. The usual ones need less: edit_plain().
void edit_any(Packet packet, std::uint32_t offset, std::span<const std::uint8_t> value) {
  const PacketMeta& meta = packet.meta();
  std::uint8_t* data = packet.data();
  const auto size = static_cast<std::uint32_t>(value.size());
  assert(meta.bth_offset && size >= 1 && size <= kEditBytesMax && offset >= meta.l3_offset &&
         offset + size <= packet.size());
  std::uint8_t old[kEditBytesMax], difference[kEditBytesMax];
  for (std::uint32_t i = 0; i < size; i++) {
    old[i] = data[offset + i];
    difference[i] = old[i] ^ value[i];
  }
  std::memcpy(data + offset, value.data(), size);
  const Change change{offset, offset + size, old, value.data()};
  if (meta.ip_version == 4 && offset < meta.udp_offset) update_ipv4_checksum(meta, data, change);

  std::uint8_t icrc_was[kIcrcBytes] = {};
  Change icrc{0, 0, nullptr, nullptr};
  if (icrc_held(packet)) {
    const std::uint32_t end = meta.datagram_end - kIcrcBytes;
    assert(offset + size <= end);
    if (offset < meta.bth_offset + 5u) unmask_difference(meta, offset, difference, size);
    const std::uint32_t crc = crc_change(difference, size, end - offset - size);
    std::memcpy(icrc_was, data + end, kIcrcBytes);
    for (unsigned i = 0; i < kIcrcBytes; i++) data[end + i] ^= static_cast<std::uint8_t>(crc >> 8 * i);
    icrc = {end, meta.datagram_end, icrc_was, data + end};
  }
  update_udp_checksum(meta, data, change, icrc);
}

// `Size` bytes as words, of which the last ends where the bytes end.
template <std::uint32_t Size>
struct Words {
  static constexpr std::uint32_t kCount = (Size + 3) / 4, kFirst = Size - 4 * (kCount - 1);
  std::uint32_t word[kCount];

  static Words load(const std::uint8_t* p) {
    Words words;
    if constexpr (kFirst == 4)
      words.word[0] = load32(p);
    else if constexpr (kFirst == 1)
      words.word[0] = std::uint32_t{p[0]} << 24;
    else
      words.word[0] = std::uint32_t{p[0]} << 8 * (4 - kFirst) | std::uint32_t{p[1]} << 8 * (5 - kFirst);
    if constexpr (kFirst == 3) words.word[0] |= std::uint32_t{p[2]} << 24;
    for (std::uint32_t i = 1; i < kCount; i++) words.word[i] = load32(p + kFirst + 4 * (i - 1));
    return words;
  }
};

// Follows a change of words that begin at an even place (RFC 1624, eqn. 3; byte order: RFC 1071, 2B).
template <std::uint32_t Count>
void change_checksum(Be16& checksum, const std::uint32_t (&from)[Count], const std::uint32_t (&to)[Count], bool even) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < Count; i++) sum += std::uint64_t{to[i]} + static_cast<std::uint32_t>(~from[i]);
  for (unsigned fold = 0; fold < 3; fold++) sum = (sum & 0xFFFF) + (sum >> 16);
  if (even) sum = (sum >> 8 | sum << 8) & 0xFFFF;
  sum += ~checksum.get() & 0xFFFF;
  checksum = ~(sum + (sum >> 16)) & 0xFFFF;
}

// Whether the bytes lie where an edit is plain: all seen by the ICRC, all in the transport headers or the addresses,
// no UDP checksum in use (RDMA NICs send none).
template <std::uint32_t Size>
bool plain(Packet packet, std::uint32_t offset) {
  constexpr std::uint32_t kUnseen = 3u << 6 | 1u << 12;  // by place behind the start of UDP: its checksum, resv8a
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* udp = packet.data() + meta.udp_offset;
  if (udp[6] | udp[7] || !icrc_held(packet) || !Powers::near(meta.datagram_end)) return false;
  const std::uint32_t place = offset - meta.udp_offset;
  if (offset >= meta.udp_offset) return place > 12 || !(kUnseen >> place & ((1u << Size) - 1));
  const std::uint32_t ip = offset - meta.l3_offset;
  return meta.ip_version == 4 ? ip >= 12 && ip + Size <= 20 : ip >= 8 && ip + Size <= 40;
}

template <std::uint32_t Size>
ROCEBOX_CLMUL void edit_plain(Packet packet, std::uint32_t offset, const std::uint8_t* value) {
  if (!plain<Size>(packet, offset)) return edit_any(packet, offset, {value, Size});
  using Bytes = Words<Size>;
  const PacketMeta& meta = packet.meta();
  std::uint8_t* const data = packet.data();
  const std::uint32_t end = meta.datagram_end - kIcrcBytes;
  assert(offset >= meta.l3_offset && offset + Size <= end);
  const std::uint32_t* powers = kPowers.row(end - offset - Size);
  const Bytes from = Bytes::load(data + offset), to = Bytes::load(value);
  if (offset < meta.udp_offset && meta.ip_version == 4)
    change_checksum(reinterpret_cast<Ipv4*>(data + meta.l3_offset)->checksum, from.word, to.word,
                    ((offset - meta.l3_offset + Bytes::kFirst) & 1) == 0);
  std::memcpy(data + offset, value, Size);
  Product sum{};
  for (std::uint32_t i = 0; i < Bytes::kCount; i++)
    sum = add(sum, multiply(from.word[i] ^ to.word[i], powers[4 * (Bytes::kCount - i)]));
  store32(data + end, load32(data + end) ^ reduce(sum));
}

}  // namespace

void edit(Packet packet, std::uint32_t offset, std::span<const std::uint8_t> value) {
  switch (value.size()) {
    case 1:
      if (is_hop_byte(packet.meta(), offset)) return edit_hop_byte(packet, offset, value[0]);
      return edit_plain<1>(packet, offset, value.data());
    case 2:
      return edit_plain<2>(packet, offset, value.data());
    case 3:
      return edit_plain<3>(packet, offset, value.data());
    case 4:
      return edit_plain<4>(packet, offset, value.data());
    case 8:
      return edit_plain<8>(packet, offset, value.data());
    case 16:
      return edit_plain<16>(packet, offset, value.data());
    default:
      return edit_any(packet, offset, value);
  }
}

}  // namespace rocebox::roce
