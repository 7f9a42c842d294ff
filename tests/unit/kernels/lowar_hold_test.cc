// SPDX-License-Identifier: BSD-3-Clause
// No packet is kept back for longer than `hold_max`, whatever is lost or comes out of order, with any setting.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <queue>

#include "tests/unit/kernels/lowar_pair.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

// Two gateways and a link that loses, delays and doubles packets; how long each packet stays in the far one.
class SlowLink {
 public:
  SlowLink(const Config& config, oracle::Channel channel, std::uint32_t seed)
      : near_(config), far_(config), losses_(channel, seed), random_(seed) {}

  void at(Nanos time, const Frame& frame) { events_.push({time, count_++, kNear, kHost, frame}); }

  /// Runs all; the longest that a packet stayed.
  Nanos run() {
    for (; !events_.empty(); events_.pop()) {
      const Event event = events_.top();
      Gateway& gateway = event.side == kNear ? near_ : far_;
      gateway.out.clear();
      const std::uint64_t dropped = far_.count("drop_late");
      if (event.side == kFar && event.data) inside_[event.frame].push_back(event.time);
      gateway.send(event.time, event.port, event.frame);
      if (far_.count("drop_late") != dropped) inside_[event.frame].pop_back();  // a rebuilt one goes or went for it
      if (event.side == kNear)
        cross(event.time);
      else
        leave();
    }
    far_.out.clear();
    far_.drain();
    leave();
    for (const auto& [frame, arrivals] : inside_) EXPECT_TRUE(arrivals.empty());
    EXPECT_EQ(far_.conservation().held(), 0u);
    return longest_;
  }
  std::uint64_t count(const char* name) const { return far_.count(name); }

 private:
  enum Side : std::uint8_t { kNear, kFar };
  struct Event {
    Nanos time;
    std::uint64_t number;
    Side side;
    Port port;
    Frame frame;
    bool data = true;
    bool operator<(const Event& other) const { return std::pair(time, number) > std::pair(other.time, other.number); }
  };
  void cross(Nanos now) {
    for (const test::Out& o : near_.out) {
      if (o.port != kLink || losses_.next_is_lost()) continue;
      Nanos arrival = now + kMillisecond;
      if (random_() % 20 == 0) arrival += random_() % 60'000;
      const bool data = o.meta.status == ParseStatus::kRoce;
      events_.push({arrival, count_++, kFar, kLink, o.bytes, data});
      if (random_() % 50 == 0) events_.push({arrival + 2000, count_++, kFar, kLink, o.bytes, data});
    }
  }
  void leave() {
    for (const test::Out& o : far_.out) {
      if (o.port == kLink) {
        events_.push({o.at + kMillisecond, count_++, kNear, kLink, o.bytes});
        continue;
      }
      std::deque<Nanos>& arrivals = inside_[o.bytes];
      if (arrivals.empty()) continue;  // rebuilt
      longest_ = std::max(longest_, o.at - arrivals.front());
      arrivals.pop_front();
    }
  }
  Gateway near_, far_;
  oracle::LossProcess losses_;
  std::mt19937 random_;
  std::priority_queue<Event> events_;
  std::uint64_t count_ = 0;
  std::map<Frame, std::deque<Nanos>> inside_;
  Nanos longest_ = 0;
};

// Requests, READ responses with ACKs behind them, and now and then a part of a message again.
std::vector<Frame> traffic(Sender& sender, std::mt19937& random, unsigned longest) {
  const auto length = static_cast<unsigned>(1 + random() % longest);
  std::vector<Frame> frames;
  switch (random() % 4) {
    case 0:
      frames = sender.read_response(length);
      frames.push_back(sender.one(IBV_OPCODE_RC_ACKNOWLEDGE));
      break;
    case 1:
      frames = sender.uc_send_imm(length);
      break;
    default:
      frames = sender.write(length);
  }
  if (random() % 8 == 0) {
    const std::vector<Frame> again(frames.begin() + static_cast<std::ptrdiff_t>(random() % frames.size()),
                                   frames.end());
    append(frames, again);
  }
  return frames;
}

TEST(LowarHold, NoPacketStaysLongerThanHoldMax) {
  std::uint64_t held = 0, timeouts = 0, recovered = 0, asked = 0;
  for (std::uint32_t round = 0; round < 80; round++) {
    std::mt19937 random(round);
    const auto one_of = [&](auto... values) { return std::array{values...}[random() % sizeof...(values)]; };
    const bool adapts = round % 2;
    const int c = one_of(1, 2, 3, 8), n = one_of(1, 2, 8, 20);
    Config config = adapts ? adaptive(1e-3, 1) : coding(1, 1);
    config.r = c * n, config.c = c;
    config.dwell = kMillisecond;
    config.reorder = one_of(0, 4, 16, 200);
    config.reordering = one_of(16, 64, 512);
    config.units = one_of(8, 32, 128);
    config.hold_max = one_of(Nanos{50'000}, Nanos{1'000'000}, Nanos{10'000'000});
    config.hold_min = std::min<Nanos>(config.hold_max, one_of(1'000, 20'000));
    const double loss = one_of(0.005, 0.02, 0.1, 0.3);
    SlowLink link(config, {loss, one_of(1 / (1 - loss), 4.0)}, round + 1000);
    std::array<Sender, 3> senders = {Sender{0xFFFFF0, 0x10}, Sender{7, 0x20}, Sender{0x800000, 0x30}};
    Nanos now = kSecond;
    const unsigned longest = one_of(1u, 3u, 30u, 300u);
    const Nanos gap = one_of(Nanos{200}, Nanos{5'000}, Nanos{300'000});
    for (unsigned packets = 0; packets < 2500;) {
      Sender& sender = senders[random() % senders.size()];
      for (const Frame& frame : traffic(sender, random, longest)) {
        link.at(now += 1 + static_cast<Nanos>(random() % static_cast<std::uint64_t>(gap)), frame);
        packets++;
      }
      if (random() % 10 == 0) now += static_cast<Nanos>(random() % 30'000'000);
    }
    ASSERT_LE(link.run(), config.hold_max) << "round " << round;
    if (HasFailure()) FAIL() << "round " << round;
    held += link.count("decode_held"), timeouts += link.count("decode_released_timeout");
    recovered += link.count("decode_recovered"), asked += link.count("adapt_changes");
  }
  EXPECT_GT(held, 5000u);
  EXPECT_GT(timeouts, 500u);
  EXPECT_GT(recovered, 500u);
  EXPECT_GT(asked, 15u);
}

}  // namespace
}  // namespace rocebox::lowar
