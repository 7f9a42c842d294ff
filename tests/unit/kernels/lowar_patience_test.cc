// SPDX-License-Identifier: BSD-3-Clause
// How long packets wait for a lost one: what a stream's packets so far say of those to come.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

// A sender that stalls within its messages, as for memory or a scheduler, and the link; a packet is 1 us.
class Stalling {
 public:
  explicit Stalling(Sender& sender) : sender_(sender) {}

  /// A message, in which the sender stalls so often; one packet of every other block is lost where `lossy`.
  void message(unsigned packets, unsigned one_in, bool lossy, Nanos longest = 2 * kMillisecond) {
    unsigned place = 0, lost = 0;
    for (const Frame& frame : sender_.write(packets, 256)) {
      clock += kMicrosecond;
      if (one_in && random_() % one_in == 0) clock += longest / 10 + random_() % (longest / 10 * 9);
      if (place % 64 == 0) lost = place + random_() % 32;
      near.out.clear();
      near.send(clock, kHost, frame);
      for (const test::Out& o : near.out) {
        if (lossy && o.meta.status == ParseStatus::kRoce && place == lost) continue;
        far.send(clock, kLink, o.bytes);
      }
      place++;
    }
  }
  Gateway near{coding(32, 1)}, far{coding(32, 1)};
  Nanos clock = kSecond;

 private:
  Sender& sender_;
  std::mt19937 random_{7};
};

TEST(LowarPatience, OfASenderThatStallsWithinItsMessagesNothingIsGivenUp) {
  Sender sender;
  Stalling link(sender);
  for (unsigned i = 0; i < 8; i++) link.message(512, 300, false);
  for (unsigned i = 0; i < 124; i++) link.message(512, 300, true);  // 992 losses
  EXPECT_EQ(link.far.count("decode_recovered"), 992u);
  EXPECT_EQ(link.far.count("decode_released"), 0u);
}

TEST(LowarPatience, AStallIsForgotten) {
  Sender sender;
  Stalling link(sender);
  link.message(512, 300, false);
  const auto waits = [&] {  // two packets of a block are lost, and the sender waits for an answer
    const Nanos from = link.near.clock = link.clock;
    const std::vector<Crossing> all = link.near.encode(sender.write(40, 256));
    link.far.out.clear();
    for (std::size_t i = 0; i < 20; i++)
      if (i != 5 && i != 7) link.far.send(link.clock += kMicrosecond, kLink, all[i].bytes);
    link.far.drain();
    const Nanos waited = link.far.out.back().at - from;
    for (std::size_t i = 20; i < all.size(); i++) link.far.send(link.clock += 10 * kMillisecond, kLink, all[i].bytes);
    return waited;
  };
  EXPECT_GT(waits(), kMillisecond) << "the link has just seen stalls of up to 2 ms";
  for (unsigned i = 0; i < 3; i++) link.message(20'000, 0, false);
  EXPECT_LT(waits(), 200 * kMicrosecond) << "twice the time of 49 packets";
}

TEST(LowarPatience, AnUnrepairableBlockIsReleasedInOrderWithinTheBound) {
  Gateway near(coding(8, 1)), far(coding(8, 1));
  Sender sender{60};
  (void)far.decode(near.encode(sender.write(40, 256)), false);  // its distances are known then
  const std::vector<Crossing> crossings = near.encode(sender.write(20, 256));
  const std::size_t a = at_psn(crossings, 103), b = at_psn(crossings, 105);
  const std::vector<Crossing> came = without(crossings, {a, b});
  far.out.clear();
  for (const Crossing& crossing : came) far.send(far.clock += 1000, kLink, crossing.bytes);
  const Nanos end = far.clock;
  far.drain();
  std::vector<Frame> wanted = data_frames(came), got;
  for (const test::Out& o : far.out) {
    got.push_back(o.bytes);
    EXPECT_LE(o.at, end + 2 * (8 + 1 + 16) * kMicrosecond) << "twice the block's time";
  }
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(far.count("decode_released"), 2u);
  EXPECT_EQ(far.count("decode_recovered"), 0u);
  EXPECT_EQ(far.count("drop_repair_short"), 1u);
}

// The host goes back after its own time was up: that it had paused says nothing of its packets' distances.
TEST(LowarPatience, APauseBeforeARetransmissionIsNoStall) {
  for (const bool announced : {true, false}) {
    Gateway near(coding(8, 1)), far(coding(8, 1));
    Sender sender;
    const std::vector<Frame> message = sender.write(200, 256);
    (void)far.decode(near.encode({message.begin(), message.begin() + 100}), false);
    far.clock += 100 * kMillisecond;
    std::vector<Crossing> link = near.encode({message.begin() + 40, message.begin() + 62});
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, 50)));
    link.erase(link.begin() + static_cast<std::ptrdiff_t>(at_psn(link, 52)));
    if (!announced) link.erase(link.begin());
    const Nanos from = far.clock;
    (void)far.decode(link);
    EXPECT_EQ(far.count("decode_released_timeout"), 2u) << announced;
    EXPECT_EQ(far.count("decode_restarts"), 1u) << announced;
    EXPECT_LT(far.out.back().at - from, 200 * kMicrosecond) << announced;
  }
}

