// SPDX-License-Identifier: BSD-3-Clause
// Packets that nobody of ours has sent, from the wire: their immediates are judged and counted by reason, no buffer and
// no bitmap of a message changes, and what is sent later still arrives. Any PSN will do: UC begins anew with each
// message.
#include <map>

#include "tests/unit/sdr/backend_kit.h"

namespace rocebox::sdr_forged_test {
namespace {

using namespace sdr;

constexpr std::uint32_t kMtu = 1024, kEntry = 64 << 10, kGone = 0, kHalf = 1, kTold = 2, kFree = 3, kUser = 0xCAFEF00D;

// Of the peer's four IDs 0 is completed, of 1 the first 4 packets of 10 are here, 2 is whole with its immediate, and 3
// is not posted.
class ForgedBox : public SdrBox {
 public:
  ForgedBox() : SdrBox(small_queue_pair()) {
    for (std::uint32_t id : {kGone, kHalf, kTold}) receives.push_back(receive(id * kEntry, 10000));
    send(0, 10000);
    sent.push_back(start());
    add(*sent[0], 100000, 4096);
    send(200000, 10000, &kUserHere);
    run();
    complete(*receives[kGone]);
    info = qps[1]->info();
  }

  // Everything that a message's owner can see, in words.
  std::vector<std::uint64_t> seen() const {
    std::vector<std::uint64_t> all;
    for (const std::uint32_t id : {kHalf, kTold}) {
      std::uint32_t user = 0;
      all.push_back(static_cast<std::uint64_t>(qps[1]->user_immediate(*receives[id], user)));
      all.push_back(id == kTold ? user : 0);
      for (std::uint32_t chunk = 0; chunk < receives[id]->chunks; chunk++) {
        std::uint64_t bits = 0;
        EXPECT_EQ(qps[1]->packets_of_chunk(*receives[id], chunk, bits), Status::kSuccess);
        all.push_back(bits << 8 | receives[id]->bitmap[chunk]);
      }
    }
    return all;
  }

  struct Forged {
    std::uint32_t message, offset, fragment = 0;
    std::uint32_t bytes = kMtu;
    std::uint32_t generation = 0;           ///< of the queue pair that it comes by
    std::uint32_t entry = kGone, root = 0;  ///< where its bytes go: the NULL key
    std::uint64_t within = 0;               ///< of the entry
    std::uint8_t opcode = IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    bool corrupt = false;
  };
  void forge(const Forged& what) {
    static const std::vector<std::uint8_t> bytes(kMtu, 0xEE);
    roce::PacketSpec spec;
    spec.underlay.source_mac = {2, 0x72, 10, 0, 0, 1};
    spec.underlay.destination_mac = {2, 0x72, 10, 0, 0, 2};
    spec.underlay.addresses = {roce::ipv4(10, 0, 0, 1), roce::ipv4(10, 0, 0, 2)};
    spec.opcode = what.opcode;
    spec.destination_qp = info.qpns[what.generation * info.options.channels + random() % info.options.channels];
    spec.psn = static_cast<std::uint32_t>(random()) & roce::kPsnMask;
    spec.virtual_address = std::uint64_t{what.entry} * kEntry + what.within;
    spec.rkey = info.root_keys[what.root];
    spec.dma_length = what.bytes;
    spec.immediate = info.options.layout.pack({what.message, what.offset, what.fragment});
    spec.payload = std::span(bytes).first(what.bytes);
    PacketPtr packet = pool.allocate(roce::built_bytes(spec));
    roce::build(*packet, spec);
    if (what.corrupt) roce::immdt(*packet)->data = spec.immediate ^ 1u << random() % 32;
    fabric.inject({1, 0}, packet.release());
    fabric.run(now);
  }

  std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> all(qps[1]->arrivals().begin(), qps[1]->arrivals().end());
    all.push_back(backends[1]->errors());
    return all;
  }

  // The message that was begun is made whole, and IDs go round three times.
  void expect_later_messages() {
    add(*sent[0], 100000 + 4096, 10000 - 4096, 1);
    end(*sent[0]);
    run(10 * kMillisecond);
    EXPECT_TRUE(same(100000, kHalf * kEntry, 10000));
    EXPECT_EQ(std::count(receives[kHalf]->bitmap, receives[kHalf]->bitmap + 3, 1), 3);
    for (const std::uint32_t id : {kHalf, kTold}) complete(*receives[id]);
    for (std::uint32_t number = 3; number < 16; number++) {
      const std::size_t to = 500000 + number * kEntry;
      Receive* one = receive(to, 50000);
      const std::uint32_t user = 0x9E3779B9 * number;
      Send* by = send(number * 1000, 50000, &user);
      run(10 * kMillisecond);
      std::uint32_t value = 0;
      ASSERT_TRUE(same(number * 1000, to, 50000)) << number;
      ASSERT_EQ(std::count(one->bitmap, one->bitmap + one->chunks, 1), one->chunks) << number;
      ASSERT_EQ(qps[1]->user_immediate(*one, value), Status::kSuccess);
      ASSERT_EQ(value, user);
      complete(*one);
      qps[0]->release(*by);
    }
    EXPECT_FALSE(qps[0]->broken() || qps[1]->broken());
  }

