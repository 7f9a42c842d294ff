// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/live_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "runtime/config/units.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

constexpr std::string_view kRoles[] = {"server", "client"};
constexpr std::string_view kPortLost[] = {"wait", "end"};
constexpr std::string_view kIdles[] = {"poll", "pause", "interrupt"};

// [domain:]bus:device.function, in hexadecimal.
bool is_pci_address(std::string_view text) {
  static constexpr std::string_view kForms[] = {"xxxx:xx:xx.x", "xx:xx.x"};
  auto fits = [text](std::string_view form) {
    return std::equal(text.begin(), text.end(), form.begin(), form.end(),
                      [](char c, char f) { return f == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) : c == f; });
  };
  return std::any_of(std::begin(kForms), std::end(kForms), fits);
}

}  // namespace

void LivePortOptions::Memif::fields(Fields& f) {
  f.text("socket", socket, "path of the control socket");
  f.integer("id", id, {0, UINT32_MAX}, "which connection over that socket");
  f.choice("role", role, kRoles, "which side of the connection this is");
}

void LivePortOptions::Null::fields(Fields& f) {
  f.bytes("packet_bytes", packet_bytes, {60, 9000}, "length of each packet that arrives, as fast as it is taken");
  f.boolean("copy", copy, "whether the bytes are moved, or only counted");
}

void LivePortOptions::fields(Fields& f) {
  f.text("af_packet", af_packet, "a network interface, through an AF_PACKET socket");
  f.text("af_xdp", af_xdp, "a network interface, through an AF_XDP socket");
  f.text("tap", tap, "a TAP interface that is made, and gone when the run ends");
  f.text("pci", pci, "the PCI address of a NIC bound to a DPDK driver, such as 0000:3b:00.0");
  if (!pci.empty() && !is_pci_address(pci))
    f.refuse("pci", fmt::format("must be a PCI address such as 0000:3b:00.0 (`lspci -D`); found `{}`", pci));
  f.group("memif", "a shared-memory interface", [this](Fields& g) { memif.fields(g); });
  f.group("net_null", "packets out of nothing, and into it", [this](Fields& g) { net_null.fields(g); });
  f.text("ring", ring, "a name; the two ports that have it are joined back to back by queues");
  f.text("devargs", devargs, "any DPDK device, as with --vdev or -a, such as net_pcap0,rx_pcap=a.pcap,infinite_rx=1");
  f.bytes("mtu", mtu, {0, 9216}, "MTU to set; 0: as the port has it");
  f.boolean("promiscuous", promiscuous, "whether packets for other MAC addresses are taken too");
  f.boolean(
      "finish_checksums", finish_checksums,
      "whether TCP and UDP checksums that a host left to its hardware are computed (af_xdp; af_packet passes them on)");
  f.integer("rx_descriptors", rx_descriptors, {32, 32768}, "length of a receive queue, in packets");
  f.integer("tx_descriptors", tx_descriptors, {32, 32768}, "length of a transmit queue, in packets");
  constexpr std::pair<std::string_view, PortKind> kKinds[] = {
      {"af_packet", PortKind::kAfPacket}, {"af_xdp", PortKind::kAfXdp},   {"tap", PortKind::kTap},
      {"memif", PortKind::kMemif},        {"pci", PortKind::kPci},        {"net_null", PortKind::kNull},
      {"ring", PortKind::kRing},          {"devargs", PortKind::kDevargs}};
  bindings = 0;
  for (const auto& [name, each] : kKinds) {
    if (!f.given(name)) continue;
    kind = each;
    bindings++;
  }
}

std::string LivePortOptions::text() const {
  switch (kind) {
    case PortKind::kAfPacket:
      return "af_packet " + af_packet;
    case PortKind::kAfXdp:
      return "af_xdp " + af_xdp;
    case PortKind::kTap:
      return "tap " + tap;
    case PortKind::kMemif:
      return fmt::format("memif {} id {}", memif.socket, memif.id);
    case PortKind::kPci:
      return "pci " + pci;
    case PortKind::kNull:
      return "net_null";
    case PortKind::kRing:
      return "ring " + ring;
    case PortKind::kDevargs:
      return "devargs " + devargs;
    case PortKind::kUnbound:
      break;
  }
  return "unbound";
}

void LiveOptions::fields(Fields& f) {
  f.choice("idle", idle, kIdles,
           "what a core does when nothing arrives: poll on, pause ever longer, or sleep until a port wakes it");
  f.duration("idle_sleep", idle_sleep, {kMicrosecond, kMillisecond}, "longest pause while idle");
  f.integer("burst", burst, {1, kBatchMax}, "packets taken from a port at a time");
  f.integer("shards", shards, {1, kShardsMax}, "instances of the datapath, each on a core; --cores sets the cores");
  f.choice(
      "port_lost", port_lost, kPortLost,
      "when the interface of a port goes away: wait until one of its name is there again, or end the run with exit "
      "status 1");
  f.text("metrics", metrics,
         "address and port where /metrics is served as OpenMetrics, such as 127.0.0.1:9464; empty: nowhere");
  if (!metrics.empty() && !parse_socket_address(metrics))
    f.refuse("metrics", fmt::format("is no ADDRESS:PORT: `{}`; write such as 127.0.0.1:9464 or [::1]:9464", metrics));
}

}  // namespace rocebox::config
