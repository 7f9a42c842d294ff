// SPDX-License-Identifier: BSD-3-Clause
// Programs of congestion control: what they are told, what they may say, and what becomes of those that go wrong.
#include "nic_model/pcc/pcc.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/component/component.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::programming {
namespace {

using nic_model::DcqcnConfig;
using nic_model::DcqcnRate;
using nic_model::pcc::Moment;
using nic_model::pcc::Process;
using nic_model::pcc::ProcessOptions;

constexpr std::uint64_t kLine = 100'000'000'000;
// Of pcc_probe.c.
enum Parameter : std::uint32_t { kRate, kProbes, kMischief, kFixed, kPort };
enum Count : std::uint32_t {
  kUnits = 7,
  kPackets,
  kProbesSent,
  kRtt,
  kNackKind,
  kWrongContexts,
  kRank,
  kGlobal,
  kSpeed,
  kPortCalls,
  kReceived,
  kSent,
  kMicroseconds,
  kRequestToThere,
  kSerial,
  kLastPort
};

std::string probe_path() { return std::string(ROCEBOX_DPA_TEST_PROGRAMS) + "/pcc_probe.so"; }
std::string probe_nic(const std::string& more = "") {
  return "rate: 100Gbps\ncongestion_control: pcc\npcc: {file: " + probe_path() + more + "}";
}

class ProbeProcess {
 public:
  explicit ProbeProcess(std::uint32_t slot = 0)
      : process(probe_path(), nic_model::dpa::Program::read(probe_path()),
                ProcessOptions{16, kLine, slot, 4, kMillisecond}) {
    process.port_changed(moment);
    for (std::uint32_t flow = 0; flow < 16; flow++) process.new_flow(flow, 0);
  }
  bool tell(std::uint32_t flow, unsigned kind, std::uint32_t bytes = 1024) {
    doca_pcc_dev_event_t event{};
    event.general.ev_type = kind & 0xFF;
    event.serial = ++serials[flow];
    event.sent = {bytes / 32 & 0xFFFF, 1};
    results.rate = rate;
    results.rtt_req = 0;
    const bool went_well = process.handle(flow, event, results, moment);
    rate = results.rate;
    return went_well;
  }
  std::uint32_t count(std::uint32_t id) const { return process.tables().slot(0, 0)->counters[id]; }
  std::string set(std::uint32_t id, std::uint32_t value) { return process.set_parameter(0, id, value, moment); }

