// SPDX-License-Identifier: BSD-3-Clause
// Explicit faults: exactly the packets that were named, and a report that says so.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/kernels/link_kit.h"

namespace rocebox {
namespace {

using link::Action;

link::Event by_packet(std::int64_t packet, Action action = Action::kDrop) {
  link::Event event;
  event.packet = packet;
  event.action = action;
  return event;
}

link::Event by_psn(std::int64_t qpn, std::int64_t psn, std::int64_t occurrence = 1, Action action = Action::kDrop) {
  link::Event event;
  event.qpn = qpn;
  event.psn = psn;
  event.occurrence = occurrence;
  event.action = action;
  return event;
}

roce::PacketSpec spec(std::uint32_t qpn, std::uint32_t psn) {
  roce::PacketSpec spec;
  spec.destination_qp = qpn;
  spec.psn = psn;
  return spec;
}

using Order = std::vector<std::uint64_t>;

// Keeps a report as `table[row].name` -> text.
class Kept final : public Report {
 public:
  std::map<std::string, std::string> values;
  void count(std::string_view name, std::int64_t value) override { put(name, std::to_string(value)); }
  void real(std::string_view name, double value) override { put(name, std::to_string(value)); }
  void flag(std::string_view name, bool value) override { put(name, value ? "yes" : "no"); }
  void text(std::string_view name, std::string_view value) override { put(name, std::string(value)); }
  void duration(std::string_view name, std::int64_t nanos) override { put(name, std::to_string(nanos)); }
  void object(std::string_view name, const std::function<void(Report&)>& fill) override {
    const std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    fill(*this);
    prefix_ = outer;
  }
  void table(std::string_view name, std::size_t rows, const std::function<void(Report&, std::size_t)>& fill) override {
    put(std::string(name) + ".rows", std::to_string(rows));
    for (std::size_t row = 0; row < rows; row++)
      object(std::string(name) + "[" + std::to_string(row) + "]", [&](Report& r) { fill(r, row); });
  }

