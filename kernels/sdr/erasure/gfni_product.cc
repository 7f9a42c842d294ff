// SPDX-License-Identifier: BSD-3-Clause
// The product by GFNI: one instruction multiplies 64 bytes, where tables take two shuffles and a sum.
#include "kernels/sdr/erasure/matrix_product.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rocebox::sdr {

#if defined(__x86_64__)
namespace {

constexpr unsigned kOutputsAtOnce = 8;  // sums that stay in registers
constexpr std::size_t kLineBytes = 64;

// `kCount` outputs; the bytes behind the last whole line by a mask.
template <unsigned kCount>
__attribute__((target("avx512f,avx512bw,gfni"))) void some_outputs(const std::uint64_t* matrices, unsigned inputs,
                                                                   const std::uint8_t* const* in,
                                                                   std::uint8_t* const* out, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) {
    const std::size_t left = bytes - at;
    const __mmask64 mask = left >= kLineBytes ? ~0ull : (1ull << left) - 1;
    __m512i sums[kCount];
    for (unsigned i = 0; i < kCount; i++) sums[i] = _mm512_setzero_si512();
    for (unsigned j = 0; j < inputs; j++) {
      const __m512i data = _mm512_maskz_loadu_epi8(mask, in[j] + at);
      for (unsigned i = 0; i < kCount; i++) {
        const __m512i matrix = _mm512_set1_epi64(static_cast<long long>(matrices[i * inputs + j]));
        sums[i] = _mm512_xor_si512(sums[i], _mm512_gf2p8affine_epi64_epi8(data, matrix, 0));
      }
    }
    for (unsigned i = 0; i < kCount; i++) _mm512_mask_storeu_epi8(out[i] + at, mask, sums[i]);
  }
}

}  // namespace

bool has_gfni() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("gfni");
}

void gfni_product(const std::uint64_t* matrices, unsigned inputs, unsigned outputs, const std::uint8_t* const* in,
                  std::uint8_t* const* out, std::size_t bytes) {
  using Some = void (*)(const std::uint64_t*, unsigned, const std::uint8_t* const*, std::uint8_t* const*, std::size_t);
  static constexpr Some kSome[kOutputsAtOnce] = {&some_outputs<1>, &some_outputs<2>, &some_outputs<3>,
                                                 &some_outputs<4>, &some_outputs<5>, &some_outputs<6>,
                                                 &some_outputs<7>, &some_outputs<8>};
  for (unsigned first = 0; first < outputs; first += kOutputsAtOnce) {
    const unsigned count = outputs - first < kOutputsAtOnce ? outputs - first : kOutputsAtOnce;
    kSome[count - 1](matrices + std::size_t{first} * inputs, inputs, in, out + first, bytes);
  }
}
#else
bool has_gfni() { return false; }
void gfni_product(const std::uint64_t*, unsigned, unsigned, const std::uint8_t* const*, std::uint8_t* const*,
                  std::size_t) {
  __builtin_trap();
}
#endif

}  // namespace rocebox::sdr
