// SPDX-License-Identifier: BSD-3-Clause
// Whom faults befall: random ones limited by `match`, events by opcode, kind, address and relative PSN.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

using link::Action;
using Numbers = std::vector<std::uint64_t>;

roce::PacketSpec packet_of(std::uint8_t opcode, std::uint32_t qpn = 1, std::uint32_t psn = 0, std::uint8_t host = 1) {
  roce::PacketSpec made;
  made.opcode = opcode;
  made.destination_qp = qpn;
  made.psn = psn;
  made.underlay.addresses = {roce::ipv4(10, 0, 0, host), roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(host ^ 3))};
  return made;
}

roce::PacketSpec answer(std::uint8_t syndrome) {
  roce::PacketSpec made = packet_of(IBV_OPCODE_RC_ACKNOWLEDGE);
  made.syndrome = syndrome;
  return made;
}

std::vector<std::uint8_t> arp_frame() {
  std::vector<std::uint8_t> bytes(60, 0);
  bytes[12] = 0x08, bytes[13] = 0x06;
  return bytes;
}

link::Event act(Action action, std::int64_t occurrence = 1) {
  link::Event made;
  made.action = action;
  made.occurrence = occurrence;
  return made;
}

// One packet of each kind; `word` is its kind.
struct Sample {
  const char* word;
  std::vector<std::uint8_t> bytes;
};
std::vector<Sample> samples() {
  std::vector<Sample> all = {{"data", test::frame(packet_of(IBV_OPCODE_RC_SEND_ONLY))},
                             {"data", test::frame(packet_of(IBV_OPCODE_RC_RDMA_WRITE_ONLY))},
                             {"data", test::frame(packet_of(IBV_OPCODE_UC_RDMA_WRITE_MIDDLE))},
                             {"data", test::frame(packet_of(IBV_OPCODE_UD_SEND_ONLY))},
                             {"read_request", test::frame(packet_of(IBV_OPCODE_RC_RDMA_READ_REQUEST))},
                             {"read_response", test::frame(packet_of(IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST))},
                             {"read_response", test::frame(packet_of(IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE))},
                             {"atomic", test::frame(packet_of(IBV_OPCODE_RC_COMPARE_SWAP))},
                             {"atomic_ack", test::frame(packet_of(IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE))},
                             {"ack", test::frame(answer(0x1F))},
                             {"rnr_nak", test::frame(answer(0x2C))},
                             {"nak", test::frame(answer(0x60))},
                             {"cnp", test::frame(packet_of(roce::kOpcodeCnp))},
                             {"", test::frame(answer(0x40))},     // reserved
                             {"", test::frame(packet_of(0x1F))},  // unknown opcode
                             {"none", arp_frame()}};
  return all;
}

TEST(LinkMatch, EachKindIsThatKindAlone) {
  for (const char* word :
       {"roce", "data", "read_request", "read_response", "atomic", "atomic_ack", "ack", "nak", "rnr_nak", "cnp"}) {
    link::Config config;
    config.forward.loss = 1;
    config.forward.match.kind = {word};
    test::KernelBox box(with(config));
    Numbers expected;
    std::uint64_t sequence = 0;
    for (const Sample& sample : samples()) {
      box.send(0, 0, sample.bytes);
      const std::string_view kind = sample.word;
      const bool lost = word == std::string_view("roce") ? kind != "none" : kind == word;
      sequence++;
      if (!lost) expected.push_back(sequence);
    }
    EXPECT_EQ(sequences(box), expected) << word;
  }
}

TEST(LinkMatch, AllConditionsMustHold) {
  link::Config config;
  config.forward.loss = 1;
  config.forward.match.qpn = 7;
  config.forward.match.opcode = IBV_OPCODE_RC_SEND_ONLY;
  config.forward.match.source = roce::ipv4(10, 0, 0, 1);
  config.forward.match.destination = roce::ipv4(10, 0, 0, 2);
  test::KernelBox box(with(config));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 7));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 8));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_RDMA_WRITE_ONLY, 7));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 7, 0, 2));
  box.send(0, 0, arp_frame());
  EXPECT_EQ(sequences(box), (Numbers{2, 3, 4, 5}));
}

