// SPDX-License-Identifier: BSD-3-Clause
// A receiver of reliable messages against packets that are late, while whole runs of messages fail and IDs go round:
// what was sent for one message never stands in another's memory, and a message that is complete has its own bytes. The
// oracle is the memory: every word that is sent has its message's number.
#include <deque>
#include <map>

#include "kernels/sdr/reliability/reliable_receiver.h"
#include "tests/unit/sdr/backend_kit.h"

namespace rocebox::sdr {
namespace {

constexpr std::uint32_t kMtu = 256, kMessage = 4 * kMtu, kWords = kMessage / 8;
constexpr Nanos kOneWay = 500 * kMicrosecond, kRtt = 2 * kOneWay, kStep = 100 * kMicrosecond;

QueuePairOptions options_with(std::uint32_t generations) {
  QueuePairOptions o;
  o.mtu = kMtu;
  o.slots = 4;
  o.message_bytes = kMessage;
  o.channels = 2;
  o.generations = o.root_keys = generations;
  o.ack_timeout = 9;  // 2 ms
  return o;
}

// Messages of SDR as their sender has them, one a part.
struct Sent {
  Send send;
  std::vector<std::vector<std::uint8_t>> packets;  // as they went
  Nanos heard = kNever;  // when its sender was told that the receiver is done with it, and stopped
};

class LateBox {
 public:
  // `deafness`: how long at a time what the receiver tells is lost.
  LateBox(std::uint32_t generations, std::uint64_t seed, Nanos deafness)
      : options_(options_with(generations)),
        box_(options_, "delay: 500us"),
        random_(seed),
        deafness_(deafness),
        late_((generations - 2) * kRtt - 2 * kStep) {
    with_.coding.rtt = kRtt;
    with_.coding.global_timeout = 20 * kMillisecond;
    with_.poll = 50 * kMicrosecond;
    receiver_ = std::make_unique<ReliableReceiver>(*box_.qps[1], with_, [this](nic_model::Host&, Transfer& one) {
      over_++;
      failed_ += !one.error.empty();
    });
    // What a number's packets have is that number; what they go to, nothing.
    auto* words = reinterpret_cast<std::uint64_t*>(box_.memory[0].data());
    for (std::size_t i = 0; i < SdrBox::kBytes / 8; i++) words[i] = i / kWords;
    box_.fabric.tap({0, 0}, [this](FabricPort, std::span<const Packet> packets, Nanos) {
      for (const Packet& packet : packets) {
        constexpr std::size_t kBth = 14 + 20 + 8;
        if (recording_ && packet.data()[kBth] == IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE)
          recording_->packets.emplace_back(packet.data(), packet.data() + packet.size());
      }
    });
  }
  ~LateBox() {
    box_.on(1, [&](nic_model::Host& host) { receiver_->stop(host); });
  }

  // Messages of so many parts; `bad`: into memory that nobody has.
  void receive(std::uint64_t parts, bool bad) {
    Transfer& one = transfers_.emplace_back();
    one.address = box_.at(1, numbers_ * kMessage);
    one.length = parts * kMessage;
    one.key = box_.keys[1] + bad;
    first_.push_back(numbers_);
    numbers_ += parts;
    box_.on(1, [&](nic_model::Host& host) { receiver_->receive(host, one); });
  }

  void run(std::size_t transfers) {
    std::size_t posted = 0;
    for (Nanos deaf_until = 0; over_ < transfers;) {
      while (posted < transfers && posted - over_ < 5) {
        posted++;
        receive(1 + random_() % 24, random_() % 8 == 0);
      }
      if (deafness_ && box_.now >= deaf_until && random_() % 100 == 0) {
        deaf_until = box_.now + deafness_;
        box_.link("{delay: 500us, reverse: {up: false}}");
      } else if (deaf_until && box_.now >= deaf_until) {
        deaf_until = 0;
        box_.link("delay: 500us");
      }
      send_what_can_be_sent();
      for (unsigned i = 0; i < 2; i++) bring_a_late_one();
      box_.run(kStep);
      ASSERT_FALSE(box_.qps[0]->broken() || box_.qps[1]->broken());
      ASSERT_LT(box_.now, 60 * kSecond) << over_ << " of " << transfers;
    }
    box_.link("delay: 500us");
    for (unsigned i = 0; i < 200; i++) bring_a_late_one(), box_.run(kStep);
  }

