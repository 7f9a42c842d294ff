// SPDX-License-Identifier: BSD-3-Clause
// After a call into a library that uses AVX-512 or AVX by hand (ISA-L).
#pragma once

namespace rocebox {

/// Marks the upper parts of the vector registers as unused. Some of ISA-L's functions (2.30: the CRCs by VPCLMULQDQ)
/// return without doing so; from then on every SSE instruction, which is what this project and DPDK compile to,
/// carries them along: an ICRC takes fifteen times as long, and all that follows it too. Costs about a nanosecond.
inline void leave_wide_vectors() {
#if defined(__AVX__)
  __builtin_ia32_vzeroupper();
#elif defined(__x86_64__)
  static const bool has_avx = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx") != 0;
  }();
  // Code compiled without AVX keeps nothing in those parts, so there is nothing to tell the compiler.
  if (has_avx) asm volatile("vzeroupper");
#endif
}

}  // namespace rocebox
