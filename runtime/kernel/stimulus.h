// SPDX-License-Identifier: BSD-3-Clause
// Stimulus: headers of packets that a kernel would act upon, to check it without traffic.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/roce/build.h"

namespace rocebox {

struct Stimulus {
  roce::Underlay underlay;
  std::uint32_t destination_qp = 0;  ///< 0: any
  /// A whole frame, sent alone in place of RoCE packets under `underlay`; empty: none.
  std::vector<std::uint8_t> frame{};
  /// One packet, sent alone in place of those under `underlay`, with this `payload`.
  std::optional<roce::PacketSpec> packet{};
  std::vector<std::uint8_t> payload{};
  std::uint8_t bth_reserved = 0;  ///< bits beside FECN and BECN that `packet` has in BTH's byte 4; no ICRC covers them
  std::optional<Port> in{};       ///< the port that it comes in by; none: each of them
  /// Ports that packets under `underlay` leave by, as far as who adds it knows: equal paths are several.
  std::vector<Port> leads_to{};
};

}  // namespace rocebox