  Moment moment{5'000'000, 11, 22};
  std::uint32_t serials[16] = {}, rate = 0;
  doca_pcc_dev_results_t results{};
  Process process;
};

TEST(Pcc, EachProcessHasItsOwnGlobalsTablesAndContexts) {
  ProbeProcess one, other;
  for (std::uint32_t i = 0; i < 5; i++) EXPECT_TRUE(one.tell(i % 2, DOCA_PCC_DEV_EVNT_ROCE_TX));
  EXPECT_TRUE(other.tell(3, DOCA_PCC_DEV_EVNT_ROCE_ACK));
  EXPECT_EQ(one.count(kGlobal), 5u);
  EXPECT_EQ(other.count(kGlobal), 1u);
  EXPECT_EQ(one.count(DOCA_PCC_DEV_EVNT_ROCE_TX), 5u);
  EXPECT_EQ(other.count(DOCA_PCC_DEV_EVNT_ROCE_TX), 0u);
  EXPECT_EQ(one.count(kWrongContexts) + other.count(kWrongContexts), 0u);
  // A context is zeros again when its flow is a new one.
  one.process.new_flow(1, 0);
  one.serials[1] = 0;
  EXPECT_TRUE(one.tell(1, DOCA_PCC_DEV_EVNT_ROCE_TX));
  EXPECT_EQ(one.count(kWrongContexts), 0u);
}

TEST(Pcc, ServicesSayWhatTheyAreAskedFor) {
  ProbeProcess one;
  one.process.set_source_port(50'000);
  EXPECT_TRUE(one.tell(7, DOCA_PCC_DEV_EVNT_ROCE_CNP));
  EXPECT_EQ(one.count(kRank), 7u % 4);
  EXPECT_EQ(one.count(kSpeed), 100u);
  EXPECT_EQ(one.count(kPortCalls), 1u);
  EXPECT_EQ(one.count(kReceived), 11u);
  EXPECT_EQ(one.count(kSent), 22u);
  EXPECT_EQ(one.count(kMicroseconds), 5000u);
  EXPECT_EQ(one.count(kLastPort), 50'000u);
  EXPECT_EQ(one.process.new_source_port(), 0);
  EXPECT_EQ(one.set(kPort, 50'001), "");
  EXPECT_TRUE(one.tell(7, DOCA_PCC_DEV_EVNT_ROCE_CNP));
  EXPECT_EQ(one.process.new_source_port(), 50'001);
  Json json;
  JsonReport report(json);
  one.process.report(report);
  EXPECT_EQ(json["pcc_lines"][0]["line"], "0 wrong") << "what was out of range at its declaration was refused";
  EXPECT_EQ(json["pcc_program"], "pcc_probe.so");
  EXPECT_EQ(json["pcc_parameters"][0]["value"], DOCA_PCC_DEV_MAX_RATE);
  EXPECT_EQ(json["pcc_parameters"][0]["meaning"], "counts");
  EXPECT_EQ(json["pcc_counters"][kPortCalls]["value"], 1);
}

TEST(Pcc, ParametersHaveRangesAndTheProgramsConsent) {
  ProbeProcess one;
  EXPECT_EQ(one.set(kRate, 4711), "");
  EXPECT_TRUE(one.tell(0, DOCA_PCC_DEV_EVNT_ROCE_TX));
  EXPECT_EQ(one.rate, 4711u);
  EXPECT_EQ(one.set(kRate, 13), "the program does not take 13 as parameter 0 of slot 0");
  EXPECT_EQ(one.set(kMischief, 21), "parameter 2 of slot 0 must be from 0 to 20, and not 21");
  EXPECT_EQ(one.set(kFixed, 1), "parameter 3 of slot 0 is not to be changed");
  EXPECT_EQ(one.set(5, 1), "the algorithm in slot 0 has 5 parameters, from 0 on, and no 5");
  EXPECT_EQ(one.process.set_parameter(2, 0, 1, one.moment), "the program has nothing in slot 2");
  EXPECT_TRUE(one.tell(0, DOCA_PCC_DEV_EVNT_ROCE_TX));
  EXPECT_EQ(one.rate, 4711u);
}

TEST(Pcc, WhatGoesWrongStopsThatProgramAloneAndIsNamed) {
  const std::pair<unsigned, const char*> kWrongs[] = {{1, "(SEGV) at address 0x0"},
                                                      {2, "it wrote beside the 48 bytes of the context of a flow"},
                                                      {3, "it wrote beside the 48 bytes of the context of a flow"},
                                                      {4, "ran too long"},
                                                      {5, "its stack is full"},
                                                      {6, "it wrote behind the parameters or counters of slot 0"},
                                                      {7, "it wrote behind the parameters or counters of slot 0"},
                                                      {8, "(ILL)"},
                                                      {9, "there is no counter of that name"}};
  ProbeProcess other;
  for (const auto& [how, what] : kWrongs) {
    SCOPED_TRACE(how);
    ProbeProcess one;
    EXPECT_TRUE(one.tell(0, DOCA_PCC_DEV_EVNT_ROCE_TX));
    EXPECT_EQ(one.set(kMischief, how), "");
    EXPECT_FALSE(one.tell(0, DOCA_PCC_DEV_EVNT_ROCE_TX));
    EXPECT_NE(one.process.error().find(what), std::string::npos) << one.process.error();
    if (how == 1 || how == 4) {
      EXPECT_NE(one.process.error().find("misbehave"), std::string::npos) << one.process.error();
    }
    EXPECT_FALSE(one.tell(1, DOCA_PCC_DEV_EVNT_ROCE_TX)) << "it stays stopped";
    EXPECT_EQ(one.set(kMischief, 0), "the program has been stopped");
    EXPECT_TRUE(other.tell(0, DOCA_PCC_DEV_EVNT_ROCE_TX));
  }
}

// The same events by the program's way, and by DCQCN itself.
TEST(Pcc, TheInternalAlgorithmIsDcqcn) {
  for (const std::uint32_t slot : {1u, 2u, 15u}) {  // off, without an algorithm, and the internal one's own
    SCOPED_TRACE(slot);
    ProbeProcess one(slot);
    const DcqcnConfig config;
    DcqcnRate oracle;
    oracle.start(config, kLine, 0);
    one.rate = DOCA_PCC_DEV_MAX_RATE;
    one.moment.now = 0;
    std::mt19937_64 random(slot);
    for (unsigned i = 0; i < 3000; i++) {
      one.moment.now += static_cast<Nanos>(random() % 20'000);
      const bool is_notified = random() % 16 == 0 && i < 2000;
      if (is_notified)
        oracle.on_congestion(one.moment.now);
      else
        oracle.on_sent(one.moment.now, 4096);
      ASSERT_TRUE(one.tell(0, is_notified ? DOCA_PCC_DEV_EVNT_ROCE_CNP : DOCA_PCC_DEV_EVNT_ROCE_TX, 4096));
      ASSERT_NEAR(one.rate, std::max(1.0, oracle.rate() / kLine * DOCA_PCC_DEV_MAX_RATE), 0.51);
    }
    EXPECT_GT(one.rate, 1u);
  }
}

TEST(Pcc, FilesThatAreNoneAreRefused) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      Process process(path, nic_model::dpa::Program::read(path), ProcessOptions{1, kLine, 0, 1, kMillisecond});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(probe_path()), "");
  const std::string handler = std::string(ROCEBOX_DPA_PROGRAMS) + "/echo.so";
  EXPECT_NE(refusal(handler).find("which a DPA has not"), std::string::npos) << refusal(handler);
}

class PccBox : public NicBox {
 public:
  explicit PccBox(const std::string& nic, const std::string& link = "delay: 1us") : NicBox(nic, link) {}
  Json report(unsigned side) const {
    Json json;
    JsonReport report(json);
    nics[side]->report(report);
    return json;
  }
  std::uint64_t counted(std::uint32_t id) const { return report(0)["pcc_counters"][id]["value"]; }
  /// The time that a WRITE of 256 KiB takes.
  Nanos transfer() {
    Nanos ended = 0;
    hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
    const Nanos began = now;
    post(0, 1, IBV_WR_RDMA_WRITE, 0, 256 * 1024);
    run(kSecond);
    return ended - began;
  }
};

TEST(Pcc, ANicTellsItsProgramAndObeys) {
  constexpr double kBits = 256 * (14 + 20 + 8 + 12 + 1024 + 4 + 24) * 8 + 16 * 8;
  for (const std::uint32_t share : {DOCA_PCC_DEV_MAX_RATE, DOCA_PCC_DEV_MAX_RATE / 4, DOCA_PCC_DEV_MAX_RATE / 64}) {
    SCOPED_TRACE(share);
    PccBox box(probe_nic(fmt::format(", parameters: [{{id: 0, value: {}}}]", share)));
    box.connect({.psn = 100});
    EXPECT_EQ(box.sides[0].qp->rate, kLine / 256.0) << "the documented rate before the first event";
    const Nanos took = box.transfer();
    const double first = 1110 * 8e9 / (kLine / 256.0);  // the first packet has the default rate; then the program's
    EXPECT_EQ(box.sides[0].qp->rate, static_cast<double>(kLine) / DOCA_PCC_DEV_MAX_RATE * share);
    EXPECT_LT(static_cast<double>(took), kBits * 1e9 / kLine * DOCA_PCC_DEV_MAX_RATE / share * 1.01 + first + 3000);
    EXPECT_GT(static_cast<double>(took), kBits * 1e9 / kLine * DOCA_PCC_DEV_MAX_RATE / share * 0.99);
    EXPECT_EQ(box.counted(DOCA_PCC_DEV_EVNT_ROCE_TX), 256u);
    EXPECT_EQ(box.counted(kPackets), 256u);
    EXPECT_EQ(box.counted(kUnits), 256u * 35 + 1) << "1106 bytes, and a RETH in the first packet, each rounded up";
    EXPECT_GT(box.counted(DOCA_PCC_DEV_EVNT_ROCE_ACK), 0u);
    EXPECT_EQ(box.counted(kWrongContexts), 0u);
    EXPECT_EQ(box.count(0, "pcc_events"), box.counted(kSerial)) << "one flow: its last event's number";
  }
}

TEST(Pcc, NaksProbesAndPathsGoThrough) {
  PccBox box(probe_nic(", parameters: [{id: 1, value: 1}, {id: 4, value: 51234}]"),
             "delay: 1us\nevents: [{qpn: 17, psn: 103, source: 10.0.0.1, do: drop}]");
  box.connect({.psn = 100});
  box.transfer();
  EXPECT_EQ(box.counted(DOCA_PCC_DEV_EVNT_ROCE_NACK), 1u);
  EXPECT_EQ(box.counted(kNackKind), static_cast<unsigned>(DOCA_PCC_DEV_NACK_EVNT_OOS));
  EXPECT_GE(box.counted(DOCA_PCC_DEV_EVNT_RTT), 3u);
  EXPECT_EQ(box.count(0, "rtt_responses_received"), box.counted(DOCA_PCC_DEV_EVNT_RTT));
  EXPECT_EQ(box.count(0, "pcc_rtt_requests"), box.count(0, "rtt_requests_sent"));
  EXPECT_EQ(box.counted(kProbesSent), box.count(0, "pcc_rtt_requests"));
  // Two ways of 1 us and 146 bytes, and at most a packet that was being sent.
  EXPECT_GE(box.counted(kRtt), 2000u + 2 * 146 * 8 / 100);
  EXPECT_LT(box.counted(kRtt), 2000u + 2 * 146 * 8 / 100 + 4 * 90);
  EXPECT_GE(box.counted(kRequestToThere), 1000u);
  EXPECT_EQ(box.counted(kLastPort), 51'234u);
  EXPECT_EQ(box.sides[0].qp->attributes.udp_source_port, 51'234);
}

TEST(Pcc, ImpossibleRatesAreBoundedAndCounted) {
  for (const std::uint32_t rate : {0u, DOCA_PCC_DEV_MAX_RATE + 1, 0xFFFFFFFFu}) {
    PccBox box(probe_nic(fmt::format(", parameters: [{{id: 0, value: {}}}]", rate)));
    box.connect({.psn = 100});
    box.transfer();
    EXPECT_GT(box.count(0, "pcc_wrong_rates"), 0u);
    EXPECT_EQ(box.sides[0].qp->rate,
              rate ? static_cast<double>(kLine) : static_cast<double>(kLine) / DOCA_PCC_DEV_MAX_RATE);
  }
}

TEST(Pcc, ANicWhoseProgramWasStoppedHasDcqcn) {
  for (const unsigned how : {1u, 2u, 4u}) {
    SCOPED_TRACE(how);
    PccBox box(probe_nic(fmt::format(", watchdog: 1ms, parameters: [{{id: 2, value: {}}}]", how)),
               "delay: 1us\nevents: [{qpn: 17, psn: 203, source: 10.0.0.1, do: mark}]");
    box.connect({.psn = 100});
    EXPECT_GT(box.transfer(), 0) << "all has arrived";
    EXPECT_EQ(box.count(0, "pcc_stops"), 1u);
    EXPECT_EQ(box.count(0, "pcc_events"), 1u);
    EXPECT_EQ(box.count(0, "rp_cnp_handled"), 1u);
    EXPECT_LT(box.sides[0].qp->rate, static_cast<double>(kLine)) << "a mark's work";
    EXPECT_GT(box.sides[0].qp->rate, kLine * 0.4);
    EXPECT_NE(box.report(0)["pcc_error"].get<std::string>(), "");
  }
}

// Outside of events, too: it is counted at once, and the next packet is DCQCN's.
TEST(Pcc, AProgramThatIsStoppedByNewParametersIsCounted) {
  PccBox box(probe_nic(", parameters: [{id: 0, value: 1000}]"));
  box.connect({.psn = 100});
  box.transfer();
  const auto give = [&](const std::string& parameters) {
    const auto options =
        nic_test_options("nic", "address: 10.0.0.1\n" + probe_nic(", parameters: [" + parameters + "]"));
    options->change(*box.nics[0])->apply(*box.nics[0], box.now);
  };
  give("{id: 0, value: 2000}");
  EXPECT_GT(box.counted(kSent), 256u * 1024);
  EXPECT_EQ(box.counted(kSent), box.count(0, "tx_roce_bytes")) << "the port's counters are true in this call, too";
  EXPECT_EQ(box.count(0, "pcc_stops"), 0u);
  give("{id: 0, value: 2000}, {id: 2, value: 20}");
  EXPECT_EQ(box.count(0, "pcc_stops"), 1u);
  EXPECT_EQ(box.count(0, "pcc_parameters_refused"), 1u);
  box.transfer();
  EXPECT_EQ(box.count(0, "pcc_stops"), 1u);
  EXPECT_EQ(box.sides[0].qp->rate, static_cast<double>(kLine)) << "it has DCQCN";
}

TEST(Pcc, AProgramThatIsStoppedByItsPortIsCounted) {
  PccBox box(probe_nic(", parameters: [{id: 2, value: 19}]"));
  box.connect({.psn = 100});
  EXPECT_EQ(box.count(0, "pcc_stops"), 1u);
  EXPECT_GT(box.transfer(), 0);
  EXPECT_EQ(box.count(0, "pcc_events"), 0u);
  EXPECT_EQ(box.sides[0].qp->rate, static_cast<double>(kLine));
}

TEST(Pcc, WithoutAProgramAllIsDcqcns) {
  PccBox box("rate: 100Gbps\ncongestion_control: pcc",
             "delay: 1us\nevents: [{qpn: 17, psn: 203, source: 10.0.0.1, do: mark}]");
  box.connect({.psn = 100});
  EXPECT_EQ(box.sides[0].qp->rate, static_cast<double>(kLine));
  box.transfer();
  EXPECT_EQ(box.count(0, "rp_cnp_handled"), 1u);
  EXPECT_EQ(box.count(0, "pcc_events"), 0u);
}

}  // namespace
}  // namespace rocebox::test::programming
