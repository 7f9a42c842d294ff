// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic of CRC-32 as polynomials modulo P: what makes an update independent of the bytes between. For icrc.cc.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace rocebox::roce::crc {

// CRC-32 of Ethernet, reflected: bit 31 stands for x^0.
constexpr std::uint32_t kPolynomial = 0xEDB88320u;

constexpr std::uint32_t times_x8(std::uint32_t value) {
  for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
  return value;
}

// a * b without carries, and the remainder of such a product, or of a sum of them, divided by P. Everything is
// reflected, so a product stands one bit too low.
#if defined(__x86_64__)
#define ROCEBOX_CLMUL [[gnu::target("pclmul")]]
using Product = __m128i;
ROCEBOX_CLMUL inline Product multiply(std::uint32_t a, std::uint32_t b) {
  return _mm_clmulepi64_si128(_mm_cvtsi32_si128(static_cast<int>(a)), _mm_cvtsi32_si128(static_cast<int>(b)), 0);
}
inline Product add(Product a, Product b) { return _mm_xor_si128(a, b); }
// Barrett reduction with P and x^64 / P (Gopal et al., "Fast CRC computation using PCLMULQDQ", 2009).
ROCEBOX_CLMUL inline std::uint32_t reduce(Product sum) {
  const __m128i constants = _mm_set_epi64x(0x1F7011641, 0x1DB710641), low = _mm_cvtsi32_si128(-1);
  const __m128i product = _mm_slli_epi64(sum, 1);
  const __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(product, low), constants, 0x10);
  const __m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), constants, 0x00);
  return static_cast<std::uint32_t>(_mm_cvtsi128_si64(_mm_xor_si128(product, multiple)) >> 32);
}
#else
#define ROCEBOX_CLMUL
using Product = std::uint64_t;
inline Product multiply(std::uint32_t a, std::uint32_t b) {
  Product product = 0;
  for (int bit = 0; bit < 32; bit++) product ^= (b >> bit & 1) ? std::uint64_t{a} << bit : 0;
  return product;
}
inline Product add(Product a, Product b) { return a ^ b; }
inline std::uint32_t reduce(Product sum) {
  sum <<= 1;
  for (int bit = 0; bit < 32; bit++) sum = sum >> 1 ^ (sum & 1 ? kPolynomial : 0);
  return static_cast<std::uint32_t>(sum);
}
#endif

// x^(8k) mod P. One table up to the largest jumbo frame, so that an update is one multiplication; longer
// distances take one more.
class Powers {
 public:
  Powers() {
    std::uint32_t power = 0x80000000u;  // x^0
    for (std::uint32_t& entry : powers_) {
      entry = power;
      power = times_x8(power);
    }
    far_ = powers_[kNear];
  }
  ROCEBOX_CLMUL std::uint32_t of(std::uint32_t bytes) const {
    if (bytes < kNear) [[likely]]
      return powers_[bytes];
    std::uint32_t power = powers_[bytes % kNear];
    for (std::uint32_t far = bytes / kNear; far > 0; far--) power = reduce(multiply(power, far_));
    return power;
  }
  static bool near(std::uint32_t bytes) { return bytes <= kNear; }
  const std::uint32_t* row(std::uint32_t bytes) const { return powers_.data() + bytes; }  ///< near ones

 private:
  static constexpr std::uint32_t kNear = 16384;
  std::array<std::uint32_t, kNear + 1> powers_;
  std::uint32_t far_;
};
inline const Powers kPowers;

inline std::uint32_t load32(const void* p) {
  std::uint32_t value;
  std::memcpy(&value, p, 4);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
  return value;
}

inline void store32(void* p, std::uint32_t value) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap32(value);
  std::memcpy(p, &value, 4);
}

}  // namespace rocebox::roce::crc
