// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

std::string full_pci(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  return address.size() < sizeof "0000:00:00.0" - 1 ? "0000:" + address : address;
}

// What only one port can be bound to, as a message names it; empty: any number can. A ring has two ends, which are
// counted when it is made.
std::string exclusive(const LivePortOptions& live) {
  switch (live.kind) {
    case PortKind::kAfPacket:
      return fmt::format("interface `{}`", live.af_packet);
    case PortKind::kAfXdp:
      return fmt::format("interface `{}`", live.af_xdp);
    case PortKind::kTap:
      return fmt::format("interface `{}`", live.tap);
    case PortKind::kPci:
      return fmt::format("NIC {}", full_pci(live.pci));
    case PortKind::kMemif:
      return fmt::format("the {} of memif `{}` id {}", live.memif.role == 0 ? "server" : "client", live.memif.socket,
                         live.memif.id);
    case PortKind::kDevargs:
      return fmt::format("DPDK device `{}`", live.devargs.substr(0, live.devargs.find(',')));
    case PortKind::kRing:
    case PortKind::kNull:
    case PortKind::kUnbound:
      break;
  }
  return "";
}

}  // namespace

void refuse_shared_interfaces(const RunConfig& config, Mistakes& mistakes) {
  std::map<std::string, const LiveBinding*> first;
  for (const LiveBinding& binding : config.live_ports) {
    const std::string what = exclusive(binding.live);
    if (what.empty()) continue;
    const auto [found, is_new] = first.emplace(what, &binding);
    if (is_new) continue;
    const LiveBinding& other = *found->second;
    const std::string by = other.place.is_known() ? mistakes.line_text(other.place) : "--port";
    mistakes.add(binding.place,
                 fmt::format("port `{}`: {} is bound to port `{}` already ({}); give each port one of its own",
                             binding.port.text(), what, other.port.text(), by));
  }
}

}  // namespace rocebox::config
