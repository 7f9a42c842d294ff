// SPDX-License-Identifier: BSD-3-Clause
// Two gateways with a lossy link between them, as lists of packets.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/lowar/image.h"
#include "kernels/lowar/lowar.h"
#include "kernels/lowar/repair_header.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"
#include "tests/unit/harness.h"

namespace rocebox::lowar::kit {

using Frame = std::vector<std::uint8_t>;
using roce::PacketSpec;
inline constexpr Port kHost = 0, kLink = 1;

/// Small tables: thousands of gateways are made, and their memory is cleared each time.
inline Config coding(std::int64_t r, std::int64_t c) {
  Config config;
  config.r = r, config.c = c;
  config.streams = 64, config.units = 128, config.reordering = 512;
  return config;
}

/// Frames of RDMA messages on one connection, each with bytes that no other has.
class Sender {
 public:
  explicit Sender(std::uint64_t first_psn = 0, std::uint32_t to_qpn = 0x12)
      : psn(static_cast<std::uint32_t>(first_psn)), qpn(to_qpn) {}

  std::vector<Frame> write(unsigned packets, std::size_t last_bytes = 100) {
    return message(packets, last_bytes, IBV_OPCODE_RC_RDMA_WRITE_FIRST, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE,
                   IBV_OPCODE_RC_RDMA_WRITE_LAST, IBV_OPCODE_RC_RDMA_WRITE_ONLY);
  }
  std::vector<Frame> uc_send_imm(unsigned packets, std::size_t last_bytes = 7) {
    return message(packets, last_bytes, IBV_OPCODE_UC_SEND_FIRST, IBV_OPCODE_UC_SEND_MIDDLE,
                   IBV_OPCODE_UC_SEND_LAST_WITH_IMMEDIATE, IBV_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE);
  }
  std::vector<Frame> read_response(unsigned packets, std::size_t last_bytes = 30) {
    return message(packets, last_bytes, IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
                   IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY);
  }
  Frame one(std::uint8_t opcode, std::size_t bytes = 0, std::uint32_t dma_length = 0) {
    PacketSpec spec = base(opcode);
    const Frame payload = fill(bytes);
    spec.payload = payload;
    spec.dma_length = dma_length;
    psn++;
    return test::frame(spec);
  }
  PacketSpec base(std::uint8_t opcode) {
    PacketSpec spec;
    spec.opcode = opcode, spec.psn = psn & roce::kPsnMask, spec.destination_qp = qpn;
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    spec.underlay.ip_version = ip_version;
    spec.underlay.ip_identification = ++identification;
    spec.underlay.tos = tos;
    spec.virtual_address = 0x1000u * psn, spec.rkey = 7, spec.dma_length = 5000, spec.immediate = 0xABCD + psn;
    return spec;
  }

  std::uint32_t psn, qpn;
  std::size_t mtu = 256;
  std::uint8_t ip_version = 4, tos = 2;
  std::uint16_t identification = 0;  ///< of the last IPv4 packet

 private:
  std::vector<Frame> message(unsigned packets, std::size_t last_bytes, std::uint8_t first, std::uint8_t middle,
                             std::uint8_t last, std::uint8_t only) {
    std::vector<Frame> frames;
    for (unsigned i = 0; i < packets; i++) {
      const bool is_last = i + 1 == packets;
      frames.push_back(one(packets == 1 ? only : i == 0 ? first : is_last ? last : middle, is_last ? last_bytes : mtu));
    }
    return frames;
  }
  Frame fill(std::size_t bytes) {
    Frame payload(bytes);
    for (auto& byte : payload) byte = static_cast<std::uint8_t>((state_ = state_ * 6364136223846793005ull + 1) >> 56);
    return payload;
  }
  std::uint64_t state_ = 99;
};

inline void append(std::vector<Frame>& to, const std::vector<Frame>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// A packet as it crosses the link.
struct Crossing {
  Frame bytes;
  bool data = false;                   ///< else a LoWAR packet
  std::optional<RepairHeader> repair;  ///< of repair packets
  std::uint32_t psn = 0;               ///< of data packets; where the sequence begins that this announces
};

/// One gateway.
struct Gateway : test::KernelBox {
  explicit Gateway(const Config& config)
      : KernelBox([config](Stats& s) { return lowar::make(config, s); }, 1, Shape::kTwoSided, 2, 2,
                  {.small = 1024, .large = 16, .giant = 2}) {}

  /// What the gateway puts on the link for these packets of the host, 1 us apart.
  std::vector<Crossing> encode(const std::vector<Frame>& frames) {
    out.clear();
    for (const Frame& frame : frames) send(clock += kMicrosecond, kHost, frame);
    std::vector<Crossing> result;
    for (const test::Out& o : out) {
      EXPECT_EQ(o.port, kLink);
      result.push_back(crossing(o));
    }
    return result;
  }
  /// What it hands to the host for these packets of the link, 1 us apart; then all timers.
  std::vector<Frame> decode(const std::vector<Crossing>& crossings, bool to_the_end = true) {
    out.clear();
    for (const Crossing& c : crossings) send(clock += kMicrosecond, kLink, c.bytes);
    if (to_the_end) {
      drain();
      clock += 10 * kSecond;  // no timer was later
    }
    std::vector<Frame> result;
    for (const test::Out& o : out) {
      EXPECT_EQ(o.port, kHost);
      result.push_back(o.bytes);
    }
    return result;
  }
  std::uint64_t count(const char* name) const { return stats.read(name); }

  Nanos clock = 0;

 private:
  Crossing crossing(const test::Out& o) {
    Crossing c;
    c.bytes = o.bytes;
    c.data = o.meta.status == ParseStatus::kRoce;
    if (c.data) {
      c.psn = static_cast<std::uint32_t>(reinterpret_cast<const roce::Bth*>(o.bytes.data() + o.meta.bth_offset)->psn);
    } else if (o.meta.status == ParseStatus::kReservedOpcode) {
      const std::size_t from = o.meta.bth_offset;
      const std::span bytes(o.bytes.data() + from, o.meta.datagram_end - from - roce::kIcrcBytes);
      c.repair = parse_repair(bytes);
      if (const auto header = parse_negotiation(bytes)) c.psn = header->base_psn;
    }
    return c;
  }
};

/// The indices of data packets among the crossings.
inline std::vector<std::size_t> data_of(const std::vector<Crossing>& crossings) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].data) result.push_back(i);
  return result;
}

