// SPDX-License-Identifier: BSD-3-Clause
// What must hold of every run: random messages both ways over a wire that loses, reorders and doubles, thousands of
// them.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::properties {
namespace {

using nic_model::Host;

#ifdef ROCEBOX_SANITIZED
constexpr unsigned kRounds = 20;
#else
constexpr unsigned kRounds = 200;
#endif
constexpr unsigned kMessages = 20;
constexpr std::size_t kSlot = 8192, kArea = kMessages * kSlot;  // of one message, and of all of them
// A side's memory: what it sends and others read; what comes; what its READs and atomics bring; what atomics add to.
constexpr std::size_t kOwn = 0, kTheirs = kArea, kAnswers = 2 * kArea, kCounter = 3 * kArea, kBytes = 3 * kArea + 8;
constexpr std::uint8_t kUntouched = 0xEE;

struct Message {
  ibv_wr_opcode opcode;
  std::uint32_t bytes;
  bool uses_receive() const { return opcode != IBV_WR_RDMA_WRITE && opcode < IBV_WR_RDMA_READ; }
  bool is_answered() const { return opcode >= IBV_WR_RDMA_READ; }
};

// One completion: whose, and when.
struct Seen {
  unsigned side;
  Nanos at;
  ibv_wc wc;
  bool operator==(const Seen& o) const {
    return side == o.side && at == o.at && wc.wr_id == o.wc.wr_id && wc.status == o.wc.status &&
           wc.opcode == o.wc.opcode && wc.byte_len == o.wc.byte_len && wc.imm_data == o.wc.imm_data;
  }
};

struct Wire {
  const char *nic, *link;
  bool header_only;
};

class Lossy {
 public:
  explicit Lossy(const Wire& wire)
      : header_only_(wire.header_only),
        box(std::string("rate: 100Gbps\n") + wire.nic + (wire.header_only ? "\nheader_only: true" : ""), wire.link) {
    for (unsigned side = 0; side < 2; side++)
      box.hosts[side]->on_wc = [this, side](Host& host, const ibv_wc& wc) { seen.push_back({side, host.now(), wc}); };
  }

  void connect(ibv_qp_type type, std::mt19937_64& random) {
    constexpr ibv_mtu kMtus[] = {IBV_MTU_256, IBV_MTU_1024, IBV_MTU_4096};
    for (Side& side : box.sides) {
      const bool is_new = side.memory.empty();
      side.memory.resize(kBytes);
      if (is_new)
        for (std::size_t i = 0; i < kArea; i++) side.memory[i] = static_cast<std::uint8_t>(random());
      std::fill(side.memory.begin() + kArea, side.memory.end() - 8, kUntouched);
      std::fill(side.memory.end() - 8, side.memory.end(), 0);
    }
    PairOptions options;
    options.type = type;
    options.mtu = kMtus[random() % 3];
    options.psn = static_cast<std::uint32_t>(random() % 2 ? 0xFFFFFF - random() % 60 : random() & 0xFFFFFF);
    options.bytes = kBytes;
    options.without_bytes = header_only_;
    box.connect(options);
    seen.clear();
    for (auto& host : box.hosts) host->completions.clear();
  }

  void draw(ibv_qp_type type, std::mt19937_64& random) {
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                          IBV_WR_SEND,       IBV_WR_SEND_WITH_IMM,
                                          IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD};
    for (auto& all : messages) {
      all.clear();
      for (unsigned i = 0; i < kMessages; i++) {
        const ibv_wr_opcode opcode = kOpcodes[random() % (type == IBV_QPT_RC ? 6 : 4)];
        const auto bytes = static_cast<std::uint32_t>(random() % (random() % 3 ? 3000 : kSlot));
        all.push_back({opcode, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : bytes});
      }
    }
  }

