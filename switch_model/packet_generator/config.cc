// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/packet_generator/config.h"

#include <fmt/format.h>

#include <set>

#include "switch_model/frames.h"

namespace rocebox::switch_model {
namespace {

constexpr std::int64_t kCountMax = 65536;  // numbers of batches and packets have 16 bits
constexpr Nanos kTimeMax = 3600 * kSecond, kEveryMin = kMicrosecond;
constexpr std::size_t kFrameMin = 14, kFrameMax = 9216;
constexpr std::uint64_t kPayloadMax = 9000;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "0200 0000 0002", "02:00:00"; false when there is anything else, or half a byte.
bool parse_hex(const std::string& text, std::vector<std::uint8_t>& bytes) {
  int high = -1;
  for (const char c : text) {
    if (high < 0 && (c == ' ' || c == ':' || c == '\n')) continue;
    const int digit = hex_digit(c);
    if (digit < 0) return false;
    if (high >= 0) bytes.push_back(static_cast<std::uint8_t>(high << 4 | digit));
    high = high < 0 ? digit : -1;
  }
  return high < 0;
}

}  // namespace

void PacketTemplate::fields(Fields& f) {
  f.text("hex", hex, "the whole frame without FCS, as hexadecimal digits, in place of all else");
  std::vector<std::uint8_t> bytes;
  if (!hex.empty() && !parse_hex(hex, bytes))
    f.refuse("hex", "must hold two hexadecimal digits a byte, with spaces or colons between bytes");
  else if (!hex.empty() && (bytes.size() < kFrameMin || bytes.size() > kFrameMax))
    f.refuse("hex", fmt::format("must have {} to {} bytes, has {}", kFrameMin, kFrameMax, bytes.size()));
  f.mac("source_mac", source_mac, Presence::kRequired, "source MAC address");
  f.mac("destination_mac", destination_mac, Presence::kRequired, "destination MAC address");
  f.integer("vlan", vlan, {0, 4095}, "VLAN identifier; 0: untagged");
  f.address("source", source, Presence::kRequired, "source IP address");
  f.address("destination", destination, Presence::kRequired, "destination IP address");
  if (source && destination && roce::is_ipv4(*source) != roce::is_ipv4(*destination))
    f.refuse("destination", "is of another address family than `source`");
  f.integer("dscp", dscp, {0, 63}, "DSCP");
  f.integer("ttl", ttl, {0, 255}, "TTL or hop limit");
  f.integer("source_port", source_port, {0, 65535}, "UDP source port");
  f.integer("destination_port", destination_port, {0, 65535}, "UDP destination port");
  f.bytes("payload", payload, {0, kPayloadMax}, "bytes of zero behind the UDP header");
}

std::vector<std::uint8_t> PacketTemplate::frame() const {
  std::vector<std::uint8_t> frame;
  if (!hex.empty()) {
    parse_hex(hex, frame);
    return frame;
  }
  roce::Underlay underlay;
  underlay.source_mac = *source_mac;
  underlay.destination_mac = *destination_mac;
  underlay.addresses = {*source, *destination};
  underlay.vlans = {static_cast<std::uint16_t>(vlan), 0};
  underlay.ip_version = roce::is_ipv4(underlay.addresses.source) ? 4 : 6;
  underlay.tos = static_cast<std::uint8_t>(dscp << 2);
  underlay.ttl = static_cast<std::uint8_t>(ttl);
  frame.resize(sizeof(roce::Ethernet) + sizeof(roce::VlanTag) + sizeof(roce::Ipv6) + sizeof(roce::Udp) + payload);
  const auto udp_bytes = static_cast<std::uint32_t>(sizeof(roce::Udp) + payload);
  const std::uint32_t ip_at =
      put_ethernet(frame.data(), underlay, underlay.ip_version == 4 ? roce::kEtherIpv4 : roce::kEtherIpv6);
  const std::uint32_t ip_header = underlay.ip_version == 4 ? sizeof(roce::Ipv4) : sizeof(roce::Ipv6);
  const std::uint32_t udp_at =
      ip_at + put_ip(frame.data() + ip_at, underlay, roce::kIpProtocolUdp, ip_header + udp_bytes);
  put_udp(frame.data() + udp_at, frame.data() + ip_at, underlay.ip_version, static_cast<std::uint16_t>(source_port),
          static_cast<std::uint16_t>(destination_port), udp_bytes);
  frame.resize(udp_at + udp_bytes);
  return frame;
}

void ApplicationConfig::fields(Fields& f, const SwitchInfo& info) {
  f.text("name", name, "its name in the report; empty: its number, from 1");
  info.read_port(f, "port", port, "port of the switch that its packets enter ingress by");
  f.duration("start", start, {0, kTimeMax}, "time of its trigger, or of the first, from the start of the run");
  f.duration("every", every, {0, kTimeMax}, "time from one trigger to the next; 0: there is one");
  f.integer("times", times, {0, INT64_MAX}, "how many triggers, with `every`; 0: without end");
  f.integer("batches", batches, {1, kCountMax}, "batches that a trigger starts");
  f.integer("packets", packets, {1, kCountMax}, "packets of a batch");
  f.duration("batch_gap", batch_gap, {0, kTimeMax}, "time from the last packet of a batch to the first of the next");
  f.duration("packet_gap", packet_gap, {0, kSecond}, "time from one packet of a batch to the next");
  f.group("packet", "what is sent: bytes, or a UDP datagram with right checksums",
          [&](Fields& g) { packet.fields(g); });
  if (batches > 1 && batch_gap == 0) f.refuse("batch_gap", "must not be 0 where there are several batches");
  if (every == 0 && times > 1) f.refuse("times", "needs `every`, the time between triggers");
  if (every != 0 && every < kEveryMin) f.refuse("every", "must be 1us at least");
  // A batch takes 65536 s at most, so that this does not overflow.
  if (every != 0 && every <= duration()) f.refuse("every", "is not longer than what a trigger starts takes");
}

void read_applications(Fields& f, std::vector<ApplicationConfig>& applications, const SwitchInfo& info) {
  f.list("packet_generator", applications, kApplicationsMax,
         "applications of the packet generator: packets that the switch makes by itself",
         [&](Fields& g, ApplicationConfig& application) { application.fields(g, info); });
  std::set<std::string> names;
  for (std::size_t i = 0; i < applications.size(); i++) {
    if (applications[i].name.empty()) applications[i].name = fmt::format("{}", i + 1);
    if (!names.insert(applications[i].name).second)
      f.refuse("packet_generator", fmt::format("has two named `{}`", applications[i].name));
  }
}

}  // namespace rocebox::switch_model