  void check() const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(box_.memory[1].data());
    std::uint64_t foreign = 0, missing = 0;
    for (std::size_t i = 0; i < transfers_.size(); i++)
      for (std::uint64_t at = first_[i] * kWords; at < (first_[i] + transfers_[i].length / kMessage) * kWords; at++) {
        foreign += words[at] != ~0ull && words[at] != at / kWords;
        missing += words[at] == ~0ull && transfers_[i].error.empty();
      }
    EXPECT_EQ(foreign, 0u) << "words of other messages";
    EXPECT_EQ(missing, 0u) << "words of messages that were said to be complete";
  }
  std::size_t failed() const { return failed_; }
  std::uint64_t late() const { return brought_; }

 private:
  // Of each message that has a buffer all packets, or some.
  void send_what_can_be_sent() {
    const QueuePair& qp = *box_.qps[0];
    for (auto& [number, one] : sent_)
      if (one.heard == kNever && !qp.may_have_buffer(number)) one.heard = box_.now;
    for (; next_ < qp.clear_to_send(); next_++) {
      if (!qp.may_have_buffer(next_) || qp.peer_length(next_) == 0) continue;
      Sent& one = sent_[next_];
      one.send.begin(next_, nullptr);
      recording_ = &one;
      const bool all = random_() % 64 != 0;
      for (std::uint64_t chunk = 0; chunk < 4; chunk++) {
        if (!all && random_() % 2) continue;
        box_.on(0, [&](nic_model::Host& host) {
          ASSERT_EQ(
              box_.qps[0]->add(host, one.send, box_.at(0, next_ * kMessage + chunk * kMtu), kMtu, box_.keys[0], chunk),
              Status::kSuccess);
        });
      }
      box_.run(10 * kMicrosecond);
      recording_ = nullptr;
    }
  }

  // A packet once more. One may be late by as much as real rounds of IDs take, from when its sender stopped.
  void bring_a_late_one() {
    while (!sent_.empty() && sent_.begin()->second.heard != kNever &&
           box_.now > sent_.begin()->second.heard + kOneWay + late_)
      sent_.erase(sent_.begin());
    if (sent_.empty()) return;
    const auto& [number, one] = *std::next(sent_.begin(), static_cast<std::ptrdiff_t>(random_() % sent_.size()));
    if (one.packets.empty() || (one.heard != kNever && box_.now > one.heard + kOneWay + late_)) return;
    const std::vector<std::uint8_t>& bytes = one.packets[random_() % one.packets.size()];
    PacketPtr packet = box_.pool.allocate(static_cast<std::uint32_t>(bytes.size()));
    ASSERT_TRUE(packet);
    std::memcpy(packet->data(), bytes.data(), bytes.size());
    box_.fabric.inject({1, 0}, packet.release());
    box_.fabric.run(box_.now);
    brought_++;
  }

  const QueuePairOptions options_;
  SdrBox box_;
  std::mt19937_64 random_;
  const Nanos deafness_, late_;
  ReliableOptions with_;
  std::unique_ptr<ReliableReceiver> receiver_;
  std::deque<Transfer> transfers_;
  std::vector<std::uint64_t> first_;
  std::map<std::uint64_t, Sent> sent_;
  Sent* recording_ = nullptr;
  std::uint64_t numbers_ = 0, next_ = 0, brought_ = 0;
  std::size_t over_ = 0, failed_ = 0;
};

TEST(SdrLatePackets, EnterNoOtherMessageWhileRunsOfMessagesFail) {
  for (const std::uint32_t generations : {2u, 4u})
    for (const Nanos deafness : {Nanos{0}, 30 * kMillisecond}) {
      SCOPED_TRACE(testing::Message() << generations << " generations, deaf for " << deafness << " ns");
      LateBox box(generations, 1, deafness);
      box.run(50);
      box.check();
      EXPECT_GT(box.failed(), 10u);
      EXPECT_LT(box.failed(), 50u);
      EXPECT_GT(box.late(), 500u);
    }
}

}  // namespace
}  // namespace rocebox::sdr