  std::uint32_t kUserHere = kUser;
  std::vector<Receive*> receives;
  std::vector<Send*> sent;
  QueuePairInfo info;
  std::mt19937_64 random{3};
};

constexpr unsigned kError = SDR_ARRIVALS, kNothing = SDR_ARRIVALS + 1;  // the NIC itself refuses it
using Forged = ForgedBox::Forged;
const std::tuple<const char*, Forged, unsigned> kCases[] = {
    {"an ID that the queue pair does not have", {4, 0}, SDR_NO_MESSAGE},
    {"the highest ID", {1023, 0x3FFFF, 15}, SDR_NO_MESSAGE},
    {"an ID that is not posted", {kFree, 0}, SDR_NO_MESSAGE},
    {"a message that is completed", {kGone, 9, 0, 784, 0, kGone, 0, 9 * kMtu}, SDR_NO_MESSAGE},
    {"an empty one of it", {kGone, 3, 7, 0}, SDR_NO_MESSAGE},
    {"a packet behind the end", {kHalf, 10}, SDR_OUTSIDE},
    {"far behind it", {kHalf, 0x3FFFF, 15}, SDR_OUTSIDE},
    {"its bytes behind the buffer's end, too", {kHalf, 10, 0, kMtu, 0, kHalf, 0, 10 * kMtu}, kNothing},
    {"bytes over the buffer's end", {kHalf, 9, 0, kMtu, 0, kHalf, 0, 9 * kMtu}, kNothing},
    {"bytes behind the root key's end", {kHalf, 5, 0, kMtu, 0, 4}, kNothing},
    {"another generation", {kHalf, 5, 0, kMtu, 1, kHalf, 1, 5 * kMtu}, SDR_LATE_GENERATION},
    {"the last generation, whole message", {kTold, 0, 5, kMtu, 3, kTold, 3}, SDR_LATE_GENERATION},
    {"a packet that is here", {kHalf, 3}, SDR_DUPLICATE},
    {"a packet that is here, with another fragment", {kTold, 9, 0xF}, SDR_DUPLICATE},
    {"a fragment of what is told already", {kTold, 3, 0xF, 0}, SDR_FRAGMENT},
    {"a fragment of what has no immediate", {kHalf, 7, 9, 0}, SDR_FRAGMENT},
    {"a fragment behind the last one", {kHalf, 8, 9, 0}, SDR_OUTSIDE},
    {"the highest fragment", {kTold, 0x3FFFF, 15, 0}, SDR_OUTSIDE},
    {"a WRITE without immediate", {kHalf, 5, 0, kMtu, 0, kGone, 0, 0, IBV_OPCODE_UC_RDMA_WRITE_ONLY}, kNothing},
    {"a SEND without bytes", {kHalf, 5, 0, 0, 0, 0, 0, 0, IBV_OPCODE_UC_SEND_ONLY_WITH_IMMEDIATE}, kError},
    {"a SEND, longer than any receive request", {kHalf, 5, 0, kMtu, 0, 0, 0, 0, IBV_OPCODE_UC_SEND_ONLY}, kNothing},
    {"a corrupt immediate",
     {kHalf, 5, 0, kMtu, 0, kHalf, 0, 5 * kMtu, IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, true},
     kNothing},
};

TEST(SdrForged, EachIsCountedByItsReasonAndTouchesNothing) {
  ForgedBox box;
  const std::vector<std::uint8_t> memory = box.memory[1];
  const std::vector<std::uint64_t> seen = box.seen();
  for (const auto& [what, forged, reason] : kCases) {
    SCOPED_TRACE(what);
    std::vector<std::uint64_t> counts = box.counts();
    box.forge(forged);
    box.run(kMillisecond);
    if (reason != kNothing) counts[reason]++;
    EXPECT_EQ(box.counts(), counts);
    EXPECT_EQ(box.seen(), seen);
    EXPECT_TRUE(box.memory[1] == memory);
  }
  box.expect_later_messages();
}

// More of each than a queue pair has receive requests, in any order: none is lost to those who come later.
TEST(SdrForged, AFloodTouchesNothing) {
  ForgedBox box;
  const std::vector<std::uint8_t> memory = box.memory[1];
  const std::vector<std::uint64_t> seen = box.seen();
  std::map<unsigned, std::uint64_t> expected;
  const std::vector<std::uint64_t> before = box.counts();
  for (unsigned i = 0; i < 300 * std::size(kCases); i++) {
    const auto& [what, forged, reason] = kCases[box.random() % std::size(kCases)];
    Forged one = forged;
    if (reason == SDR_NO_MESSAGE && one.message > kFree)
      one.message = 4 + static_cast<std::uint32_t>(box.random() % 1020);
    if (reason == SDR_OUTSIDE) one.offset = 10 + static_cast<std::uint32_t>(box.random() % 262134);
    one.fragment = static_cast<std::uint32_t>(box.random() % 16);
    box.forge(one);
    expected[reason]++;
    if (i % 64 == 0) box.run(20 * kMicrosecond);
  }
  box.run(kMillisecond);
  for (unsigned reason = 0; reason <= kError; reason++)
    EXPECT_EQ(box.counts()[reason] - before[reason], expected[reason]) << reason;
  EXPECT_EQ(box.seen(), seen);
  EXPECT_TRUE(box.memory[1] == memory);
  box.expect_later_messages();
}

}  // namespace
}  // namespace rocebox::sdr_forged_test
