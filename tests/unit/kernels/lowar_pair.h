// SPDX-License-Identifier: BSD-3-Clause
// Two gateways in virtual time, with a lossy link one way and a way back for what the far one asks.
#pragma once
#include <deque>
#include <map>
#include <utility>

#include "tests/unit/kernels/lowar_kit.h"
#include "tests/unit/kernels/lowar_oracle.h"

namespace rocebox::lowar::kit {

inline std::optional<NegotiationHeader> negotiation_of(const test::Out& o) {
  if (o.meta.status != ParseStatus::kReservedOpcode) return {};
  const std::size_t from = o.meta.bth_offset;
  return parse_negotiation({o.bytes.data() + from, o.meta.datagram_end - from - roce::kIcrcBytes});
}

/// A gateway that adapts, with a target that few packets show.
inline Config adaptive(double target_loss, double redundancy_max = 0.5) {
  Config config = coding(32, 1);
  config.adapt = true;
  config.target_loss = target_loss;
  config.redundancy_max = redundancy_max;
  config.dwell = 5 * kMillisecond;
  return config;
}

class Pair {
 public:
  Pair(const Config& near_config, const Config& far_config, oracle::Channel channel = {}, std::uint64_t seed = 1)
      : near(std::make_unique<Gateway>(near_config)),
        far(std::make_unique<Gateway>(far_config)),
        link(channel, seed),
        back_link({}, seed + 1) {}

  void send(const std::vector<Frame>& frames) {
    for (const Frame& frame : frames) send(frame);
  }
  /// The host's packet crosses; each goes 10 us after the one before.
  void send(const Frame& frame) {
    clock += 10 * kMicrosecond;
    while (!back.empty() && back.front().first <= clock) {
      near->out.clear();
      near->send(clock, kLink, back.front().second);
      EXPECT_TRUE(near->out.empty()) << "requests end here";
      back.pop_front();
    }
    near->out.clear();
    near->send(clock, kHost, frame);
    sent[qpn_of_frame(frame)].push_back(frame);
    for (const test::Out& o : near->out) cross(o);
  }
  /// `count` data packets in messages of `message` packets.
  void send_messages(Sender& sender, unsigned count, unsigned message = 16) {
    for (unsigned i = 0; i < count; i += message) send(sender.write(message, 256));
  }
  /// The setting of the newest repair packet or negotiation packet of this QP on the link.
  Coding setting(const Sender& sender) const { return on_link.at(sender.qpn); }

  std::unique_ptr<Gateway> near, far;
  oracle::LossProcess link, back_link;
  std::deque<std::pair<Nanos, Frame>> back;  ///< what the far gateway sends, and when it is there
  std::map<std::uint32_t, Coding> on_link;
  std::map<std::uint32_t, std::deque<Frame>> sent;  ///< and not delivered, by QPN
  std::uint64_t data_lost = 0, delivered = 0, requests = 0, not_delivered = 0;
  std::vector<Nanos> asked_at;  ///< when another setting was asked for
  Nanos clock = 0, round_trip = kMillisecond;

 private:
  static std::uint32_t qpn_of_frame(const Frame& frame) {
    const std::size_t bth = frame[12] == 0x08 ? kHeader : kHeader + 20;
    return static_cast<std::uint32_t>(reinterpret_cast<const roce::Bth*>(frame.data() + bth)->destination_qp);
  }
  void cross(const test::Out& o) {
    ASSERT_EQ(o.port, kLink);
    if (const auto header = negotiation_of(o)) {
      on_link[header->qpn] = header->coding;
    } else if (o.meta.status == ParseStatus::kReservedOpcode) {
      const std::size_t from = o.meta.bth_offset;
      const auto repair = parse_repair({o.bytes.data() + from, o.meta.datagram_end - from - roce::kIcrcBytes});
      ASSERT_TRUE(repair);
      on_link[repair->qpn] = repair->block.coding;
    }
    if (link.next_is_lost()) {
      data_lost += o.meta.status == ParseStatus::kRoce;
      return;
    }
    far->out.clear();
    far->send(clock, kLink, o.bytes);
    for (const test::Out& left : far->out) {
      if (left.port == kLink)
        requested(left);
      else
        deliver(left);
    }
  }
  void requested(const test::Out& o) {
    const auto header = negotiation_of(o);
    ASSERT_TRUE(header && header->kind == NegotiationKind::kRequest);
    requests++;
    if (const auto newest = std::exchange(serial_[header->qpn], header->serial); newest != header->serial)
      asked_at.push_back(clock);
    if (!back_link.next_is_lost()) back.emplace_back(clock + round_trip, o.bytes);
  }
  // In order, as it was sent.
  void deliver(const test::Out& o) {
    std::deque<Frame>& waiting = sent[qpn_of_frame(o.bytes)];
    while (!waiting.empty() && waiting.front() != o.bytes) waiting.pop_front(), not_delivered++;
    ASSERT_FALSE(waiting.empty()) << "not sent, or out of order";
    waiting.pop_front();
    delivered++;
  }
  std::map<std::uint32_t, std::uint16_t> serial_;  // of the newest request, by QPN
};

}  // namespace rocebox::lowar::kit
