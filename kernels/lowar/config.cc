// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/config.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/roce/opcodes.h"

namespace rocebox::lowar {
namespace {

constexpr std::array<std::string_view, 5> kMtus = {"256", "512", "1024", "2048", "4096"};
// BTH, and RETH with immediate data or an AtomicETH, whichever is longer.
constexpr std::uint32_t kHeadersMax = sizeof(roce::Bth) + sizeof(roce::AtomicEth);

}  // namespace

std::uint32_t Config::transport_bytes_max() const {
  return kHeadersMax + roce::kPathMtus[static_cast<std::size_t>(roce_mtu)] + roce::kIcrcBytes;
}

Aim Config::aim() const {
  return {target_loss, redundancy_max, static_cast<unsigned>(std::min<std::int64_t>(units, kInterleavingMax))};
}

void Config::fields(Fields& f) {
  f.integer("r", r, {1, kBlockPacketsMax}, "data packets of a coding block");
  f.integer("c", c, {1, kInterleavingMax},
            "repair packets of a block, and the longest burst of losses that a whole block repairs");
  f.choice("roce_mtu", roce_mtu, kMtus,
           "largest payload of a packet that is protected, in bytes; sizes the coding units");
  f.bytes("link_mtu", link_mtu, {512, 65535}, "longest IP datagram on the link; longer repair packets are not made");
  f.integer("streams", streams, {1, kStreamsMax}, "streams of each direction remembered; more go unprotected");
  f.integer("units", units, {1, kUnitsMax},
            "coding units of each direction; when all are bound, blocks go unprotected");
  f.integer("reordering", reordering, {kReorderingMin, kReorderingMax}, "packets in the shared reordering buffer");
  f.integer("reorder", reorder, {0, kReorderMax}, "packets by which one may be overtaken on the link and not be lost");
  f.duration("hold_min", hold_min, {kHoldMin, kHoldMax}, "a packet that waits for a lost one waits at least this");
  f.duration("hold_max", hold_max, {kHoldMin, kHoldMax}, "and no longer than this; between, twice the block's time");
  f.duration("idle", idle, {kIdleMin, kIdleMax}, "a stream that was not used for this gives its place to a new one");
  f.boolean("adapt", adapt, "measures the loss of each stream, and has the far end change its (r, c) by that");
  f.fraction("target_loss", target_loss, {kTargetLossMin, kTargetLossMax},
             "adapt: share of packets that may stay lost, on average");
  f.fraction("redundancy_max", redundancy_max, {kRedundancyMin, 1}, "adapt: most repair packets for a data packet");
  f.duration("dwell", dwell, {kDwellMin, kDwellMax}, "adapt: a stream's (r, c) stays for at least this");
  if (adapt && redundancy({static_cast<std::uint16_t>(r), static_cast<std::uint8_t>(c)}) > redundancy_max)
    f.refuse("redundancy_max", "must be at least c / r, with which a stream begins");
  if (c > r) f.refuse("c", "must not exceed `r`: a repair packet covers at least one data packet");
  if (c > units) f.refuse("units", "must be at least `c`, or no block can be coded");
  if (hold_min > hold_max) f.refuse("hold_min", "must not exceed `hold_max`");
  const std::uint32_t needed = repair_datagram_bytes();
  if (link_mtu < needed)
    f.refuse("link_mtu",
             "is too small: repair packets of `roce_mtu: " + std::string(kMtus[static_cast<std::size_t>(roce_mtu)]) +
                 "` over IPv4 have " + std::to_string(needed) + " bytes; give that, or a smaller `roce_mtu`");
}

std::uint32_t Config::repair_datagram_bytes() const {
  return static_cast<std::uint32_t>(sizeof(roce::Ipv4) + sizeof(roce::Udp) + sizeof(roce::Bth) + sizeof(roce::Reth) +
                                    sizeof(roce::ImmDt) + roce::kIcrcBytes) +
         roce::kPathMtus[static_cast<std::size_t>(roce_mtu)] + kRepairExtraBytes;
}

std::vector<MadeDatagrams> Config::made_datagrams() const {
  return {{kLinkPort, repair_datagram_bytes(), "lower `roce_mtu`, or raise the MTU"}};
}

std::optional<Port> Config::faces_its_like() const { return kLinkPort; }

}  // namespace rocebox::lowar