TEST(LinkMatch, AddressesAloneChooseOtherIpTrafficToo) {
  link::Config config;
  config.forward.loss = 1;
  config.forward.match.source = roce::ipv4(10, 0, 0, 1);
  test::KernelBox box(with(config));
  auto tcp = test::frame(packet_of(IBV_OPCODE_RC_SEND_ONLY));
  tcp[23] = 6;
  box.send(0, 0, tcp);
  box.send(0, 0, arp_frame());
  auto six = packet_of(IBV_OPCODE_RC_SEND_ONLY);
  six.underlay.ip_version = 6;
  six.underlay.addresses.source = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  box.send(0, 0, six);
  EXPECT_EQ(sequences(box), (Numbers{2, 3}));
}

// Which of the matching packets are hit depends on their numbers alone, as without `match`.
TEST(LinkMatch, EveryRandomFaultSparesTheOthersAndMovesNoPattern) {
  const std::pair<const char*, std::function<void(link::DirectionConfig&)>> faults[] = {
      {"loss", [](auto& d) { d.loss = 0.3; }},       {"burst_loss", [](auto& d) { d.burst_loss = {0.1, 0.3, 0, 1}; }},
      {"corrupt", [](auto& d) { d.corrupt = 0.3; }}, {"mark", [](auto& d) { d.mark = 0.3; }},
      {"trim", [](auto& d) { d.trim = 0.3; }},       {"duplicate", [](auto& d) { d.duplicate = 0.3; }},
      {"reorder", [](auto& d) { d.reorder = 0.3; }}};
  const std::vector<std::uint8_t> payload(64, 1);
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::uint32_t i = 0; i < 600; i++) {
    roce::PacketSpec made = packet_of(IBV_OPCODE_RC_SEND_ONLY, 1 + i % 3, i);
    made.underlay.tos = roce::kEcnEct0;
    made.payload = payload;
    sent.push_back(test::frame(made));
  }
  for (const auto& [name, set] : faults) {
    const auto harmed = [&, &set = set](std::int64_t qpn) {  // input sequences that did not come out once, as sent
      link::Config config;
      set(config.forward);
      config.forward.match.qpn = qpn;
      test::KernelBox box(with(config));
      for (const auto& bytes : sent) box.send(0, 0, bytes);
      box.drain();
      std::vector<unsigned> whole(sent.size() + 1);
      std::uint64_t high = 0;
      for (const test::Out& out : box.out) {
        const std::uint64_t n = out.meta.identity;
        if (out.bytes == sent[n - 1] && n > high)
          whole[n]++;
        else
          whole[n] += 2;
        high = std::max(high, n);
      }
      Numbers result;
      for (std::uint64_t n = 1; n <= sent.size(); n++)
        if (whole[n] != 1) result.push_back(n);
      return result;
    };
    Numbers expected;
    for (std::uint64_t n : harmed(-1))
      if ((n - 1) % 3 == 1) expected.push_back(n);
    EXPECT_GT(expected.size(), 20u) << name;
    if (name != std::string_view("reorder"))
      EXPECT_EQ(harmed(2), expected) << name;
    else
      for (std::uint64_t n : harmed(2)) EXPECT_EQ((n - 1) % 3, 1u);
  }
}

