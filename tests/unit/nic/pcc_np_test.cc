// SPDX-License-Identifier: BSD-3-Clause
// Notification points and mailboxes of programs of congestion control, and that every name of the documented interface
// is there for each generation of DPAs (pcc_names/).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "nic_model/pcc/notification.h"
#include "nic_model/pcc/pcc.h"
#include "runtime/component/component.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::notification {
namespace {

using nic_model::Controls;
using nic_model::QpEvent;
using nic_model::QpEventKind;
using nic_model::pcc::MailBytes;
using nic_model::pcc::Moment;
using nic_model::pcc::Process;
using nic_model::pcc::ProcessOptions;
using nic_model::pcc::Role;

constexpr std::uint64_t kLine = 100'000'000'000;

std::string program(const std::string& name) { return std::string(ROCEBOX_DPA_TEST_PROGRAMS) + "/" + name + ".so"; }
std::unique_ptr<Process> process(const std::string& path, Role role) {
  return std::make_unique<Process>(
      path, nic_model::dpa::Program::read(path),
      ProcessOptions{role == Role::kReactionPoint ? 4u : 0u, kLine, 0, 4, kMillisecond, role});
}
Json report_of(const Process& process) {
  Json json;
  JsonReport report(json);
  process.report(report);
  return json;
}

TEST(PccNames, AreThereForEachGeneration) {
  for (const char* generation : {"BF3", "CX8", "CX9"}) {
    SCOPED_TRACE(generation);
    const auto reaction = process(program(fmt::format("pcc_names_{}", generation)), Role::kReactionPoint);
    const Moment moment{1000, 1, 2};
    reaction->port_changed(moment);
    reaction->new_flow(3, 0);
    doca_pcc_dev_event_t event{};
    event.general.ev_type = DOCA_PCC_DEV_EVNT_ROCE_TX;
    doca_pcc_dev_results_t results{};
    results.rate = DOCA_PCC_DEV_MAX_RATE;
    EXPECT_TRUE(reaction->handle(3, event, results, moment)) << reaction->error();
    EXPECT_EQ(results.rate, DOCA_PCC_DEV_MAX_RATE) << "the internal algorithm's";
    EXPECT_TRUE(reaction->mail({1, 2, 3}, moment));
    const Json json = report_of(*reaction);
    EXPECT_EQ(json["pcc_mailbox"][0]["request"], "01 02 03");
    EXPECT_EQ(json["pcc_mailbox"][0]["response"], "01 02 03");
    EXPECT_EQ(json["pcc_lines"][0]["line"], "port 0");
    EXPECT_EQ(results.credits, 0u) << "what never comes";
    EXPECT_EQ(json["pcc_lines"][1]["line"], "trace 1: 1 1 100 2 3");
  }
}

TEST(PccNames, WhatAProgramDeclaresOfItsMemoryBinds) {
  const auto one = process(program("pcc_declared"), Role::kReactionPoint);
  EXPECT_EQ(report_of(*one)["pcc_lines"][0]["line"], "0 wrong");
  one->new_flow(0, 0);
  doca_pcc_dev_event_t event{};
  event.dscp = 46;
  doca_pcc_dev_results_t results{};
  ASSERT_TRUE(one->handle(0, event, results, Moment{})) << one->error();
  EXPECT_EQ(results.rate, 1046u);
}

TEST(PccNames, TheDscpIsTheQueuePairs) {
  NicBox box(
      fmt::format("rate: 100Gbps\ncongestion_control: pcc\npcc: {{file: {}, slot: 2}}", program("pcc_declared")));
  box.connect({.psn = 100, .traffic_class = 46 << 2 | 2});
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1024);
  box.run(kMillisecond);
  EXPECT_EQ(box.sides[0].qp->rate, static_cast<double>(kLine) / DOCA_PCC_DEV_MAX_RATE * (1000 + 46));
}

// A program that counts its blocks of code is stopped by their number, at the same place in each run, long before its
// CPU time is used up; one that stays below is not.
TEST(PccBudget, StopsByBlocksThatTheProgramCounts) {
  constexpr std::uint32_t kMischief = 2, kForEver = 4;  // of pcc_probe.c
  const std::string path = program("pcc_probe_counted");
  std::vector<std::string> errors;
  for (const std::int64_t budget : {1000, 1000, 20'000'000}) {
    Process one(path, nic_model::dpa::Program::read(path),
                ProcessOptions{4, kLine, 0, 4, kMillisecond, Role::kReactionPoint, budget});
    const Moment moment;
    const auto tell = [&] {
      doca_pcc_dev_event_t event{};
      event.general.ev_type = DOCA_PCC_DEV_EVNT_ROCE_TX;
      event.serial = 1;
      doca_pcc_dev_results_t results{};
      return one.handle(0, event, results, moment);
    };
    one.new_flow(0, 0);
    for (unsigned i = 0; i < 100; i++) ASSERT_TRUE(tell()) << "each call has them anew";
    EXPECT_EQ(one.set_parameter(0, kMischief, kForEver, moment), "");
    EXPECT_FALSE(tell());
    errors.push_back(one.error());
  }
  EXPECT_EQ(errors[0].find("it ran through more than 1000 blocks of code, in misbehave"), 0u) << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_EQ(errors[2].find("it ran through more than 20000000 blocks of code, in misbehave"), 0u)
      << "however short the watchdog: " << errors[2];
}