  void post() {
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        for (unsigned i = 0; i < kMessages; i++) {
          if (!messages[1 - side][i].uses_receive()) continue;
          ibv_sge sge{at(side, kTheirs, i), kSlot, box.sides[side].key};
          ibv_recv_wr request{1000 + i, nullptr, &sge, 1};
          ASSERT_EQ(0, host.post_receive(*box.sides[side].qp, &request, nullptr));
        }
      });
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        for (unsigned i = 0; i < kMessages; i++) post(host, side, i);
      });
  }

  void post(Host& host, unsigned side, unsigned i) {
    const Message& message = messages[side][i];
    const Side& other = box.sides[1 - side];
    ibv_sge sge{at(side, message.is_answered() ? kAnswers : kOwn, i), message.bytes, box.sides[side].key};
    ibv_send_wr request{};
    request.wr_id = i;
    request.opcode = message.opcode;
    request.sg_list = &sge;
    request.num_sge = message.bytes ? 1 : 0;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htobe32(i);
    request.wr.rdma.remote_addr = at(1 - side, message.opcode == IBV_WR_RDMA_READ ? kOwn : kTheirs, i);
    request.wr.rdma.rkey = other.key;
    if (message.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      request.wr.atomic.remote_addr = other.address() + kCounter;
      request.wr.atomic.rkey = other.key;
      request.wr.atomic.compare_add = 1;
    }
    ASSERT_EQ(0, host.post_send(*box.sides[side].qp, &request, nullptr));
  }
  std::uint64_t at(unsigned side, std::size_t area, unsigned i) const {
    return box.sides[side].address() + area + i * kSlot;
  }

  // All of a slot: the message, and behind it nothing.
  bool holds(unsigned side, std::size_t area, unsigned i, std::uint32_t bytes) const {
    static const std::vector<std::uint8_t> untouched(kSlot, kUntouched);
    const std::uint8_t* const here = box.sides[side].memory.data() + area + i * kSlot;
    const std::uint8_t* const there = box.sides[1 - side].memory.data() + kOwn + i * kSlot;
    return std::memcmp(here, there, bytes) == 0 && std::memcmp(here + bytes, untouched.data(), kSlot - bytes) == 0;
  }

  // Every message of a side is complete, in order, and so is all that came to the other one.
  void expect_in_order(unsigned side) const {
    unsigned sent = 0;
    std::vector<unsigned> awaited;
    for (unsigned i = 0; i < kMessages; i++)
      if (messages[side][i].uses_receive()) awaited.push_back(i);
    std::size_t received = 0;
    for (const Seen& one : seen) {
      if (one.side == side && one.wc.wr_id < 1000) {
        EXPECT_EQ(one.wc.wr_id, sent++);
        ASSERT_EQ(one.wc.status, IBV_WC_SUCCESS) << side << box.state();
      } else if (one.side != side && one.wc.wr_id >= 1000) {
        ASSERT_LT(received, awaited.size());
        const unsigned i = awaited[received++];
        EXPECT_EQ(one.wc.wr_id, 1000 + i);
        EXPECT_EQ(one.wc.byte_len, messages[side][i].bytes) << messages[side][i].opcode;
        if (one.wc.wc_flags & IBV_WC_WITH_IMM) {
          EXPECT_EQ(be32toh(one.wc.imm_data), i);
        }
      }
    }
    EXPECT_EQ(sent, kMessages) << side << box.state();
    EXPECT_EQ(received, awaited.size());
  }

  // What a side has been sent, and what it has asked for, lies where it belongs, once.
  void expect_placed(unsigned side) const {
    std::uint64_t added = 0, asked = 0, expected = 0;
    const nic_model::Region* region = box.sides[side].host->host.memory().find(box.sides[side].key);
    for (unsigned i = 0; i < kMessages; i++) {
      const Message &came = messages[1 - side][i], &own = messages[side][i];
      if (!came.is_answered()) expected += came.bytes;
      if (own.is_answered()) expected += own.bytes;
      added += came.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
      if (header_only_) {
        EXPECT_TRUE(came.is_answered() || region->placed->covers(kTheirs + i * kSlot, came.bytes));
        EXPECT_TRUE(!own.is_answered() || region->placed->covers(kAnswers + i * kSlot, own.bytes));
        continue;
      }
      EXPECT_TRUE(holds(side, kTheirs, i, came.is_answered() ? 0 : came.bytes)) << i;
      if (own.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        std::uint64_t before = 0;
        std::memcpy(&before, &box.sides[side].memory[kAnswers + i * kSlot], 8);
        EXPECT_EQ(before, asked++) << "an atomic is executed once";
      } else {
        EXPECT_TRUE(holds(side, kAnswers, i, own.is_answered() ? own.bytes : 0)) << i;
      }
    }
    if (header_only_) {
      EXPECT_EQ(region->placed->bytes_covered(), expected) << "nothing else was written";
      EXPECT_EQ(region->placed->bytes_written(), expected) << "nothing was written twice";
      return;
    }
    std::uint64_t counter = 0;
    std::memcpy(&counter, &box.sides[side].memory[kCounter], 8);
    EXPECT_EQ(counter, added);
  }

  void expect_idle() {
    EXPECT_EQ(box.fabric.next_deadline(), kNever) << "no timer is left";
    EXPECT_EQ(box.fabric.held(), 0u);
    EXPECT_EQ(box.pool.in_use(), 0u);
    for (const nic_model::Nic* nic : box.nics)
      EXPECT_EQ(const_cast<nic_model::Nic*>(nic)->host().memory().regions(), 0u);
  }

  std::vector<std::uint64_t> counters() const {
    std::vector<std::uint64_t> all;
    for (const auto& device : box.devices)
      device->books().for_each_counter([&](const CounterView& view) { all.push_back(view.value); });
    return all;
  }

 private:
  bool header_only_;

 public:
  NicBox box;
  std::vector<Message> messages[2];  // by sender
  std::vector<Seen> seen;
};

