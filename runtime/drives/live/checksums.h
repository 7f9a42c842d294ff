// SPDX-License-Identifier: BSD-3-Clause
// Checksums that a host on this machine has left unfinished.
#pragma once
#include "runtime/packet/packet.h"

namespace rocebox {

/// A host's stack that believes in checksum offload writes the sum of the pseudo header into the TCP or UDP checksum
/// field and leaves the rest to hardware; over veth there is none, and the next host drops the packet. Finishes such a
/// checksum and says so; leaves every other packet alone. `packet` is an Ethernet frame, parsed or not.
bool finish_checksum(Packet packet);

/// The same where the host has said what is to be done.
void finish_checksum(Packet packet, const HostOffload& offload);

}  // namespace rocebox
