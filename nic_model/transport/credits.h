// SPDX-License-Identifier: BSD-3-Clause
// End-to-end credits of an AETH (IB specification, volume 1, 9.7.7.2, table 45): five bits for a number of receive
// requests.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace rocebox::nic_model {

inline constexpr std::uint8_t kCreditsUnlimited = 31;
inline constexpr std::uint32_t kCreditsOfCode[kCreditsUnlimited] = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

/// The code of the greatest number that is not above `receives`.
inline std::uint8_t credit_code(std::uint32_t receives) {
  return static_cast<std::uint8_t>(std::upper_bound(std::begin(kCreditsOfCode), std::end(kCreditsOfCode), receives) -
                                   std::begin(kCreditsOfCode) - 1);
}

}  // namespace rocebox::nic_model
