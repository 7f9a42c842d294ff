// SPDX-License-Identifier: BSD-3-Clause
// A packet that a rule matches: RoCE where the rule asks for it, else a frame of whatever the rule is about.
#include <algorithm>

#include "runtime/roce/headers.h"
#include "switch_model/acl/rules.h"
#include "switch_model/frames.h"

namespace rocebox::switch_model::acl {
namespace {

constexpr std::uint32_t kFrameBytes = 128;
constexpr std::uint8_t kUnassigned = 253;  // for experiments (RFC 3692)

template <std::size_t N>
bool is_set(const std::array<std::uint8_t, N>& mask) {
  return std::ranges::any_of(mask, [](std::uint8_t byte) { return byte != 0; });
}
unsigned number_of(const std::array<std::uint8_t, 2>& bytes) { return static_cast<unsigned>(bytes[0] << 8 | bytes[1]); }

// Where a row leaves a field open, what other packets have there.
roce::Underlay underlay_of(const Row& row) {
  roce::Underlay underlay;
  if (is_set(row.mask.source_mac)) underlay.source_mac = row.value.source_mac;
  if (is_set(row.mask.destination_mac)) underlay.destination_mac = row.value.destination_mac;
  underlay.vlans = {static_cast<std::uint16_t>(number_of(row.value.vlan)), 0};
  underlay.ip_version = row.value.ip_version == 6 || number_of(row.value.ethertype) == roce::kEtherIpv6 ? 6 : 4;
  underlay.addresses = {row.value.source, row.value.destination};
  underlay.tos = row.value.tos;
  if (is_set(row.mask.source_port))
    underlay.udp_source_port = static_cast<std::uint16_t>(number_of(row.value.source_port));
  return underlay;
}

std::vector<std::uint8_t> frame_of(const Row& row, const roce::Underlay& underlay) {
  std::vector<std::uint8_t> frame(kFrameBytes);
  const std::uint16_t ip_type = underlay.ip_version == 6 ? roce::kEtherIpv6 : roce::kEtherIpv4;
  const auto type = is_set(row.mask.ethertype) ? static_cast<std::uint16_t>(number_of(row.value.ethertype)) : ip_type;
  std::uint32_t at = put_ethernet(frame.data(), underlay, type);
  if (type != ip_type) return frame;
  const std::uint8_t other = row.value.flags & kHasPorts ? roce::kIpProtocolUdp : kUnassigned;
  const std::uint8_t protocol = row.mask.protocol ? row.value.protocol : other;
  const std::uint8_t* ip = frame.data() + at;
  at += put_ip(frame.data() + at, underlay, protocol, kFrameBytes - at);
  // TCP's ports stand in the same places.
  put_udp(frame.data() + at, ip, underlay.ip_version, static_cast<std::uint16_t>(number_of(row.value.source_port)),
          static_cast<std::uint16_t>(number_of(row.value.destination_port)), kFrameBytes - at);
  return frame;
}

}  // namespace

Stimulus stimulus_of(const Row& row) {
  Stimulus stimulus;
  stimulus.underlay = underlay_of(row);
  if (row.value.flags & (kHasBth | kHasQp)) {
    const auto& qp = row.value.destination_qp;
    stimulus.destination_qp = static_cast<std::uint32_t>(qp[0] << 16 | qp[1] << 8 | qp[2]);
  } else {
    stimulus.frame = frame_of(row, stimulus.underlay);
  }
  return stimulus;
}

}  // namespace rocebox::switch_model::acl