TEST(PccMailbox, HasNoEventForTheInternalAlgorithm) {
  const auto one = process(program("pcc_probe"), Role::kReactionPoint);
  const Moment moment;
  one->new_flow(0, 0);
  doca_pcc_dev_event_t event{};
  event.general.ev_type = DOCA_PCC_DEV_EVNT_ROCE_TX;
  event.serial = 1;
  doca_pcc_dev_results_t results{};
  ASSERT_TRUE(one->handle(0, event, results, moment)) << one->error();
  EXPECT_FALSE(one->mail({1}, moment));
  EXPECT_NE(one->error().find("doca_pcc_dev_default_internal_algo: outside of an event"), std::string::npos)
      << one->error();
}

// Asks with each packet, keeps what it is told.
class Asker final : public nic_model::Observer {
 public:
  std::uint32_t events() const override { return event_bit(QpEventKind::kTx) | event_bit(QpEventKind::kRtt); }
  void on_event(Controls& controls, const QpEvent& event) override {
    if (event.kind == QpEventKind::kTx) controls.request_rtt(event.qpn, 50000);
    if (event.rtt) samples.push_back(*event.rtt);
  }
  std::vector<nic_model::RttSample> samples;
};

// The second NIC has a notification point; the first asks.
class NotifiedBox : public NicBox {
 public:
  explicit NotifiedBox(const std::string& mailbox) : NicBox("rate: 100Gbps", "delay: 1us", 1, options_with(mailbox)) {
    auto asker = std::make_unique<Asker>();
    seen = asker.get();
    nics[0]->observe_by(std::move(asker));
    connect();
    ask();
    seen->samples.clear();  // their addresses are known from here on
  }
  static std::string options_with(const std::string& mailbox) {
    return fmt::format("congestion_control: pcc\npcc: {{notification_point: {{file: {}, mailbox: [{}]}}}}",
                       program("pcc_np_names_BF3"), mailbox);
  }
  void ask() {
    post(0, 1, IBV_WR_RDMA_WRITE, 0, 1);
    run(kMillisecond);
  }
  void change(const std::string& mailbox) {
    const auto changed = nic_test_options("nic", "address: 10.0.0.2\nrate: 100Gbps\n" + options_with(mailbox));
    changed->change(*nics[1])->apply(*nics[1], now);
  }
  Json report() const {
    Json json;
    JsonReport report(json);
    nics[1]->report(report);
    return json["notification_point"];
  }
  Asker* seen;
};

TEST(PccNotification, AProgramSeesTheProbeAndWritesItsAnswer) {
  for (const char* generation : {"BF3", "CX8", "CX9"})
    EXPECT_TRUE(process(program(fmt::format("pcc_np_names_{}", generation)), Role::kNotificationPoint)) << generation;
  NotifiedBox box("");
  box.ask();
  ASSERT_EQ(box.seen->samples.size(), 1u);
  const nic_model::RttSample& sample = box.seen->samples[0];
  std::uint8_t expected[nic_model::kRttPayloadBytes] = {'R', 'B', 'N', 'P'};
  put_number(expected + 4, static_cast<std::uint32_t>(sample.request_sent), 4);
  // Ethernet, IPv4, UDP and 80 bytes; UDP and 80; from the lower half of the time on; TTL; port 49791; IPv4; one port
  // came up.
  const std::uint8_t rest[] = {14 + 20 + 8 + 80, 8 + 80, 80 - 28, 64, 49791 >> 8, 49791 & 255, 8, 1 + 1};
  std::memcpy(expected + 8, rest, sizeof rest);
  EXPECT_TRUE(std::ranges::equal(sample.payload, expected));
  EXPECT_EQ(box.count(1, "pcc_np_answers"), 2u);
  EXPECT_EQ(box.report()["pcc_program"], "pcc_np_names_BF3.so");
}

