// SPDX-License-Identifier: BSD-3-Clause
// Lossy: random messages between two queue pairs, and what must hold of them.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::properties {

using nic_model::Host;

#ifdef ROCEBOX_SANITIZED
inline constexpr unsigned kRounds = 20;
#else
inline constexpr unsigned kRounds = 200;
#endif
inline constexpr unsigned kMessages = 20;
inline constexpr std::size_t kSlot = 8192, kArea = kMessages * kSlot;  // of one message, and of all of them
// A side's memory: what it sends and others read; what comes; what its READs and atomics bring; what atomics add to.
inline constexpr std::size_t kOwn = 0, kTheirs = kArea, kAnswers = 2 * kArea, kCounter = 3 * kArea,
                             kBytes = 3 * kArea + 8;
inline constexpr std::uint8_t kUntouched = 0xEE;

struct Message {
  ibv_wr_opcode opcode;  // IBV_WR_LOCAL_INV: nothing is sent, a window is bound and unbound by turns
  std::uint32_t bytes;
  bool is_fenced = false;
  bool uses_receive() const { return opcode != IBV_WR_RDMA_WRITE && opcode < IBV_WR_RDMA_READ; }
  bool is_answered() const { return opcode >= IBV_WR_RDMA_READ && opcode < IBV_WR_LOCAL_INV; }
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
    options.access |= IBV_ACCESS_MW_BIND;
    box.connect(options);
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        windows_[side].rkey = host.memory().add_window(box.sides[side].pd);
        bound_[side] = false;
      });
    seen.clear();
    for (auto& host : box.hosts) host->completions.clear();
  }

  void disconnect() {
    box.disconnect();
    for (unsigned side = 0; side < 2; side++) box.on(side, [&](Host& host) { remove_window(host, side); });
  }
  // Whichever key it has come to.
  void remove_window(Host& host, unsigned side) {
    bool removed = false;
    for (std::uint32_t variant = 0; variant < 256 && !removed; variant++)
      removed = host.memory().remove((windows_[side].rkey & ~0xFFu) | variant);
    EXPECT_TRUE(removed);
  }

  void draw(ibv_qp_type type, std::mt19937_64& random) {
    constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                          IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,           IBV_WR_ATOMIC_FETCH_AND_ADD,
                                          IBV_WR_LOCAL_INV};
    for (auto& all : messages) {
      all.clear();
      for (unsigned i = 0; i < kMessages; i++) {
        const ibv_wr_opcode opcode = kOpcodes[random() % (type == IBV_QPT_RC ? 7 : 4)];
        const auto bytes = static_cast<std::uint32_t>(random() % (random() % 3 ? 3000 : kSlot));
        const bool is_fenced = random() % 8 == 0;
        all.push_back({opcode,
                       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8
                       : opcode == IBV_WR_LOCAL_INV          ? 0
                                                             : bytes,
                       is_fenced});
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
    if (message.opcode == IBV_WR_LOCAL_INV) return post_local(host, side, i);
    const Side& other = box.sides[1 - side];
    ibv_sge sge{at(side, message.is_answered() ? kAnswers : kOwn, i), message.bytes, box.sides[side].key};
    ibv_send_wr request{};
    request.wr_id = i;
    request.opcode = message.opcode;
    request.sg_list = &sge;
    request.num_sge = message.bytes ? 1 : 0;
    request.send_flags = IBV_SEND_SIGNALED | (message.is_fenced ? IBV_SEND_FENCE : 0);
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
  void post_local(Host& host, unsigned side, unsigned i) {
    ibv_mw& window = windows_[side];
    ibv_mr region{};
    region.lkey = box.sides[side].key;
    ibv_send_wr request{};
    request.wr_id = i;
    request.send_flags = IBV_SEND_SIGNALED | (messages[side][i].is_fenced ? IBV_SEND_FENCE : 0);
    const std::uint32_t next = ibv_inc_rkey(window.rkey);
    if (bound_[side]) {
      request.opcode = IBV_WR_LOCAL_INV;
      request.invalidate_rkey = window.rkey;
    } else {
      request.opcode = IBV_WR_BIND_MW;
      request.bind_mw.mw = &window;
      request.bind_mw.rkey = next;
      request.bind_mw.bind_info = {&region, box.sides[side].address(), kSlot, IBV_ACCESS_REMOTE_WRITE};
    }
    ASSERT_EQ(0, host.post_send(*box.sides[side].qp, &request, nullptr));
    if (!std::exchange(bound_[side], !bound_[side])) window.rkey = next;
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
    for (nic_model::Nic* nic : box.nics) {
      nic_model::Host& host = nic->host();
      EXPECT_EQ(host.memory().regions(), 0u);
      // The lowest free number is given out: far more than were ever there at once.
      for (std::uint32_t i = 0; i < 64; i++) EXPECT_EQ(host.find_qp(host.config().first_qpn + i), nullptr) << i;
    }
  }

  std::vector<std::uint64_t> counters() const {
    std::vector<std::uint64_t> all;
    for (const auto& device : box.devices)
      device->books().for_each_counter([&](const CounterView& view) { all.push_back(view.value); });
    return all;
  }

 private:
  bool header_only_;
  ibv_mw windows_[2] = {};  // of each side
  bool bound_[2] = {};      // once all that was posted is done

 public:
  NicBox box;
  std::vector<Message> messages[2];  // by sender
  std::vector<Seen> seen;
};

}  // namespace rocebox::test::properties
