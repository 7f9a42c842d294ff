// SPDX-License-Identifier: BSD-3-Clause
// Traffic: random messages between two queue pairs.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/nic/nic_kit.h"
#include "tests/unit/nic/properties_message.h"

namespace rocebox::test::properties {

using nic_model::Host;

#ifdef ROCEBOX_SANITIZED
inline constexpr unsigned kRounds = 20;
#else
inline constexpr unsigned kRounds = 200;
#endif
inline constexpr std::uint64_t kReceives = 1000;  // the identifier of the first receive request

// One completion: whose, and when.
struct Seen {
  unsigned side;
  Nanos at;
  ibv_wc wc;
  bool operator==(const Seen& o) const {
    return side == o.side && at == o.at && wc.wr_id == o.wc.wr_id && wc.status == o.wc.status &&
           wc.opcode == o.wc.opcode && wc.byte_len == o.wc.byte_len && wc.imm_data == o.wc.imm_data &&
           wc.wc_flags == o.wc.wc_flags;
  }
  bool is_receive() const { return wc.wr_id >= kReceives; }
};

struct Wire {
  const char *nic, *link;
  bool header_only;
  bool draws_recovery = false;  ///< of each connection, whatever the NICs have
};

class Traffic {
 public:
  explicit Traffic(const Wire& wire)
      : header_only_(wire.header_only),
        draws_recovery_(wire.draws_recovery),
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
      std::fill(side.memory.begin() + kArea, side.memory.begin() + kAdded, kUntouched);
      std::fill(side.memory.begin() + kAdded, side.memory.end(), 0);
    }
    PairOptions options;
    options.type = type;
    options.mtu = kMtus[random() % 3];
    options.psn = static_cast<std::uint32_t>(random() % 2 ? 0xFFFFFF - random() % 60 : random() & 0xFFFFFF);
    options.bytes = kBytes;
    options.without_bytes = header_only_;
    options.access |= IBV_ACCESS_MW_BIND;
    if (random() % 3 == 0) options.shared_receives = 64;
    if (draws_recovery_ && type == IBV_QPT_RC)
      options.recovery = {static_cast<nic_model::Recovery>(random() % 4),
                          static_cast<std::uint32_t>(random() % 2 ? 1 + random() % 20 : 512),
                          static_cast<Nanos>(random() % 2 ? 0 : 20 * kMicrosecond + random() % kMillisecond),
                          static_cast<Nanos>(random() % 3 ? 0 : random() % 5000)};
    box.connect(options);
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        for (Window& window : windows_[side]) {
          window.mw.rkey = host.memory().add_window(box.sides[side].pd);
          window.is_bound = false;
        }
        if (type != IBV_QPT_RC) return;
        for (unsigned i = 0; i < kMessages; i++) bind_or_unbind(host, side, i, 0);
      });
    box.run();  // next hops are asked for, and may not be heard at once
    seen.clear();
    for (auto& host : box.hosts) host->completions.clear();
  }

  void disconnect() {
    box.disconnect();
    for (unsigned side = 0; side < 2; side++) box.on(side, [&](Host& host) { remove_windows(host, side); });
  }
  // Whichever keys they have come to.
  void remove_windows(Host& host, unsigned side) {
    for (const Window& window : windows_[side]) {
      bool removed = false;
      for (std::uint32_t variant = 0; variant < 256 && !removed; variant++)
        removed = host.memory().remove((window.mw.rkey & ~0xFFu) | variant);
      EXPECT_TRUE(removed);
    }
  }

  void draw(std::span<const ibv_wr_opcode> opcodes, std::mt19937_64& random) {
    for (auto& all : messages) {
      all.clear();
      for (unsigned i = 0; i < kMessages; i++) all.push_back(draw_message(opcodes, random));
    }
    // Some receive requests come when messages wait for them.
    late_ = random() % 4 == 0 ? static_cast<unsigned>(random() % kMessages) : kMessages;
  }

  // The address of a side's datagrams. Who is asked for it may not be heard at once.
  void find_way(unsigned side, nic_model::AddressHandle& handle) {
    int error = EAGAIN;
    for (unsigned tries = 0; tries < 20 && error == EAGAIN; tries++) {
      box.on(side, [&](Host& host) {
        error = host.create_ah(handle, roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(2 - side)),
                               box.sides[1 - side].qp->number(), 0x1234);
      });
      box.run(10 * kSecond);
    }
    ASSERT_EQ(error, 0);
    to[side] = &handle;
  }

  void post() {
    post_receives(0, late_);
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        for (unsigned i = 0; i < kMessages; i++) post(host, side, i);
      });
    if (late_ == kMessages) return;
    box.run(30 * kMicrosecond);
    post_receives(late_, kMessages);
  }

  // For each message that takes one, by its number.
  void post_receives(unsigned first, unsigned end) {
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        Side& own = box.sides[side];
        for (unsigned i = first; i < end; i++) {
          const Message& message = messages[1 - side][i];
          if (!message.uses_receive()) continue;
          std::vector<ibv_sge> pieces = in_slot(side, receives_in, i, message.scattered(kSlot));
          ibv_recv_wr request{kReceives + i, nullptr, pieces.data(), static_cast<int>(pieces.size())};
          ASSERT_EQ(0, own.shared ? host.post_receive(*own.shared, &request, nullptr)
                                  : host.post_receive(*own.qp, &request, nullptr));
        }
      });
  }

  void post(Host& host, unsigned side, unsigned i) {
    const Message& message = messages[side][i];
    if (message.opcode == IBV_WR_LOCAL_INV) return bind_or_unbind(host, side, kMessages, i);
    const Side& other = box.sides[1 - side];
    std::vector<ibv_sge> pieces =
        message.is_answered()
            ? in_slot(side, kAnswers, i,
                      message.is_atomic() ? std::vector<Part>{{0, 8}} : message.scattered(message.bytes))
            : in_slot(side, kOwn, i, message.gathered());
    // Inline data are the host's own until the call returns, and need no key.
    std::array<std::uint8_t, kInlineMax> copy{};
    if (message.is_inline) {
      std::size_t at = 0;
      for (ibv_sge& piece : pieces) {
        std::memcpy(&copy[at], reinterpret_cast<const void*>(piece.addr), piece.length);
        piece = {reinterpret_cast<std::uintptr_t>(&copy[at]), piece.length, 0};
        at += piece.length;
      }
    }
    ibv_send_wr request{};
    request.wr_id = i;
    request.opcode = message.opcode;
    request.sg_list = pieces.data();
    request.num_sge = message.bytes ? static_cast<int>(pieces.size()) : 0;
    request.send_flags = IBV_SEND_SIGNALED | (message.is_fenced ? unsigned{IBV_SEND_FENCE} : 0u) |
                         (message.is_inline ? unsigned{IBV_SEND_INLINE} : 0u);
    request.imm_data = htobe32(i);
    if (message.opcode == IBV_WR_SEND_WITH_INV) request.invalidate_rkey = windows_[1 - side][i].mw.rkey;
    request.wr.rdma.remote_addr = at(1 - side, message.opcode == IBV_WR_RDMA_READ ? kOwn : kTheirs, i);
    request.wr.rdma.rkey = other.key;
    if (message.is_atomic()) {
      const bool swaps = message.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
      request.wr.atomic.remote_addr = other.address() + (swaps ? kSwapped : kAdded);
      request.wr.atomic.rkey = other.key;
      request.wr.atomic.compare_add = swaps ? before(side, i) : 1;
      request.wr.atomic.swap = before(side, i) + 1;
    }
    ASSERT_EQ(0, host.post_send(*box.sides[side].qp, &request, nullptr, to[side]));
    copy.fill(kUntouched);
  }
  // How many of its opcode its sender has posted before.
  std::uint64_t before(unsigned side, unsigned i) const {
    return static_cast<std::uint64_t>(
        std::count_if(messages[side].begin(), messages[side].begin() + i,
                      [&](const Message& earlier) { return earlier.opcode == messages[side][i].opcode; }));
  }
  std::uint64_t all_of(unsigned side, ibv_wr_opcode opcode) const {
    return static_cast<std::uint64_t>(std::ranges::count(messages[side], opcode, &Message::opcode));
  }
  void bind_or_unbind(Host& host, unsigned side, unsigned number, std::uint64_t id) {
    Window& window = windows_[side][number];
    ibv_mr region{};
    region.lkey = box.sides[side].key;
    ibv_send_wr request{};
    request.wr_id = id;
    request.send_flags =
        IBV_SEND_SIGNALED | (!messages[side].empty() && messages[side][id].is_fenced ? unsigned{IBV_SEND_FENCE} : 0u);
    const std::uint32_t next = ibv_inc_rkey(window.mw.rkey);
    if (window.is_bound) {
      request.opcode = IBV_WR_LOCAL_INV;
      request.invalidate_rkey = window.mw.rkey;
    } else {
      request.opcode = IBV_WR_BIND_MW;
      request.bind_mw.mw = &window.mw;
      request.bind_mw.rkey = next;
      request.bind_mw.bind_info = {&region, box.sides[side].address(), kSlot, IBV_ACCESS_REMOTE_WRITE};
    }
    ASSERT_EQ(0, host.post_send(*box.sides[side].qp, &request, nullptr));
    if (!std::exchange(window.is_bound, !window.is_bound)) window.mw.rkey = next;
  }
  std::uint64_t at(unsigned side, std::size_t area, unsigned i) const {
    return box.sides[side].address() + area + i * kSlot;
  }
  std::vector<ibv_sge> in_slot(unsigned side, std::size_t area, unsigned i, const std::vector<Part>& parts) const {
    std::vector<ibv_sge> pieces;
    for (const Part& part : parts)
      pieces.push_back({at(side, area, i) + part.offset, static_cast<std::uint32_t>(part.bytes), box.sides[side].key});
    return pieces;
  }
  std::span<const std::uint8_t> slot(unsigned side, std::size_t area, unsigned i) const {
    return std::span(box.sides[side].memory).subspan(area + i * kSlot, kSlot);
  }

 protected:
  // One that a side binds and unbinds.
  struct Window {
    ibv_mw mw{};
    bool is_bound = false;  // once all that was posted is done
  };
  bool header_only_, draws_recovery_;
  std::array<std::array<Window, kMessages + 1>, 2> windows_;  // of each side: one a message of the other's, and its own
  unsigned late_ = kMessages;

 public:
  NicBox box;
  std::vector<Message> messages[2];  // by sender
  std::vector<Seen> seen;
  std::size_t receives_in = kTheirs;           // the area that receive requests have
  const nic_model::AddressHandle* to[2] = {};  // datagrams of each side
};

}  // namespace rocebox::test::properties
