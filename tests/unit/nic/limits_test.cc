// SPDX-License-Identifier: BSD-3-Clause
// Bounds of nic_model/limits.h that are far: what is at one is taken, one more is refused, and what is given back makes
// room for the next. Nearer ones are where what they bound is tested (misuse_test.cc, multicast_test.cc, ...).
#include "nic_model/limits.h"

#include <fmt/format.h>

#include "nic_model/memory/memory.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test {
namespace {

using nic_model::IndirectPiece;
using nic_model::Memory;
using nic_model::MemoryError;

constexpr std::uint32_t kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

TEST(Limits, RegionsOfOneNic) {
  Memory memory;
  const std::uint32_t domain = memory.new_domain();
  std::uint8_t byte = 0;
  const std::uint32_t first = memory.add(domain, &byte, 1, kAll), second = memory.add_null(domain);
  for (std::uint32_t i = 2; i < nic_model::kRegionsMax - 1; i++) ASSERT_NE(memory.add_null(domain), 0u);
  const nic_model::Mapping last = memory.map(domain, &byte, 1, kAll);
  ASSERT_NE(last.key, 0u);
  ASSERT_EQ(memory.regions(), nic_model::kRegionsMax);
  EXPECT_EQ(memory.add(domain, &byte, 1, kAll), 0u);
  EXPECT_EQ(memory.add_at(domain, &byte, 0, 1, kAll), 0u);
  EXPECT_EQ(memory.map(domain, &byte, 1, kAll).key, 0u);
  EXPECT_EQ(memory.add_without_bytes(domain, 0, 1, kAll), 0u);
  EXPECT_EQ(memory.add_indirect(domain, 0, {{first, 0, 1}}, kAll), 0u);
  EXPECT_EQ(memory.add_table(domain, 1, 1, kAll), 0u);
  EXPECT_EQ(memory.add_null(domain), 0u);
  EXPECT_EQ(memory.add_window(domain), 0u);
  EXPECT_EQ(memory.regions(), nic_model::kRegionsMax);
  EXPECT_EQ(memory.check(last.key, {domain}, last.address, 1, IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);

  ASSERT_TRUE(memory.remove(second));
  EXPECT_FALSE(memory.remove(second));
  const nic_model::Mapping next = memory.map(domain, &byte, 1, kAll);
  EXPECT_NE(next.key, 0u);
  EXPECT_NE(next.key, second) << "whose key is not known again at once";
  EXPECT_EQ(next.address, last.address + 2 * 4096) << "what was refused took no address";
  EXPECT_EQ(memory.add_null(domain), 0u);
  EXPECT_EQ(memory.regions(), nic_model::kRegionsMax);
}

// Many are taken back and registered anew: no slower for their number. The oldest place comes first.
TEST(Limits, RegionsThatWereTakenBackComeAgainInTurn) {
  constexpr std::uint32_t kMany = 300'000;
  Memory memory;
  const std::uint32_t domain = memory.new_domain();
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i < kMany; i++) keys.push_back(memory.add_null(domain));
  for (const std::uint32_t key : keys) ASSERT_TRUE(memory.remove(key));
  for (std::uint32_t i = 0; i < kMany - 64; i++) ASSERT_EQ(memory.add_null(domain) >> 8, keys[i] >> 8);
  EXPECT_EQ(memory.add_null(domain) >> 8, kMany + 1) << "the last 64 rest";
  EXPECT_EQ(memory.regions(), kMany - 63);
}

TEST(Limits, PiecesOfAnIndirectKey) {
  Memory memory;
  const std::uint32_t domain = memory.new_domain();
  std::vector<std::uint8_t> bytes(nic_model::kIndirectPiecesMax + 1);
  const std::uint32_t key = memory.add_at(domain, bytes.data(), 0, bytes.size(), kAll);
  // One byte each, the last one first.
  std::vector<IndirectPiece> pieces;
  for (std::uint64_t i = nic_model::kIndirectPiecesMax; i > 0; i--) pieces.push_back({key, i - 1, 1});
  const std::uint32_t most = memory.add_indirect(domain, 0, pieces, kAll);
  ASSERT_NE(most, 0u);
  EXPECT_EQ(memory.check(most, {domain}, 0, pieces.size(), IBV_ACCESS_REMOTE_WRITE), MemoryError::kNone);
  EXPECT_EQ(memory.check(most, {domain}, 0, pieces.size() + 1, IBV_ACCESS_REMOTE_WRITE), MemoryError::kOutOfBounds);
  const std::uint8_t byte = 7;
  memory.write(most, pieces.size() - 1, 1, &byte);
  EXPECT_EQ(bytes[0], 7);
  pieces.push_back({key, nic_model::kIndirectPiecesMax, 1});
  EXPECT_EQ(memory.add_indirect(domain, 0, pieces, kAll), 0u);
  EXPECT_EQ(memory.regions(), 2u);
}

TEST(Limits, EntriesOfATable) {
  Memory memory;
  const std::uint32_t domain = memory.new_domain(), nothing = memory.add_null(domain);
  constexpr std::uint32_t kMost = nic_model::kTableEntriesMax;
  EXPECT_EQ(memory.add_table(domain, kMost + 1, 16, kAll), 0u);
  EXPECT_EQ(memory.regions(), 1u);
  const std::uint32_t table = memory.add_table(domain, kMost, 16, kAll);
  ASSERT_NE(table, 0u);
  EXPECT_TRUE(memory.set_entry(table, kMost - 1, {nothing, 0, 16}));
  EXPECT_FALSE(memory.set_entry(table, kMost, {nothing, 0, 16}));
  constexpr std::uint64_t kLast = std::uint64_t{kMost - 1} * 16;
  EXPECT_EQ(memory.check(table, {domain}, kLast, 16, IBV_ACCESS_REMOTE_READ), MemoryError::kNone);
  EXPECT_EQ(memory.check(table, {domain}, kLast, 17, IBV_ACCESS_REMOTE_READ), MemoryError::kOutOfBounds);
}

TEST(Limits, IndirectKeysOfIndirectKeys) {
  Memory memory;
  const std::uint32_t domain = memory.new_domain();
  std::array<std::uint8_t, 8> bytes{};
  std::uint32_t key = memory.add_at(domain, bytes.data(), 0, bytes.size(), kAll);
  for (unsigned depth = 1; depth <= nic_model::kIndirectDepthMax + 1; depth++) {
    key = memory.add_indirect(domain, 0, {{key, 0, 8}}, kAll);
    EXPECT_EQ(memory.check(key, {domain}, 0, 8, IBV_ACCESS_REMOTE_WRITE),
              depth > nic_model::kIndirectDepthMax ? MemoryError::kTooDeep : MemoryError::kNone)
        << depth;
    if (depth > nic_model::kIndirectDepthMax) break;
    const auto byte = static_cast<std::uint8_t>(depth);
    memory.write(key, depth, 1, &byte);
    EXPECT_EQ(bytes[depth], depth);
  }
}

TEST(Limits, ListenersOfOneNic) {
  CmBox box;
  constexpr std::size_t kMost = nic_model::kListenersMax;
  box.on(1, [&](Host& host) {
    const auto listen = [&](std::size_t port) {
      return host.connections().listen(box.hosts[1]->number, PortSpace::kTcp, static_cast<std::uint16_t>(port), 1);
    };
    for (std::size_t port = 1; port <= kMost; port++) ASSERT_EQ(0, listen(port));
    EXPECT_EQ(ENOMEM, listen(kMost + 1));
    EXPECT_EQ(EADDRINUSE, listen(kMost));
    EXPECT_EQ(0, host.connections().close(PortSpace::kTcp, 7));
    EXPECT_EQ(0, listen(kMost + 1));
    EXPECT_EQ(ENOMEM, listen(7));
  });
}

// Those of this side wait for a peer that says no MAC address.
TEST(Limits, ConnectionsOfOneNic) {
  CmBox box;
  ASSERT_EQ(0, box.listen(1));
  ASSERT_EQ(0, box.listen(1, PortSpace::kUdp));
  ConnectionId id = 0;
  const auto ask = [&](Host& host) {
    return host.connections().connect(box.hosts[1]->number, roce::ipv4(10, 0, 0, 9), PortSpace::kUdp, kCmPort, nullptr,
                                      {}, id);
  };
  box.on(1, [&](Host& host) {
    for (std::uint32_t i = 0; i < nic_model::kConnectionsMax; i++) ASSERT_EQ(0, ask(host));
    EXPECT_EQ(ENOMEM, ask(host));
  });
  ASSERT_EQ(box.held(1), nic_model::kConnectionsMax);
  // Who asks for one is told so.
  box.connect(0, box.make_qp(0));
  box.run(kMillisecond);
  ASSERT_EQ(box.events(0), Types{ConnectionEventType::kRejected});
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmReject::kNoResources));
  box.connect(0, nullptr, {}, PortSpace::kUdp);
  box.run(kMillisecond);
  ASSERT_EQ(box.events(0), (Types{ConnectionEventType::kRejected, ConnectionEventType::kRejected}));
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmSidrStatus::kNoQp));
  EXPECT_EQ(box.count(1, "drop_cm_refused"), 2u);
  EXPECT_EQ(box.held(1), nic_model::kConnectionsMax);

  const ConnectionId last = id;
  EXPECT_EQ(0, box.destroy(1, last));
  box.on(1, [&](Host& host) {
    EXPECT_EQ(0, ask(host));
    EXPECT_NE(id, last) << "late messages of the one before meet nobody";
    EXPECT_EQ(ENOMEM, ask(host));
  });
  EXPECT_EQ(ENOENT, box.destroy(1, last));
}