inline std::vector<Crossing> without(const std::vector<Crossing>& crossings, const std::set<std::size_t>& lost) {
  std::vector<Crossing> result;
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (!lost.contains(i)) result.push_back(crossings[i]);
  return result;
}

/// The data packets among the crossings.
inline std::vector<Frame> data_frames(const std::vector<Crossing>& crossings) {
  std::vector<Frame> result;
  for (const Crossing& crossing : crossings)
    if (crossing.data) result.push_back(crossing.bytes);
  return result;
}

/// Index of the data packet with this PSN.
inline std::size_t at_psn(const std::vector<Crossing>& crossings, std::uint32_t psn) {
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].data && crossings[i].psn == psn) return i;
  ADD_FAILURE() << "no PSN " << psn;
  return 0;
}
inline std::size_t repair_of(const std::vector<Crossing>& crossings, std::uint32_t base, unsigned isn = 0) {
  for (std::size_t i = 0; i < crossings.size(); i++)
    if (crossings[i].repair && crossings[i].repair->block.base_psn == base && crossings[i].repair->isn == isn) return i;
  ADD_FAILURE() << "no repair packet of " << base;
  return 0;
}

/// The link with these packets moved behind the one at `behind`, which is not one of them.
inline std::vector<Crossing> overtaken(const std::vector<Crossing>& crossings, const std::set<std::size_t>& late,
                                       std::size_t behind) {
  std::vector<Crossing> result;
  for (std::size_t i = 0; i < crossings.size(); i++) {
    if (!late.contains(i)) result.push_back(crossings[i]);
    if (i != behind) continue;
    for (const std::size_t index : late) result.push_back(crossings[index]);
  }
  return result;
}

/// The frames in their order, each where it comes first.
inline std::vector<Frame> without_copies(const std::vector<Frame>& frames) {
  std::set<Frame> seen;
  std::vector<Frame> result;
  for (const Frame& frame : frames)
    if (seen.insert(frame).second) result.push_back(frame);
  return result;
}

/// Changes a frame and makes its ICRC right again: what a forger does.
inline Crossing forged(Crossing crossing, const std::function<void(Frame&)>& change) {
  change(crossing.bytes);
  static Pool pool({.small = 16, .large = 4, .giant = 2});
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(crossing.bytes.size()));
  std::copy(crossing.bytes.begin(), crossing.bytes.end(), packet->data());
  roce::parse(*packet);
  roce::icrc_store(*packet);
  crossing.bytes.assign(packet->data(), packet->data() + packet->size());
  return crossing;
}
/// Where a LoWAR packet over IPv4 has its header, and what follows it.
inline constexpr std::size_t kHeader = 14 + 20 + 8, kImage = kHeader + sizeof(HeaderBytes);

/// A message of twenty packets through LoWAR(8, 1).
class TwentyPackets : public testing::Test {
 protected:
  TwentyPackets() : near(coding(8, 1)), far(coding(8, 1)) { crossings = near.encode(sender.write(20, 256)); }
  Gateway near, far;
  Sender sender{100};
  std::vector<Crossing> crossings;  // announcement, 8 data, repair, 8 data, repair, 4 data, repair
};

}  // namespace rocebox::lowar::kit
