// SPDX-License-Identifier: BSD-3-Clause
// Probes of the round-trip time and messages of peers that somebody has made up, byte by byte as
// nic_model/rate/README.md has them: what is not the peer's is counted and tells nothing, and what is believed is
// bounded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "nic_model/rate/observer.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::forging {
namespace {

using nic_model::Controls;
using nic_model::QpEvent;
using nic_model::QpEventKind;

constexpr std::uint16_t kProbePort = 49791, kMessagePort = 49792;

// A message to the observer of the second NIC, and what is wrong with it.
struct PeerMessage {
  const char* name;
  const char* counter;
  std::uint8_t source = 1;
  std::uint8_t magic = 'R', version = 1, reserved = 0;
  std::uint16_t checksum_off = 0;
  std::uint32_t destination_qp_off = 0, source_qp_off = 0;
  std::uint64_t sent = 1000;
  std::size_t bytes = 128;
};
const PeerMessage kPeerMessages[] = {
    {.name = "another form", .counter = "drop_peer_message_damaged", .magic = 'X'},
    {.name = "another version", .counter = "drop_peer_message_damaged", .version = 2},
    {.name = "no zeros", .counter = "drop_peer_message_damaged", .reserved = 1},
    {.name = "a wrong checksum", .counter = "drop_peer_message_damaged", .checksum_off = 1},
    {.name = "shorter than it is", .counter = "drop_peer_message_damaged", .bytes = 126},
    {.name = "another address", .counter = "drop_peer_message_stranger", .source = 9},
    {.name = "no such queue pair", .counter = "drop_peer_message_stranger", .destination_qp_off = 7},
    {.name = "another queue pair's", .counter = "drop_peer_message_stranger", .source_qp_off = 7},
    {.name = "of the past", .counter = "drop_peer_message_old", .sent = 500},
    {.name = "doubled", .counter = "drop_peer_message_old"},
};

void inject(NicBox& box, const PeerMessage& of) {
  std::vector<std::uint8_t> b(of.bytes);
  std::memcpy(b.data(), "RBPM", 4);
  b[0] = of.magic;
  b[4] = of.version;
  put_number(&b[8], box.sides[1].qp->number() + of.destination_qp_off, 4);
  put_number(&b[12], box.sides[0].qp->number() + of.source_qp_off, 4);
  put_number(&b[16], of.sent, 8);
  b[31] = of.reserved;
  box.inject(1, {.source = of.source, .destination_port = kMessagePort, .checksum_off = of.checksum_off, .payload = b});
}

TEST(Forged, MessagesMustBeItsPeersAndNew) {
  for (const PeerMessage& row : kPeerMessages) {
    SCOPED_TRACE(row.name);
    NicBox box("rate: 100Gbps\ndcqcn: {enabled: true}");
    box.connect();
    inject(box, {});
    ASSERT_EQ(box.count(1, "peer_messages_received"), 1u);
    inject(box, row);
    EXPECT_EQ(box.count(1, row.counter), 1u);
    EXPECT_EQ(box.count(1, "peer_messages_received"), 1u);
    PeerMessage next;
    next.sent = 1001;
    inject(box, next);
    EXPECT_EQ(box.count(1, "peer_messages_received"), 2u) << "the peer's next one is told";
  }
  NicBox unobserved;
  unobserved.connect();
  inject(unobserved, {});
  EXPECT_EQ(unobserved.count(1, "drop_peer_message_unwanted"), 1u);
}

// A probe's request to a side, or an answer to it.
struct Probe {
  const char* name = "";
  bool is_answer = false;
  std::uint8_t source = 0;  // 0: the peer's
  std::uint8_t magic = 'R', version = 1, kind = 0, zero = 0;
  std::uint16_t checksum_off = 0;
  std::uint32_t destination_qp_off = 0, source_qp_off = 0, serial = 1;
  std::uint64_t request_sent = 0, request_received = 0, response_sent = 0;
  std::size_t bytes = 80;
};

void inject(NicBox& box, unsigned side, const Probe& of) {
  std::vector<std::uint8_t> b(of.bytes);
  std::memcpy(b.data(), "RBRT", 4);
  b[0] = of.magic;
  b[4] = of.version;
  b[5] = of.kind ? of.kind : of.is_answer ? 2 : 1;
  b[7] = of.zero;
  put_number(&b[8], box.sides[side].qp->number() + of.destination_qp_off, 4);
  put_number(&b[12], box.sides[1 - side].qp->number() + of.source_qp_off, 4);
  put_number(&b[16], of.serial, 4);
  put_number(&b[24], of.request_sent, 8);
  if (b.size() >= 48) put_number(&b[32], of.request_received, 8), put_number(&b[40], of.response_sent, 8);
  ForgedDatagram datagram{.source = of.source ? of.source : static_cast<std::uint8_t>(2 - side),
                          .destination = static_cast<std::uint8_t>(side + 1),
                          .source_port = 50000,
                          .destination_port = kProbePort,
                          .checksum_off = of.checksum_off,
                          .payload = b};
  if (of.is_answer) std::swap(datagram.source_port, datagram.destination_port);
  box.inject(side, datagram);
}

const Probe kWrongProbes[] = {
    {.name = "another form", .magic = 'X'},
    {.name = "another version", .version = 2},
    {.name = "a kind that is none", .kind = 3},
    {.name = "no zeros", .zero = 1},
    {.name = "a wrong checksum", .checksum_off = 1},
    {.name = "shorter than it is", .bytes = 78},
    {.name = "longer than it is", .bytes = 82},
    {.name = "another address", .source = 9},
    {.name = "no such queue pair", .destination_qp_off = 7},
    {.name = "a queue pair of an absurd number", .destination_qp_off = 0xFFFFFF00},
    {.name = "another queue pair's", .source_qp_off = 7},
};

TEST(Forged, ProbesOfStrangersAreNotAnswered) {
  for (const Probe& row : kWrongProbes) {
    SCOPED_TRACE(row.name);
    NicBox box;
    box.connect();
    inject(box, 1, row);
    EXPECT_EQ(box.count(1, "drop_rtt"), 1u);
    EXPECT_EQ(box.count(1, "rtt_responses_sent"), 0u);
    inject(box, 1, {});
    EXPECT_EQ(box.count(1, "rtt_responses_sent"), 1u) << "the peer's own is";
    box.run(kMillisecond);
    EXPECT_EQ(box.count(0, "drop_rtt"), 1u) << "but who did not ask takes no answer";
  }
}

// Asks with each packet, keeps what it is told.
class Asker final : public nic_model::Observer {
 public:
  std::uint32_t events() const override { return event_bit(QpEventKind::kTx) | event_bit(QpEventKind::kRtt); }
  void on_event(Controls& controls, const QpEvent& event) override {
    if (event.kind == QpEventKind::kTx && asks) asked += controls.request_rtt(event.qpn, 50000);
    if (event.rtt) samples.push_back(*event.rtt);
  }
  bool asks = true;
  unsigned asked = 0;
  std::vector<nic_model::RttSample> samples;
};

// A box whose first side has asked once, and has the answer under way for 100 us.
class AskedBox : public NicBox {
 public:
  AskedBox() : NicBox("rate: 100Gbps", "delay: 100us") {
    auto asker = std::make_unique<Asker>();
    seen = asker.get();
    nics[0]->observe_by(std::move(asker));
    connect();
    post(0, 1, IBV_WR_RDMA_WRITE, 0, 1);
    run(500 * kMicrosecond);  // their addresses are known, and the first probe is answered
    seen->samples.clear();
    seen->asked = 0;
    post(0, 2, IBV_WR_RDMA_WRITE, 0, 1);
    run(50 * kMicrosecond);
    seen->asks = false;
    serial = static_cast<std::uint32_t>(count(0, "rtt_requests_sent"));
    dropped = count(0, "drop_rtt");
  }
  Asker* seen;
  std::uint32_t serial;
  std::uint64_t dropped;
};

TEST(Forged, AnswersMustBeThePeersToAProbeThatWaits) {
  for (const Probe& row : kWrongProbes) {
    SCOPED_TRACE(row.name);
    AskedBox box;
    ASSERT_EQ(box.seen->asked, 1u);
    Probe forged = row;
    forged.is_answer = true;
    forged.serial = box.serial;
    inject(box, 0, forged);
    EXPECT_EQ(box.count(0, "drop_rtt"), box.dropped + 1);
    EXPECT_TRUE(box.seen->samples.empty());
    box.run(kMillisecond);
    EXPECT_EQ(box.seen->samples.size(), 1u) << "the true one is told all the same";
  }
  for (const std::uint32_t off : {1u, 8u, 0x80000000u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(off);
    AskedBox box;
    inject(box, 0, {.is_answer = true, .serial = box.serial + off});
    EXPECT_EQ(box.count(0, "drop_rtt"), box.dropped + 1) << "none of that number waits";
    EXPECT_TRUE(box.seen->samples.empty());
  }
}

// Who can forge the peer's address can be quicker than the peer: once, and its times are no others than can be.
TEST(Forged, TimesThatCannotBeAreBoundedAndTheTrueAnswerIsLateThen) {
  constexpr std::uint64_t kAbsurd[] = {0, 1, 1'000'000'000'000, UINT64_MAX / 2, UINT64_MAX / 2 + 1, UINT64_MAX};
  for (const std::uint64_t received : kAbsurd)
    for (const std::uint64_t sent : kAbsurd) {
      SCOPED_TRACE(fmt::format("{} {}", received, sent));
      AskedBox box;
      inject(box, 0,
             {.is_answer = true,
              .serial = box.serial,
              .request_sent = sent,
              .request_received = received,
              .response_sent = sent});
      ASSERT_EQ(box.seen->samples.size(), 1u);
      const nic_model::RttSample& one = box.seen->samples[0];
      EXPECT_NEAR(static_cast<double>(one.rtt()), 50e3, 1e3) << "by this NIC's own clock";
      EXPECT_GE(one.network_rtt(), 0);
      EXPECT_LE(one.network_rtt(), one.rtt());
      box.run(kMillisecond);
      EXPECT_EQ(box.seen->samples.size(), 1u);
      EXPECT_EQ(box.count(0, "drop_rtt"), box.dropped + 1) << "the true one";
    }
}

}  // namespace
}  // namespace rocebox::test::forging
