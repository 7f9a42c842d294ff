// SPDX-License-Identifier: BSD-3-Clause
// Lossy: random messages over a wire that loses, and what must hold of them.
#pragma once
#include "tests/unit/nic/properties_traffic.h"

namespace rocebox::test::properties {

class Lossy : public Traffic {
 public:
  using Traffic::Traffic;

  // Every message of a side is complete, in order, and so is all that came to the other one.
  void expect_in_order(unsigned side) const {
    unsigned sent = 0;
    std::vector<unsigned> awaited;
    for (unsigned i = 0; i < kMessages; i++)
      if (messages[side][i].uses_receive()) awaited.push_back(i);
    std::size_t received = 0;
    for (const Seen& one : seen) {
      if (one.side == side && !one.is_receive()) {
        EXPECT_EQ(one.wc.wr_id, sent++);
        ASSERT_EQ(one.wc.status, IBV_WC_SUCCESS) << side << box.state();
      } else if (one.side != side && one.is_receive()) {
        ASSERT_LT(received, awaited.size());
        const unsigned i = awaited[received++];
        EXPECT_EQ(one.wc.wr_id, kReceives + i);
        expect_says(one.wc, side, i);
      }
    }
    EXPECT_EQ(sent, kMessages) << side << box.state();
    EXPECT_EQ(received, awaited.size());
  }
  // A receive completion says what its sender has.
  void expect_says(const ibv_wc& wc, unsigned sender, unsigned i) const {
    const Message& message = messages[sender][i];
    EXPECT_EQ(wc.byte_len, message.bytes) << message.opcode;
    EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, message.has_immediate());
    EXPECT_EQ((wc.wc_flags & IBV_WC_WITH_INV) != 0, message.opcode == IBV_WR_SEND_WITH_INV);
    EXPECT_EQ(message.has_immediate() ? be32toh(wc.imm_data) : i, i);
    if (message.opcode == IBV_WR_SEND_WITH_INV) {
      EXPECT_EQ(wc.invalidated_rkey, windows_[1 - sender][i].mw.rkey);
    }
  }

  // What a side has been sent, and what it has asked for, lies where it belongs, once; windows are bound but for those
  // that it has been told to invalidate.
  void expect_placed(unsigned side) const {
    for (unsigned i = 0; i < kMessages; i++) {
      const nic_model::Region* window = box.sides[side].host->host.memory().find(windows_[side][i].mw.rkey);
      ASSERT_NE(window, nullptr);
      EXPECT_EQ(window->length == 0, messages[1 - side][i].opcode == IBV_WR_SEND_WITH_INV) << i;
    }
    header_only_ ? expect_covered(side) : expect_bytes(side);
  }

  void expect_bytes(unsigned side) const {
    static const std::vector<std::uint8_t> untouched(kSlot, kUntouched);
    for (unsigned i = 0; i < kMessages; i++) {
      const Message &came = messages[1 - side][i], &own = messages[side][i];
      EXPECT_TRUE(std::ranges::equal(slot(side, kTheirs, i), came.is_answered() ? untouched : image(1 - side, i))) << i;
      if (own.is_atomic())
        EXPECT_EQ(number_at(side, kAnswers + i * kSlot), before(side, i)) << "an atomic is executed once";
      else
        EXPECT_TRUE(std::ranges::equal(slot(side, kAnswers, i),
                                       own.is_answered() ? own.image(slot(1 - side, kOwn, i)) : untouched))
            << i;
    }
    EXPECT_EQ(number_at(side, kAdded), all_of(1 - side, IBV_WR_ATOMIC_FETCH_AND_ADD));
    EXPECT_EQ(number_at(side, kSwapped), all_of(1 - side, IBV_WR_ATOMIC_CMP_AND_SWP));
  }
  // What a sender's message has made of the slot that it was put into.
  std::vector<std::uint8_t> image(unsigned sender, unsigned i) const {
    return messages[sender][i].image(slot(sender, kOwn, i));
  }
  // What a receive request has got, behind `skipped` bytes of the NIC's own, is the message that its completion names;
  // of WRITEs, of which it has nothing, the message lies where it belongs.
  void expect_received(const Seen& one, std::uint32_t skipped = 0) const {
    const std::uint32_t i = be32toh(one.wc.imm_data);
    const Message& message = messages[1 - one.side][i];
    if (!message.is_send()) {
      if (header_only_)
        expect_covered(one.side, kTheirs, i, {{0, message.bytes}});
      else
        EXPECT_TRUE(std::ranges::equal(slot(one.side, kTheirs, i), image(1 - one.side, i))) << i;
      return;
    }
    const auto r = static_cast<unsigned>(one.wc.wr_id - kReceives);
    const std::vector<Part> parts = messages[1 - one.side][r].scattered(kSlot);
    const std::vector<std::uint8_t> sent = message.content(slot(1 - one.side, kOwn, i));
    std::size_t at = 0;  // of what was received
    for (const Part& part : parts)
      for (std::size_t byte = part.offset; byte < part.offset + part.bytes && at < skipped + sent.size();
           byte++, at++) {
        const std::size_t here = receives_in + r * kSlot + byte;
        const bool is_there = header_only_ ? placed(one.side).covers(here, 1)
                                           : at < skipped || box.sides[one.side].memory[here] == sent[at - skipped];
        ASSERT_TRUE(is_there) << i << " byte " << at;
      }
  }
  std::uint64_t number_at(unsigned side, std::size_t offset) const {
    std::uint64_t number = 0;
    std::memcpy(&number, &box.sides[side].memory[offset], 8);
    return number;
  }

  void expect_covered(unsigned side) const {
    const std::uint64_t added = all_of(1 - side, IBV_WR_ATOMIC_FETCH_AND_ADD);
    const std::uint64_t swapped = all_of(1 - side, IBV_WR_ATOMIC_CMP_AND_SWP);
    std::uint64_t expected = 0;
    for (unsigned i = 0; i < kMessages; i++) {
      const Message &came = messages[1 - side][i], &own = messages[side][i];
      if (!came.is_answered()) expected += expect_covered(side, kTheirs, i, came.lies());
      if (own.is_answered()) expected += expect_covered(side, kAnswers, i, own.lies());
    }
    EXPECT_EQ(placed(side).covers(kAdded, 8), added > 0);
    EXPECT_EQ(placed(side).covers(kSwapped, 8), swapped > 0);
    EXPECT_EQ(placed(side).bytes_covered(), expected + 8 * ((added > 0) + (swapped > 0))) << "nothing else was written";
    EXPECT_EQ(placed(side).bytes_written(), expected + 8 * (added + swapped)) << "nothing was written twice";
  }
  std::uint64_t expect_covered(unsigned side, std::size_t area, unsigned i, const std::vector<Part>& parts) const {
    std::uint64_t bytes = 0;
    for (const Part& part : parts) {
      EXPECT_TRUE(placed(side).covers(area + i * kSlot + part.offset, part.bytes)) << i;
      bytes += part.bytes;
    }
    return bytes;
  }
  const nic_model::Extents& placed(unsigned side) const {
    return *box.sides[side].host->host.memory().find(box.sides[side].key)->placed;
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

  // The queue pairs go, and nothing is left of them.
  void end() {
    disconnect();
    box.run();
    expect_idle();
  }

  std::vector<std::uint64_t> counters() const {
    std::vector<std::uint64_t> all;
    for (const auto& device : box.devices)
      device->books().for_each_counter([&](const CounterView& view) { all.push_back(view.value); });
    return all;
  }
};

}  // namespace rocebox::test::properties