constexpr const char* kNics[] = {
    "recovery: go_back_n",
    "recovery: rnic_sr",
    "recovery: selective",
    "recovery: timeout_only",
    "recovery: rnic_sr\nwindow: 7\nretransmit_stall: 3us",
    "recovery: selective\nwindow: 16\nack_every: 3",
    "credits: true",
    ("scheduler: {policy: greedy}\npcie: {bandwidth: 50Gbps, outstanding_reads: 3}\nlimiter: {qp_rate: 20Gbps, "
     "qp_burst: 16KiB, port_rate: 40Gbps}")};
constexpr const char* kLinks[] = {
    "delay: 1us\nloss: 2%\nreorder: 2%\nduplicate: 2%", "delay: 3us\njitter: 4us\njitter_reorders: true\nloss: 1%",
    "delay: 1us\nburst_loss: {enter: 3%, leave: 60%, loss_bad: 60%}\nduplicate: 10%", "delay: 1us\ncorrupt: 3%"};

// Every byte is placed once where it belongs, in whole packets and in headers alone, which behave alike to the last
// counter and nanosecond; completions come in order; nothing is left of a queue pair that was destroyed.
TEST(NicProperties, EveryByteIsPlacedOnceWhateverTheWireDoes) {
  std::uint64_t again = 0;
  for (const char* nic : kNics)
    for (const char* link : kLinks) {
      SCOPED_TRACE(std::string(nic) + "\n" + link);
      Lossy whole({nic, link, false}), alone({nic, link, true});
      for (unsigned round = 0; round < kRounds / 4; round++) {
        SCOPED_TRACE("round " + std::to_string(round));
        for (Lossy* one : {&whole, &alone}) {
          std::mt19937_64 random(round);
          one->connect(IBV_QPT_RC, random);
          one->draw(IBV_QPT_RC, random);
          one->post();
          one->box.run();
          for (unsigned side = 0; side < 2; side++) {
            one->expect_in_order(side);
            one->expect_placed(side);
          }
          one->box.disconnect();
          one->box.run();
          one->expect_idle();
        }
        EXPECT_TRUE(whole.seen == alone.seen) << "completions and their times";
        // Which bit is flipped decides by which counter a packet goes.
        EXPECT_TRUE(std::string_view(link).ends_with("corrupt: 3%") || whole.counters() == alone.counters());
        if (testing::Test::HasFailure()) return;
      }
      again += whole.box.count(0, "retransmitted_packets");
    }
  EXPECT_GT(again, kRounds) << "else nothing was lost";
}