TEST(LinkEventChoice, ByKindOpcodeQpnAndAddress) {
  link::Config config;
  config.forward.events = {act(Action::kDrop, 2), act(Action::kDrop), act(Action::kDrop, 0), act(Action::kDrop)};
  config.forward.events[0].kind = {"ack"};
  config.forward.events[1].opcode = roce::kOpcodeCnp;
  config.forward.events[2].source = roce::ipv4(10, 0, 0, 2);
  config.forward.events[3].qpn = 9;
  test::KernelBox box(with(config));
  const roce::PacketSpec sent[] = {answer(0x1F),
                                   answer(0x60),
                                   answer(0x00),
                                   answer(0x1F),
                                   packet_of(roce::kOpcodeCnp),
                                   packet_of(roce::kOpcodeCnp),
                                   packet_of(IBV_OPCODE_RC_SEND_ONLY, 1, 0, 2),
                                   packet_of(IBV_OPCODE_RC_SEND_ONLY, 9, 5),
                                   packet_of(IBV_OPCODE_RC_SEND_ONLY, 9, 6)};
  for (const auto& one : sent) box.send(0, 0, one);
  EXPECT_EQ(sequences(box), (Numbers{1, 2, 4, 6, 9}));
}

// Behind an opcode that the specification reserves there may be anything: its bytes are no QPN and no PSN.
TEST(LinkEventChoice, AReservedOpcodeHasNoQpnAndNoPsn) {
  link::Config config;
  config.forward.events = {act(Action::kDrop, 0), act(Action::kDrop, 0), act(Action::kDrop)};
  config.forward.events[0].qpn = 0x11;
  config.forward.events[0].psn = 5;
  config.forward.events[1].qpn = 0x11;
  config.forward.events[2].opcode = roce::kOpcodeReserved;
  config.forward.events[2].occurrence = 2;
  test::KernelBox box(with(config));
  box.send(0, 0, packet_of(roce::kOpcodeReserved, 0x11, 5));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 0x12, 5));
  box.send(0, 0, packet_of(roce::kOpcodeReserved, 0x11, 6));
  EXPECT_EQ(sequences(box), (Numbers{1, 2}));
  Json json;
  JsonReport report(json);
  box.kernel->report(report);
  const Json fired = json["forward"]["events_fired"];
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0]["opcode"], "opcode 0x1f");
  EXPECT_EQ(fired[0]["qpn"], -1);
  EXPECT_EQ(fired[0]["psn"], -1);
}

// Both directions of a connection may use one QPN: the address tells its data from its ACKs.
TEST(LinkEventChoice, PsnWithAddress) {
  link::Config config;
  config.forward.events = {act(Action::kDrop, 0)};
  config.forward.events[0].qpn = 0x11;
  config.forward.events[0].psn = 5;
  config.forward.events[0].source = roce::ipv4(10, 0, 0, 1);
  test::KernelBox box(with(config));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 0x11, 5, 1));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_ACKNOWLEDGE, 0x11, 5, 2));
  EXPECT_EQ(sequences(box), (Numbers{2}));
}

TEST(LinkEventChoice, RelativePsnsCountFromEachQpsFirstRequest) {
  link::Config config;
  for (const auto& [qpn, psn, occurrence] :
       {std::tuple{7, 0, 1}, {7, 3, 1}, {7, 3, 2}, {8, 1, 0}, {9, 0, 2}, {99, 0, 1}}) {
    config.forward.events.push_back(act(Action::kDrop, occurrence));
    config.forward.events.back().qpn = qpn;
    config.forward.events.back().relative_psn = psn;
  }
  test::KernelBox box(with(config));
  const std::uint32_t start[] = {0xFFFFFE, 1000, 5};
  Numbers expected;
  std::uint64_t sequence = 0;
  for (std::uint32_t qpn : {7u, 8u, 9u}) {  // an answer neither counts nor begins the count
    box.send(0, 0, packet_of(IBV_OPCODE_RC_ACKNOWLEDGE, qpn, 77));
    box.send(0, 0, packet_of(IBV_OPCODE_RC_ACKNOWLEDGE, qpn, start[qpn - 7]));
    expected.insert(expected.end(), {++sequence, sequence + 1});
    sequence++;
  }
  for (unsigned round = 1; round <= 3; round++)
    for (std::uint32_t i = 0; i < 6; i++)
      for (std::uint32_t qpn : {7u, 8u, 9u}) {
        box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, qpn, (start[qpn - 7] + i) & 0xFFFFFF));
        sequence++;
        const bool dropped = qpn == 7   ? (i == 0 && round == 1) || (i == 3 && round <= 2)
                             : qpn == 8 ? i == 1
                                        : i == 0 && round == 2;
        if (!dropped) expected.push_back(sequence);
      }
  EXPECT_EQ(sequences(box), expected);
}