 private:
  void put(std::string_view name, std::string value) { values[prefix_ + std::string(name)] = value; }
  std::string prefix_;
};

TEST(LinkEvents, DropExactlyTheNamedNumbers) {
  link::Config config;
  std::set<std::uint64_t> named;
  for (std::int64_t i = 0; i < 500; i++) {  // unsorted, some twice
    const std::int64_t packet = 1 + i * 7919 % 1000;
    config.forward.events.push_back(by_packet(packet));
    named.insert(static_cast<std::uint64_t>(packet));
  }
  config.forward.events.push_back(by_packet(999'999));
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 1000; i++) box.send(i, 0, spec(1, i));
  Order expected;
  for (std::uint64_t i = 1; i <= 1000; i++)
    if (!named.count(i)) expected.push_back(i);
  EXPECT_EQ(sequences(box), expected);
  EXPECT_EQ(box.stats.read("forward_drop_event"), named.size());
}

TEST(LinkEvents, NumbersCountEachDirectionAlone) {
  link::Config config;
  config.forward.events = {by_packet(2)};
  config.reverse.events = {by_packet(3)};
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 8; i++) box.send(i, i & 1, spec(1, i));
  EXPECT_EQ(sequences(box), (Order{1, 2, 3, 6, 7, 8})) << "4 is forward's second, 5 reverse's third";
}

TEST(LinkEvents, ByQpnPsnAndOccurrenceAcrossTheWrap) {
  link::Config config;
  config.forward.events = {by_psn(7, 0xFFFFFF), by_psn(7, 0, 2), by_psn(7, 2, 0), by_psn(8, 1, 3)};
  test::KernelBox box(with(config));
  std::uint64_t sequence = 0;
  Order expected;
  for (unsigned round = 1; round <= 3; round++)
    for (std::uint32_t psn : {0xFFFFFEu, 0xFFFFFFu, 0u, 1u, 2u, 3u})
      for (std::uint32_t qpn : {7u, 8u}) {
        box.send(static_cast<Nanos>(++sequence), 0, spec(qpn, psn));
        const bool dropped =
            qpn == 7 ? (psn == 0xFFFFFF && round == 1) || (psn == 0 && round == 2) || psn == 2 : psn == 1 && round == 3;
        if (!dropped) expected.push_back(sequence);
      }
  EXPECT_EQ(sequences(box), expected);
}

TEST(LinkEvents, OnlyTheGivenOpcodeCounts) {
  link::Config config;
  config.forward.events = {by_psn(7, 1)};
  config.forward.events[0].opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
  test::KernelBox box(with(config));
  box.send(1, 0, spec(7, 1));
  auto write = spec(7, 1);
  write.opcode = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
  box.send(2, 0, write);
  box.send(3, 0, write);
  EXPECT_EQ(sequences(box), (Order{1, 3}));
}

TEST(LinkEvents, ManyKeysAreAllFound) {
  link::Config config;
  for (std::int64_t i = 0; i < 4096; i++) config.forward.events.push_back(by_psn(i % 61, i * 4099 % 0xFFFFFF));
  test::KernelBox box(with(config));
  for (std::int64_t i = 0; i < 4096; i++) {
    const auto qpn = static_cast<std::uint32_t>(i % 61), psn = static_cast<std::uint32_t>(i * 4099 % 0xFFFFFF);
    box.send(i, 0, spec(qpn, psn));
    box.send(i, 0, spec(qpn + 61, psn));
  }
  EXPECT_EQ(box.stats.read("forward_drop_event"), 4096u);
  EXPECT_EQ(box.out.size(), 4096u);
}

TEST(LinkEvents, DelayLetsOthersOvertake) {
  link::Config config;
  config.forward.delay = 1000;
  config.forward.events = {by_packet(2, Action::kDelay)};
  config.forward.events[0].by = 5000;
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 5; i++) box.send(i * 100, 0, spec(1, i));
  box.drain();
  EXPECT_EQ(sequences(box), (Order{1, 3, 4, 5, 2}));
  EXPECT_EQ(box.out[4].at, 200 + 1000 + 5000);
  EXPECT_EQ(box.out[3].at, 1500);
}

TEST(LinkEvents, SeveralOnOnePacketWorkTogether) {
  link::Config config;
  config.forward.events = {by_packet(2, Action::kDuplicate), by_packet(2, Action::kReorder),
                           by_packet(2, Action::kCorrupt)};
  config.forward.events[0].copies = 2;
  config.forward.events[2].offset = 50;
  config.forward.events[2].mask = 0x81;
  test::KernelBox box(with(config));
  const auto sent = test::frame(spec(1, 1));
  for (int i = 1; i <= 4; i++) box.send(i, 0, sent);
  EXPECT_EQ(sequences(box), (Order{1, 3, 2, 2, 2, 4}));
  auto expected = sent;
  expected[50] ^= 0x81;
  for (std::size_t i = 2; i < 5; i++) EXPECT_EQ(box.out[i].bytes, expected);
}

TEST(LinkEvents, CopiesAreBounded) {
  link::Config config;
  config.forward.events = {by_packet(1, Action::kDuplicate), by_packet(1, Action::kDuplicate)};
  config.forward.events[0].copies = 16;
  config.forward.events[1].copies = 3;
  test::KernelBox box(with(config));
  box.send(1, 0, spec(1, 1));
  EXPECT_EQ(box.out.size(), 17u);
  EXPECT_EQ(box.stats.read("forward_copy_failed"), 3u);
}

TEST(LinkEvents, WhatThePacketDoesNotAllowIsCounted) {
  link::Config config;
  config.forward.events = {by_packet(1, Action::kMark), by_packet(1, Action::kTrim), by_packet(1, Action::kCorrupt)};
  config.forward.events[2].offset = 5000;
  test::KernelBox box(with(config));
  const auto sent = test::frame(spec(1, 1));  // not ECN capable, no payload
  box.send(1, 0, sent);
  EXPECT_EQ(box.out[0].bytes, sent);
  EXPECT_EQ(box.stats.read("forward_events_fired"), 3u);
  EXPECT_EQ(box.stats.read("forward_events_not_applied"), 3u);
  EXPECT_EQ(box.stats.read("forward_ecn_not_ect"), 1u);
}

TEST(LinkEvents, TheReportListsFiringsAndShowsWhatNeverFired) {
  link::Config config;
  config.forward.events = {by_packet(90), by_psn(0x11, 3, 0, Action::kMark), by_packet(2)};
  test::KernelBox box(with(config));
  for (std::uint32_t i = 1; i <= 3; i++) box.send(i * 10, 0, spec(0x11, i));
  Kept kept;
  box.kernel->report(kept);
  auto& v = kept.values;
  EXPECT_EQ(v["forward.events.rows"], "3");
  EXPECT_EQ(v["forward.events[0].fired"], "0");
  EXPECT_EQ(v["forward.events[2].fired"], "1");
  EXPECT_EQ(v["forward.events_fired.rows"], "2");
  EXPECT_EQ(v["forward.events_fired[0].event"], "3");
  EXPECT_EQ(v["forward.events_fired[0].at"], "20");
  EXPECT_EQ(v["forward.events_fired[0].packet"], "2");
  EXPECT_EQ(v["forward.events_fired[0].do"], "drop");
  EXPECT_EQ(v["forward.events_fired[1].event"], "2");
  EXPECT_EQ(v["forward.events_fired[1].qpn"], "17");
  EXPECT_EQ(v["forward.events_fired[1].psn"], "3");
  EXPECT_EQ(v["forward.events_fired[1].opcode"], roce::opcode_name(IBV_OPCODE_RC_SEND_ONLY));
  EXPECT_EQ(v["forward.events_fired[1].applied"], "no");
  EXPECT_EQ(v.count("reverse.events.rows"), 0u) << "nothing to tell";
}

TEST(LinkEvents, TheListOfFiringsIsBounded) {
  link::Config config;
  config.forward.events = {by_psn(1, 1, 0, Action::kMark)};
  test::KernelBox box(with(config));
  const auto bytes = test::frame(spec(1, 1));
  for (int i = 0; i < 65536 + 5; i++) {
    box.send(i, 0, bytes);
    box.out.clear();
  }
  Kept kept;
  box.kernel->report(kept);
  EXPECT_EQ(kept.values["forward.events_fired.rows"], "65536");
  EXPECT_EQ(kept.values["forward.events_fired_not_listed"], "5");
  EXPECT_EQ(kept.values["forward.events[0].fired"], "65541");
}

}  // namespace
}  // namespace rocebox
