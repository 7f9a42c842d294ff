// SPDX-License-Identifier: BSD-3-Clause
// What the near host sends in lowar_fuzz.cc: three streams (requests of RC and UC, READ responses with ACKs between
// them) with messages, retransmissions and gaps; and LoWAR packets, which no host has any business to send.
#pragma once
#include <array>
#include <map>

#include "tests/fuzz/lowar_bed.h"

namespace rocebox::fuzz::lowar_bed {

class Hosts {
 public:
  Hosts(const Forger& forger, Random& random, std::uint32_t psn) : forger_(forger), random_(random) { psn_.fill(psn); }

  void step(std::uint8_t byte) {
    const unsigned stream = byte % kStreams, kind = byte / kStreams % 8, packets = 1 + byte / 24;
    if (sent.size() > kPacketsMax) return;
    switch (kind) {
      case 3:
        return message(stream, 16 * packets);
      case 4:
        mtu_[stream] = kMtus[packets % kMtus.size()];
        return message(stream, packets);
      case 5:
        if (stream == 0) return take_psns(packets);
        if (stream == 1) return forge(packets);
        return acknowledge();
      case 6:
        return go_back(stream, packets);
      case 7:
        psn_[stream] += packets;  // what never came to the near gateway, or another READ's
        return;
      default:
        return message(stream, packets);
    }
  }
  /// A message of a stream that nobody has heard of.
  std::vector<Frame> fresh_message() {
    std::vector<Frame> frames;
    for (std::uint32_t psn = 0; psn < kFreshPackets; psn++)
      frames.push_back(made(kFreshQpn, psn, kOpcodes[0][psn == 0 ? 0 : psn + 1 == kFreshPackets ? 2 : 1], kMtus[0]));
    return frames;
  }

  std::vector<Frame> sent;  ///< data packets and ACKs
  ByFrame<unsigned> stream_of;
  std::multimap<std::size_t, Frame> lowar;  ///< LoWAR packets, each by the number of others before it
  std::array<bool, kStreams> went_back{};

 private:
  static constexpr std::size_t kPacketsMax = 1100;
  static constexpr std::uint32_t kFreshPackets = 5;
  static constexpr std::array<std::size_t, 6> kMtus = {64, 256, 260, 1024, 2048, 4096};
  static constexpr std::uint8_t kOpcodes[kStreams][4] = {
      {IBV_OPCODE_RC_RDMA_WRITE_FIRST, IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, IBV_OPCODE_RC_RDMA_WRITE_LAST_WITH_IMMEDIATE,
       IBV_OPCODE_RC_RDMA_WRITE_ONLY},
      {IBV_OPCODE_UC_SEND_FIRST, IBV_OPCODE_UC_SEND_MIDDLE, IBV_OPCODE_UC_SEND_LAST, IBV_OPCODE_UC_SEND_ONLY},
      {IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE,
       IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST, IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY}};
  struct Made {
    std::uint32_t psn;
    std::uint8_t opcode;
    std::size_t bytes;
  };

  void message(unsigned stream, unsigned packets) {
    last_[stream].clear();
    for (unsigned i = 0; i < packets; i++) {
      const unsigned place = packets == 1 ? 3 : i == 0 ? 0 : i + 1 == packets ? 2 : 1;
      add(stream, kOpcodes[stream][place], place < 2 ? mtu_[stream] : 1 + packets * 5 % mtu_[stream]);
    }
  }
  // An atomic, or a READ, which takes as many PSNs as its response has packets.
  void take_psns(unsigned packets) {
    last_[0].clear();
    if (packets % 2) return add(0, IBV_OPCODE_RC_FETCH_ADD, 0);
    dma_length_ = static_cast<std::uint32_t>(packets * mtu_[0]);
    add(0, IBV_OPCODE_RC_RDMA_READ_REQUEST, 0);
    psn_[0] += packets - 1;
  }
  void acknowledge() { put(made(qpn_of(2), psn_[2]++, IBV_OPCODE_RC_ACKNOWLEDGE, 0), 2); }
  // Back into the last message, whose bytes have changed since.
  void go_back(unsigned stream, unsigned packets) {
    const auto& last = last_[stream];
    for (std::size_t i = std::min<std::size_t>(packets - 1, last.size()); i < last.size(); i++)
      put(made(qpn_of(stream), last[i].psn, last[i].opcode, last[i].bytes), stream);
    went_back[stream] = true;
  }
  void forge(unsigned packets) {
    const std::uint32_t qpn = qpn_of(packets % kStreams), psn = psn_[packets % kStreams];
    lowar.emplace(sent.size(), packets < 4   ? forger_.repair(qpn, psn)
                               : packets < 8 ? forger_.negotiation(qpn, psn, 0)
                                             : forger_.proven(qpn, psn, 64u << packets % 8).second);
  }
  void add(unsigned stream, std::uint8_t opcode, std::size_t bytes) {
    last_[stream].push_back({psn_[stream], opcode, bytes});
    put(made(qpn_of(stream), psn_[stream]++, opcode, bytes), stream);
  }
  Frame made(std::uint32_t qpn, std::uint32_t psn, std::uint8_t opcode, std::size_t bytes) {
    roce::PacketSpec spec = forger_.base(qpn, psn);
    spec.opcode = opcode;
    spec.underlay.ip_identification = ++identification_;
    spec.dma_length = dma_length_;
    const Frame payload = random_.bytes(bytes);
    spec.payload = payload;
    return frame_of(*Forger::built(spec));
  }
  void put(Frame frame, unsigned stream) {
    stream_of[frame] = stream;
    sent.push_back(std::move(frame));
  }
  static std::uint32_t qpn_of(unsigned stream) { return kFirstQpn + stream; }

  Forger forger_;
  Random& random_;
  std::array<std::uint32_t, kStreams> psn_;
  std::array<std::size_t, kStreams> mtu_{kMtus[0], kMtus[0], kMtus[0]};
  std::vector<Made> last_[kStreams];  // the packets of the last message
  std::uint32_t dma_length_ = 1;
  std::uint16_t identification_ = 0;
};

}  // namespace rocebox::fuzz::lowar_bed
