// SPDX-License-Identifier: BSD-3-Clause
// UcReceiver: which UC messages a receiver at this place gets whole.
#pragma once
#include <cstdint>

#include "kernels/inspect/psn_stream.h"

namespace rocebox::inspect {

/// The responder of UC (IB specification, volume 1, 9.8.2): a message is delivered when its packets come one behind the
/// other; a PSN that was not expected ends the message, and all is discarded up to the next FIRST or ONLY, which is
/// accepted whatever its PSN is. Zero bytes when new.
struct UcReceiver {
  Sizes delivered;                   ///< whole messages
  std::uint64_t discarded = 0;       ///< messages of which a part was discarded
  std::uint64_t open_bytes = 0;      ///< of the message under way
  std::uint32_t expected = 0;        ///< PSN
  bool open = false, skips = false;  ///< within a message; within one that is discarded

  void add(const PsnPacket& packet) {
    const bool next = open && packet.psn == expected;
    if (packet.starts) {
      if (open) discarded++;
      skips = false;
      open = true;
      open_bytes = 0;
    } else if (!next) {
      if (open || !skips) discarded++;
      open = false;
      skips = true;
    }
    if (packet.trimmed && open) {
      discarded++;
      open = false;
      skips = true;
    }
    expected = roce::psn_add(packet.psn, 1);
    if (open) open_bytes += packet.payload;
    if (!packet.ends) return;
    if (open) delivered.add(open_bytes);
    open = skips = false;
  }
};

}  // namespace rocebox::inspect