// UC: messages that are whole arrive in order, once; of others no completion tells.
TEST(NicProperties, UnreliableMessagesArriveWholeOrNotAtAll) {
  for (const char* nic : {"recovery: go_back_n", "recovery: rnic_sr"})
    for (const bool header_only : {false, true}) {
      SCOPED_TRACE(std::string(nic) + (header_only ? ", headers alone" : ""));
      Lossy one({nic, "delay: 1us\nloss: 3%", header_only});
      std::size_t arrived = 0, sent = 0;
      for (unsigned round = 0; round < kRounds; round++) {
        std::mt19937_64 random(round);
        one.connect(IBV_QPT_UC, random);
        one.draw(IBV_QPT_UC, random);
        // All in one area: a SEND takes the next receive request, whichever message it is.
        for (auto& all : one.messages)
          for (Message& message : all) message.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        one.post();
        one.box.run();
        std::int64_t last[2] = {-1, -1};
        const nic_model::Region* regions[2];
        for (unsigned side = 0; side < 2; side++)
          regions[side] = one.box.sides[side].host->host.memory().find(one.box.sides[side].key);
        for (const Seen& seen : one.seen) {
          if (seen.wc.wr_id < 1000) continue;
          const std::uint32_t i = be32toh(seen.wc.imm_data);
          const Message& message = one.messages[1 - seen.side][i];
          EXPECT_GT(static_cast<std::int64_t>(i), std::exchange(last[seen.side], i)) << "in order, none twice";
          EXPECT_EQ(seen.wc.byte_len, message.bytes);
          if (header_only)
            EXPECT_TRUE(regions[seen.side]->placed->covers(kTheirs + i * kSlot, message.bytes));
          else
            EXPECT_TRUE(one.holds(seen.side, kTheirs, i, message.bytes));
          arrived++;
        }
        sent += 2 * kMessages;
        one.box.disconnect();
        one.box.run();
        one.expect_idle();
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_GT(arrived, sent / 2);
      EXPECT_LT(arrived, sent);
    }
}

// In the midst of everything one side goes: the other one gives up, and nothing is left of either.
TEST(NicProperties, NothingIsLeftOfAQueuePairThatIsDestroyed) {
  for (const char* nic : kNics) {
    SCOPED_TRACE(nic);
    Lossy one({nic, kLinks[0], false});
    for (unsigned round = 0; round < kRounds / 4; round++) {
      std::mt19937_64 random(round);
      one.connect(IBV_QPT_RC, random);
      one.draw(IBV_QPT_RC, random);
      one.post();
      one.box.run(static_cast<Nanos>(random() % 30000));
      const auto first = static_cast<unsigned>(random() % 2);
      one.box.on(first, [&](Host& host) {
        host.destroy_qp(*std::exchange(one.box.sides[first].qp, nullptr));
        EXPECT_TRUE(host.memory().remove(one.box.sides[first].key));
      });
      one.box.run();
      unsigned complete = 0;
      for (const Seen& seen : one.seen) complete += seen.side != first && seen.wc.wr_id < 1000;
      EXPECT_EQ(complete, kMessages) << "the other side's requests have ended, if in error";
      one.box.on(1 - first, [&](Host& host) {
        host.destroy_qp(*std::exchange(one.box.sides[1 - first].qp, nullptr));
        EXPECT_TRUE(host.memory().remove(one.box.sides[1 - first].key));
      });
      one.box.run();
      one.expect_idle();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rocebox::test::properties