// Streams of which nothing is known yet. Their packets come 4 us apart on average, in bursts of so many 100 ns apart.
struct Beginning {
  unsigned rebuilt = 0, given_up = 0, late_passed = 0;
  Nanos waited = 0;  // of the last packet, at most
};

// Sends a message in such bursts; `late` packets come behind the block's repair packet, `lost` ones never.
Beginning begin(unsigned packets, unsigned burst, const std::set<std::uint32_t>& lost,
                const std::set<std::uint32_t>& late = {}) {
  Gateway near(coding(32, 1)), far(coding(32, 1));
  Sender sender;
  const std::vector<Crossing> all = near.encode(sender.write(packets, 256));
  std::multimap<Nanos, Frame> arrivals;
  Nanos now = kSecond;
  unsigned place = 0;
  std::vector<Frame> behind;
  for (const Crossing& crossing : all) {
    if (crossing.data && place++ % burst == 0) now += burst * 4 * kMicrosecond - (burst - 1) * 100;
    if (crossing.data && lost.contains(crossing.psn)) continue;
    if (crossing.data && late.contains(crossing.psn)) {
      behind.push_back(crossing.bytes);
      continue;
    }
    arrivals.emplace(now += 100, crossing.bytes);
    if (!crossing.repair) continue;
    for (const Frame& frame : std::exchange(behind, {})) arrivals.emplace(now + 40 * kMicrosecond, frame);
  }
  for (const auto& [time, frame] : arrivals) far.send(time, kLink, frame);
  far.drain();
  const auto count = [&](const char* name) { return static_cast<unsigned>(far.count(name)); };
  return {count("decode_recovered"), count("decode_released"), count("decode_old"), far.out.back().at - now};
}

// Whatever the sender's bursts, up to a block: each packet of the first block is rebuilt where it is lost or late, and
// its late original does not pass, too. With 8 distances in the place of 32 a third of them were given up with bursts
// of 12.
TEST(LowarPatience, AFirstBurstDoesNotSayHowLongToWait) {
  for (const unsigned burst : {1u, 2u, 4u, 8u, 12u, 16u, 24u, 32u})
    for (std::uint32_t psn = 0; psn < 32; psn++) {
      const Beginning lost = begin(32, burst, {psn});
      ASSERT_EQ(lost.rebuilt, 1u) << "bursts of " << burst << ", without " << psn;
      ASSERT_EQ(lost.given_up, 0u) << "bursts of " << burst << ", without " << psn;
      const Beginning late = begin(96, burst, {}, {psn});
      ASSERT_EQ(late.rebuilt, 1u) << "bursts of " << burst << ", late " << psn;
      ASSERT_EQ(late.late_passed, 0u) << "bursts of " << burst << ", late " << psn;
    }
}

// What that costs: beyond repair a first message that ends before is waited for as long as may be, and no longer.
TEST(LowarPatience, AFirstMessageBeyondRepairWaitsForHoldMax) {
  for (const unsigned packets : {3u, 10u, 33u})
    EXPECT_EQ(begin(packets, 1, {0, 1}).waited / kMillisecond, 9) << packets;
  EXPECT_LT(begin(40, 1, {0, 1}).waited, kMillisecond);
}

}  // namespace
}  // namespace rocebox::lowar
