// SPDX-License-Identifier: BSD-3-Clause
// LoWAR's own packets in the traffic of the tests that run every kernel.
#include <cstring>

#include "kernels/lowar/repair_header.h"
#include "runtime/packet/pool.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"
#include "tests/unit/contracts/traffic.h"

namespace rocebox::test::lowar_traffic {
namespace {

void make_lowar(TrafficPacket& packet, std::mt19937_64& random) {
  static Pool pool({.small = 16, .large = 4, .giant = 2});
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const bool repair = below(2) && packet.bytes.size() > 120;
  lowar::HeaderBytes header{};
  PacketPtr made = pool.allocate(static_cast<std::uint32_t>(packet.bytes.size()));
  std::memcpy(made->data(), packet.bytes.data(), packet.bytes.size());
  roce::parse(*made);
  const std::uint32_t at = made->meta().bth_offset;
  if (made->meta().datagram_end - at < sizeof header + roce::kIcrcBytes) return;
  const roce::Bth bth = roce::bth(*made);
  header.opcode = roce::kOpcodeReserved;
  header.qpn = static_cast<std::uint32_t>(bth.destination_qp);
  header.type = repair ? lowar::kTypeRepair : lowar::kTypeNegotiation;
  header.version_flags = static_cast<std::uint8_t>(lowar::kVersion << 4 | (below(4) == 0 ? below(16) : 0));
  header.c = static_cast<std::uint8_t>(below(3));
  header.r = header.c ? header.c + below(8) : 0;
  header.base_psn = (static_cast<std::uint32_t>(bth.psn) - below(6)) & roce::kPsnMask;
  header.isn = static_cast<std::uint8_t>(repair ? below(2) : 1 + below(3));
  header.packets = repair ? 1 + below(4) : below(3);
  header.sent = static_cast<std::uint8_t>(repair ? below(3) : 0);
  header.last_bytes = repair ? 0 : below(3);
  header.set_sum = repair ? static_cast<std::uint32_t>(random()) : below(2);
  std::memcpy(made->data() + at, &header, sizeof header);
  roce::parse(*made);
  roce::icrc_store(*made);
  packet.bytes.assign(made->data(), made->data() + made->size());
  packet.mark = 0;
}

[[maybe_unused]] const bool kAdded = (own_packets().push_back(&make_lowar), true);

}  // namespace
}  // namespace rocebox::test::lowar_traffic