TEST(PccNotification, PrioritiesAreTheProgramsOwn) {
  const auto one = process(program("pcc_np_names_CX8"), Role::kNotificationPoint);
  std::vector<std::uint8_t> packet(122);
  const nic_model::RttRequest request{17, packet, 34, 66, 64};
  EXPECT_FALSE(one->answer(0, request, {})->dscp) << "the queue pair's";
  EXPECT_TRUE(one->mail({46, 0}, {}));
  EXPECT_EQ(one->answer(0, request, {})->dscp, 46);
}

TEST(PccNotification, WhatItDoesNotWantAnsweredIsNot) {
  NotifiedBox box("00 01");
  EXPECT_EQ(box.count(1, "pcc_np_refused"), 1u);
  box.ask();
  EXPECT_EQ(box.count(1, "pcc_np_refused"), 2u);
  EXPECT_EQ(box.count(1, "rtt_responses_sent"), 0u);
  EXPECT_TRUE(box.seen->samples.empty());
  // A message of the host lets it answer; the one that it has had is not sent again.
  box.change("00 01, 2e 00");
  box.ask();
  EXPECT_EQ(box.seen->samples.size(), 1u);
  const Json mails = box.report()["pcc_mailbox"];
  ASSERT_EQ(mails.size(), 2u);
  EXPECT_EQ(mails[1]["request"], "2e 00");
  EXPECT_EQ(mails[1]["response"], "00 01") << "what was before";
  EXPECT_EQ(mails[1]["at_ns"], box.now - kMillisecond);
}

TEST(PccNotification, WhatGoesWrongLeavesProbesAnsweredWithThreeTimes) {
  for (const char* mail : {"00 02", "00 03", "00 00 00", "00 00 00 00", "00 00 00 00 00"}) {
    SCOPED_TRACE(mail);
    NotifiedBox box(mail);
    EXPECT_EQ(box.count(1, "pcc_np_stops"), 1u);
    box.ask();
    ASSERT_EQ(box.seen->samples.size(), 1u);
    EXPECT_TRUE(std::ranges::all_of(box.seen->samples[0].payload, [](std::uint8_t byte) { return byte == 0; }));
    EXPECT_EQ(box.count(1, "pcc_np_stops"), 1u);
    EXPECT_NE(box.report()["pcc_error"].get<std::string>(), "");
    box.change(std::string(mail) + ", 01 01");
    EXPECT_EQ(box.count(1, "pcc_np_stops"), 1u) << "nobody is called any more";
  }
}

TEST(PccMailbox, MessagesThatAreNotTakenAreCounted) {
  NotifiedBox box("00 00 00 00 00 00, 00 00, 01");
  EXPECT_EQ(box.count(1, "pcc_mails_refused"), 1u);
  const Json mails = box.report()["pcc_mailbox"];
  ASSERT_EQ(mails.size(), 3u);
  EXPECT_EQ(mails[0]["is_taken"], false);
  EXPECT_EQ(mails[1]["is_taken"], true);
  EXPECT_EQ(mails[2]["response"], "");
}

TEST(PccMailbox, BytesAreReadAsTheyAreWritten) {
  using nic_model::pcc::mail_bytes;
  EXPECT_EQ(mail_bytes("00 ff 1A"), (MailBytes{0, 255, 26}));
  EXPECT_EQ(mail_bytes("00ff1a"), (MailBytes{0, 255, 26}));
  for (const char* wrong : {"", " ", "1", "0g", "+1", "-1", "0x01", "00 1", "00,01"})
    EXPECT_FALSE(mail_bytes(wrong)) << wrong;
  EXPECT_TRUE(mail_bytes(std::string(2 * 4096, 'a')));
  EXPECT_FALSE(mail_bytes(std::string(2 * 4097, 'a')));
  using nic_model::pcc::new_mails;
  EXPECT_EQ(new_mails({"01", "02"}, {"01", "03", "04"}), (std::vector<MailBytes>{{3}, {4}}));
  EXPECT_EQ(new_mails({"01", "02"}, {"01"}), std::vector<MailBytes>());
}

// What cannot be is said before anything runs.
TEST(PccMailbox, ProgramsWithoutOneAreRefused) {
  const auto why = [](const std::string& pcc) -> std::string {
    try {
      NicBox box("rate: 100Gbps\ncongestion_control: pcc\npcc: " + pcc);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(why("{program: rtt_control, mailbox: [01]}").find("has no doca_pcc_dev_user_mailbox_handle"),
            std::string::npos);
  EXPECT_NE(why(fmt::format("{{notification_point: {{file: {}}}}}", program("pcc_names_BF3")))
                .find("has no doca_pcc_dev_np_user_packet_handler"),
            std::string::npos);
  EXPECT_NE(why(fmt::format("{{file: {}}}", program("pcc_np_names_BF3"))).find("which a reaction point has"),
            std::string::npos);
}

}  // namespace
}  // namespace rocebox::test::notification
