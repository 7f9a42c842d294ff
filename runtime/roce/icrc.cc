// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/icrc.h"

#include <isa-l/crc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <cassert>
#include <cstring>

#include "runtime/roce/headers.h"

namespace rocebox::roce {
namespace {

// CRC-32 of Ethernet, reflected: bit 31 stands for x^0.
constexpr std::uint32_t kPolynomial = 0xEDB88320u;

constexpr std::uint32_t times_x8(std::uint32_t value) {
  for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return value;
}

// kReduce[j][b]: byte b at place j of a 32-bit word, times x^32, modulo the polynomial (slicing by four).
constexpr auto kReduce = [] {
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::uint32_t byte = 0; byte < 256; byte++) {
    std::uint32_t value = times_x8(byte);
    for (unsigned place = 3;; place--) {
      table[place][byte] = value;
      if (place == 0) break;
      value = times_x8(value);
    }
  }
  return table;
}();

// word * x^32 mod P.
std::uint32_t times_x32(std::uint32_t word) {
  return kReduce[0][word & 0xFF] ^ kReduce[1][word >> 8 & 0xFF] ^ kReduce[2][word >> 16 & 0xFF] ^ kReduce[3][word >> 24];
}

// The carry-less product, 63 bits.
#if defined(__x86_64__)
[[gnu::target("pclmul")]]
#endif
std::uint64_t carryless_product(std::uint32_t a, std::uint32_t b) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(
      _mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)), _mm_cvtsi32_si128(static_cast<int>(b)), 0)));
#else
  std::uint64_t product = 0;
  for (int bit = 0; bit < 32; bit++) product ^= (b >> bit & 1) ? std::uint64_t{a} << bit : 0;
  return product;
#endif
}

// a * b mod P, all reflected.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = carryless_product(a, b) << 1;
  return static_cast<std::uint32_t>(product >> 32) ^ times_x32(static_cast<std::uint32_t>(product));
}

// x^(8k) mod P. One table up to the largest jumbo frame, so that an update is one multiplication; longer
// distances take one more.
class Powers {
 public:
  Powers() {
    std::uint32_t power = 0x80000000u;  // x^0
    for (std::uint32_t& entry : powers_) entry = power, power = times_x8(power);
    far_ = power;
  }
  std::uint32_t of(std::uint32_t bytes) const {
    std::uint32_t power = powers_[bytes % kNear];
    for (std::uint32_t far = bytes / kNear; far > 0; far--) power = multiply(power, far_);
    return power;
  }

 private:
  static constexpr std::uint32_t kNear = 16384;
  std::array<std::uint32_t, kNear> powers_;
  std::uint32_t far_;
};
const Powers kPowers;

void mask_ipv4(std::uint8_t* header) {
  header[1] = 0xFF;                         // ToS
  header[8] = 0xFF;                         // TTL
  header[10] = header[11] = 0xFF;           // checksum
}
void mask_ipv6(std::uint8_t* header) {
  header[0] |= 0x0F;                        // traffic class and flow label
  header[1] = header[2] = header[3] = 0xFF;
  header[7] = 0xFF;                         // hop limit
}

// Zeroes the bytes of a difference at frame offset `at` that the ICRC does not see.
void unmask_difference(const PacketMeta& meta, std::uint32_t at, std::uint8_t* difference, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; i++) {
    const std::uint32_t offset = at + i;
    const std::uint32_t ip = offset - meta.l3_offset, udp = offset - meta.udp_offset, bth = offset - meta.bth_offset;
    if (meta.ip_version == 4 ? (ip == 1 || ip == 8 || ip == 10 || ip == 11) : (ip - 1 < 3 || ip == 7)) difference[i] = 0;
    else if (meta.ip_version == 6 && ip == 0) difference[i] &= 0xF0;
    else if (udp == 6 || udp == 7 || bth == 4) difference[i] = 0;
  }
}

// One's-complement checksum that follows a change of bytes (RFC 1624, eqn. 3).
class ChecksumChange {
 public:
  void replace(std::uint32_t place, const std::uint8_t* from, const std::uint8_t* to, std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; i++) {
      const unsigned shift = (place + i) & 1 ? 0 : 8;
      sum_ += (0xFFFFu - (std::uint32_t{from[i]} << shift)) + (std::uint32_t{to[i]} << shift);
    }
  }
  std::uint16_t apply(std::uint16_t checksum) const {
    std::uint64_t sum = sum_ + static_cast<std::uint16_t>(~checksum);
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
  }

 private:
  std::uint64_t sum_ = 0;
};

std::uint32_t load32(const void* p) {
  std::uint32_t value;
  std::memcpy(&value, p, 4);
  return value;
}

// The change of the CRC when `difference` (size <= 16) lies `behind` bytes before the end of what is covered.
std::uint32_t crc_change(const std::uint8_t* difference, std::uint32_t size, std::uint32_t behind) {
  std::uint8_t padded[20] = {};  // zeros in front change no CRC that starts from zero
  const std::uint32_t words = (size + 3) / 4;
  std::memcpy(padded + words * 4 - size, difference, size);
  std::uint32_t state = 0;
  for (std::uint32_t word = 0; word + 1 < words; word++) state = times_x32(state ^ load32(padded + word * 4));
  return multiply(state ^ load32(padded + (words - 1) * 4), kPowers.of(behind + 4));
}

}  // namespace