TEST(Limits, TimesOfTheConnectionManager) {
  EXPECT_EQ(nic_model::cm_span(23), Nanos{4096} << 23);
  EXPECT_EQ(nic_model::cm_span(24), nic_model::kCmWaitMax);
  EXPECT_EQ(nic_model::cm_span(31), nic_model::kCmWaitMax);
  EXPECT_EQ(nic_model::cm_span(UINT32_MAX), nic_model::kCmWaitMax) << "5 bits have no more";
}

TEST(Limits, QueuesOfOneQueuePair) {
  NicBox box;
  box.connect();
  box.on(0, [&](Host& host) {
    const auto make = [&](const ibv_qp_cap& capacity) {
      nic_model::QpInit init = box.sides[0].qp->init;
      init.capacity = capacity;
      errno = 0;
      Qp* const qp = host.create_qp(init);
      if (qp) host.destroy_qp(*qp);
      return errno;
    };
    const std::uint32_t requests = nic_model::kWorkRequestsMax, sges = nic_model::kSgesMax;
    EXPECT_EQ(make({requests / 2, requests, 1, sges, 0}), 0) << "two blocks each";
    EXPECT_EQ(make({requests / 2 + 1, requests, 1, sges, 0}), EINVAL);
    EXPECT_EQ(make({16, requests, sges, sges, nic_model::kInlineBytesMax}), 0);
    EXPECT_EQ(make({16, requests + 1, sges, sges, nic_model::kInlineBytesMax}), EINVAL);
    ibv_srq_init_attr shared{};
    shared.attr = {requests, sges, 0};
    nic_model::ReceiveQueue* const queue = host.create_srq(shared);
    ASSERT_NE(queue, nullptr);
    EXPECT_EQ(host.destroy_srq(*queue), 0);
    shared.attr = {requests + 1, sges, 0};
    EXPECT_EQ(host.create_srq(shared), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST(Limits, QueuePairsOfOneNic) {
  for (const std::uint32_t most : {nic_model::kQpsMax, nic_model::kQpsMax + 1}) {
    config::Mistakes mistakes("test");
    const config::Node node = config::parse_yaml(fmt::format("address: 10.0.0.1\nqueue_pairs: {}\n", most), mistakes);
    config::FieldsReader reader(&node, mistakes);
    static const Registry registry;
    registry.find("nic")->options(registry)->fields(reader);
    EXPECT_EQ(mistakes.none(), most == nic_model::kQpsMax);
  }
}

TEST(Limits, EntriesOfOneCompletionQueue) {
  NicBox box;
  box.on(0, [&](Host& host) {
    EXPECT_EQ(host.create_cq(nic_model::kCqEntriesMax + 1, 0), nullptr);
    EXPECT_EQ(errno, EINVAL);
    nic_model::CompletionQueue* const most = host.create_cq(nic_model::kCqEntriesMax, 0);
    ASSERT_NE(most, nullptr);
    EXPECT_EQ(host.destroy_cq(*most), 0);
  });
}

// Of eight messages that have half of half of all PSNs one more is read with the first ACK, and no further one.
TEST(Limits, PsnsOfWhatWasRead) {
  constexpr std::uint32_t kBytes = nic_model::kPsnsReadMax / 8 * 256;
  for (const unsigned messages : {9u, 10u}) {
    NicBox box("rate: 400Gbps\nheader_only: true");
    box.connect({.mtu = IBV_MTU_256, .bytes = kBytes, .without_bytes = true});
    for (unsigned i = 0; i < messages; i++) ASSERT_EQ(box.post(0, i, IBV_WR_RDMA_WRITE, 0, kBytes), 0);
    box.run(10 * kMicrosecond);
    EXPECT_EQ(box.sides[0].qp->send_queue.has_posted(), messages == 10);
  }
}

// As many reads over PCIe are under way at once: of all others the first begins when the first of them ends.
TEST(Limits, PacketsThatAreReadAhead) {
  constexpr std::size_t kMost = nic_model::kStagedPackets;
  NicBox box(
      fmt::format("rate: 100Gbps\npcie: {{bandwidth: 100Tbps, read_latency: 1ms, outstanding_reads: {}}}", kMost));
  box.connect();
  for (unsigned i = 0; i < kMost + 60; i++) ASSERT_EQ(box.post(0, i, IBV_WR_RDMA_WRITE, 0, 64), 0);
  box.run(1500 * kMicrosecond);
  EXPECT_EQ(box.count(0, "tx_roce_packets"), kMost);
  box.run(kMillisecond);
  EXPECT_EQ(box.count(0, "tx_roce_packets"), kMost + 60);
}

}  // namespace
}  // namespace rocebox::test