TEST(LinkEventChoice, RelativePsnsOfOneQpnToTwoHosts) {
  link::Config config;
  config.forward.events = {act(Action::kDrop), act(Action::kDrop), act(Action::kDrop)};
  for (auto& one : config.forward.events) one.qpn = 7;
  config.forward.events[0].relative_psn = 1;
  config.forward.events[0].destination = roce::ipv4(10, 0, 0, 2);
  config.forward.events[1].relative_psn = 1;
  config.forward.events[1].destination = roce::ipv4(10, 0, 0, 1);
  config.forward.events[2].relative_psn = 2;  // of either: the one seen first
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 4; i++) {
    box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 7, 100 + i, 1));
    box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 7, 500 + i, 2));
  }
  EXPECT_EQ(sequences(box), (Numbers{1, 2, 6, 7, 8})) << "PSNs 101, 501 and 102 are gone";
}

// Events of all sorts that meet in one packet fire in the order of the list.
TEST(LinkEventChoice, TheOrderOfTheListHolds) {
  link::Config config;
  std::vector<link::Event>& events = config.forward.events;
  for (int i = 0; i < 5; i++) events.push_back(act(Action::kMark));
  events[0].qpn = 7, events[0].relative_psn = 0;
  events[1].kind = {"data"};
  events[2].qpn = 7, events[2].psn = 5;
  events[3].packet = 1;
  events[4].qpn = 7, events[4].relative_psn = 0;
  test::KernelBox box(with(config));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, 7, 5));
  Json json;
  JsonReport report(json);
  box.kernel->report(report);
  ASSERT_EQ(json["forward"]["events_fired"].size(), 5u);
  for (std::size_t i = 0; i < 5; i++) EXPECT_EQ(json["forward"]["events_fired"][i]["event"], i + 1);
  EXPECT_EQ(json["forward"]["events"][1]["kind"], "data");
  EXPECT_EQ(json["forward"]["events"][0]["relative_psn"], 0);
}

TEST(LinkEventChoice, ManyRelativePsnsAreAllFound) {
  link::Config config;
  for (std::int64_t i = 0; i < 4096; i++) {
    config.forward.events.push_back(act(Action::kDrop));
    config.forward.events.back().qpn = i % 61;
    config.forward.events.back().relative_psn = i / 61 * 3;
  }
  test::KernelBox box(with(config));
  for (std::uint32_t i = 0; i < 4096 / 61 * 3 + 3; i++)
    for (std::uint32_t qpn = 0; qpn < 61; qpn++) {
      box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY, qpn, (0xFFFFF0 + qpn + i) & 0xFFFFFF));
      box.out.clear();
    }
  EXPECT_EQ(box.stats.read("forward_drop_event"), 4096u);
}

// What fires may change the packet: later events still see it as it came.
TEST(LinkEventChoice, ConditionsLookAtThePacketAsItCame) {
  link::Config config;
  config.forward.events = {act(Action::kCorrupt), act(Action::kDrop)};
  config.forward.events[0].kind = config.forward.events[1].kind = {"data"};
  config.forward.events[0].offset = 42;  // the opcode
  config.forward.events[0].mask = 0xFF;
  test::KernelBox box(with(config));
  box.send(0, 0, packet_of(IBV_OPCODE_RC_SEND_ONLY));
  EXPECT_EQ(box.stats.read("forward_drop_event"), 1u);
}

}  // namespace
}  // namespace rocebox