std::uint32_t icrc_compute(Packet packet) {
  const PacketMeta& meta = packet.meta();
  const std::uint8_t* data = packet.data();
  std::uint8_t head[8 + sizeof(Ipv6) + sizeof(Udp) + sizeof(Bth)];
  std::memset(head, 0xFF, 8);  // stands for the LRH, which RoCEv2 does not have
  const std::uint32_t ip_bytes = meta.ip_version == 4 ? sizeof(Ipv4) : sizeof(Ipv6);
  std::memcpy(head + 8, data + meta.l3_offset, ip_bytes);
  if (meta.ip_version == 4) mask_ipv4(head + 8);
  else mask_ipv6(head + 8);
  std::uint32_t filled = 8 + ip_bytes, crc = 0;
  const std::uint32_t options = meta.l3_offset + ip_bytes;
  if (options != meta.udp_offset) [[unlikely]] {  // IPv4 options and IPv6 extension headers are covered as they are
    crc = crc32_gzip_refl(crc, head, filled);
    crc = crc32_gzip_refl(crc, data + options, meta.udp_offset - options);
    filled = 0;
  }
  constexpr std::uint32_t kTransport = sizeof(Udp) + sizeof(Bth);
  std::memcpy(head + filled, data + meta.udp_offset, kTransport);
  head[filled + 6] = head[filled + 7] = 0xFF;  // UDP checksum
  head[filled + sizeof(Udp) + 4] = 0xFF;       // BTH: FECN, BECN, reserved ("resv8a")
  crc = crc32_gzip_refl(crc, head, filled + kTransport);
  const std::uint32_t rest = meta.bth_offset + static_cast<std::uint32_t>(sizeof(Bth));
  return crc32_gzip_refl(crc, data + rest, meta.datagram_end - kIcrcBytes - rest);
}

std::uint32_t icrc_stored(Packet packet) {
  const std::uint8_t* icrc = packet.data() + packet.meta().datagram_end - kIcrcBytes;
  return std::uint32_t{icrc[0]} | std::uint32_t{icrc[1]} << 8 | std::uint32_t{icrc[2]} << 16 | std::uint32_t{icrc[3]} << 24;
}

IcrcStatus icrc_check(Packet packet) {
  if (!icrc_held(packet)) return IcrcStatus::kUnverifiable;
  return icrc_compute(packet) == icrc_stored(packet) ? IcrcStatus::kGood : IcrcStatus::kBad;
}

void icrc_store(Packet packet) {
  const std::uint32_t crc = icrc_compute(packet);
  std::uint8_t* icrc = packet.data() + packet.meta().datagram_end - kIcrcBytes;
  for (unsigned i = 0; i < kIcrcBytes; i++) icrc[i] = static_cast<std::uint8_t>(crc >> 8 * i);
}

void edit(Packet packet, std::uint32_t offset, std::span<const std::uint8_t> value) {
  const PacketMeta& meta = packet.meta();
  std::uint8_t* data = packet.data();
  const auto size = static_cast<std::uint32_t>(value.size());
  assert(meta.bth_offset && size <= 16 && offset >= meta.l3_offset && offset + size <= packet.size());
  std::uint8_t old[16], difference[16];
  for (std::uint32_t i = 0; i < size; i++) {
    old[i] = data[offset + i];
    difference[i] = old[i] ^ value[i];
  }
  std::memcpy(data + offset, value.data(), size);

  const std::uint32_t ip_end = meta.ip_version == 4 ? meta.l3_offset + reinterpret_cast<Ipv4*>(data + meta.l3_offset)->header_bytes() : 0;
  if (offset < ip_end) {
    ChecksumChange change;
    change.replace(offset - meta.l3_offset, old, value.data(), size);
    Be16& checksum = reinterpret_cast<Ipv4*>(data + meta.l3_offset)->checksum;
    checksum = change.apply(static_cast<std::uint16_t>(checksum));
  }

  Be16& udp_checksum = reinterpret_cast<Udp*>(data + meta.udp_offset)->checksum;
  ChecksumChange udp_change;
  const std::uint32_t addresses = meta.l3_offset + (meta.ip_version == 4 ? 12u : 8u);  // where the source address lies
  // The pseudo header and the datagram both begin at even places of the sum.
  if (offset >= meta.udp_offset) udp_change.replace(offset - meta.udp_offset, old, value.data(), size);
  else if (offset >= addresses) udp_change.replace(offset - addresses, old, value.data(), size);

  if (icrc_held(packet)) {
    if (offset < meta.bth_offset + 5u) unmask_difference(meta, offset, difference, size);
    const std::uint32_t end = meta.datagram_end - kIcrcBytes;
    assert(offset + size <= end);
    const std::uint32_t change = crc_change(difference, size, end - offset - size);
    std::uint8_t was[kIcrcBytes];
    std::memcpy(was, data + end, kIcrcBytes);
    for (unsigned i = 0; i < kIcrcBytes; i++) data[end + i] ^= static_cast<std::uint8_t>(change >> 8 * i);
    udp_change.replace(end - meta.udp_offset, was, data + end, kIcrcBytes);
  }
  if (udp_checksum != 0) {
    const std::uint16_t sum = udp_change.apply(static_cast<std::uint16_t>(udp_checksum));
    udp_checksum = sum ? sum : 0xFFFF;
  }
}

}  // namespace rocebox::roce
