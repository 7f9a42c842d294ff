// SPDX-License-Identifier: BSD-3-Clause
// Congestion controls as components: how a NIC is told which, what each one is given, what is refused.
#include "nic_model/rate/congestion_control.h"

#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::controlling {
namespace {

using nic_model::ControlledNic;
using nic_model::Controls;
using nic_model::QpEvent;
using nic_model::QpEventKind;

// Sends at the rate that its option says, and counts what it is told.
class Steady final : public nic_model::Observer {
 public:
  struct Config {
    std::uint64_t at = 1'000'000'000;
    void fields(Fields& f) { f.rate("at", at, {1'000'000, 400'000'000'000}, "rate of each queue pair"); }
    const char* refuses(std::uint64_t line) const {
      return line != 0 && line < at ? "has a port that is too slow" : nullptr;
    }
  };
  Steady(const Config& config, const ControlledNic& made_for, Stats& stats)
      : nic(made_for), at_(config.at), acks_(stats.counter("steady_acks", "ACKs seen")) {}
  std::uint32_t events() const override { return event_bit(QpEventKind::kAck); }
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override {
    controls.set_rate(qpn, static_cast<double>(at_));
  }
  void on_event(Controls&, const QpEvent&) override { acks_.add(); }

  const ControlledNic nic;

 private:
  std::uint64_t at_;
  Counter& acks_;
};

// What is wrong with `yaml` as options of a NIC; empty: nothing.
std::string mistakes_of(const Registry& registry, const std::string& yaml) {
  config::Mistakes mistakes("test");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  registry.find("nic")->options(registry)->fields(reader);
  reader.finish();
  return mistakes.text();
}

TEST(CongestionControl, IsChosenByNameOrByItsOwnWord) {
  for (const char* yaml : {"congestion_control: dcqcn", "dcqcn: {enabled: true}",
                           "congestion_control: dcqcn\ndcqcn: {enabled: true, rpg_threshold: 5}"}) {
    SCOPED_TRACE(yaml);
    NicBox box(std::string("rate: 10Gbps\n") + yaml,
               "delay: 1us\nevents: [{qpn: 17, psn: 103, source: 10.0.0.1, do: mark}]");
    box.connect({.psn = 100});
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64 * 1024);
    box.run();
    EXPECT_EQ(box.count(1, "np_cnp_sent"), 1u);
    EXPECT_EQ(box.count(0, "rp_cnp_handled"), 1u);
  }
  NicBox box("rate: 10Gbps\ndcqcn: {rpg_threshold: 5}", "delay: 1us");
  box.connect();
  EXPECT_EQ(box.sides[0].qp->rate, 0) << "options alone choose nothing";
}

// Of a queue pair one in so long, however many marks come.
TEST(CongestionControl, NotificationsArePaced) {
  for (const bool paced : {true, false}) {
    NicBox box(
        std::string("rate: 100Gbps\ndcqcn: {enabled: true, min_time_between_cnps: ") + (paced ? "50us}" : "0ns}"),
        "delay: 1us\nmark: 100%");
    box.connect();
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 20 * 1024);
    box.run(40 * kMicrosecond);
    EXPECT_EQ(box.count(1, "np_ecn_marked_roce_packets"), 20u);
    EXPECT_EQ(box.count(1, "np_cnp_sent"), paced ? 1u : 20u);
    box.run(20 * kMicrosecond);
    box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 2 * 1024);
    box.run();
    EXPECT_EQ(box.count(1, "np_cnp_sent"), paced ? 2u : 22u);
    EXPECT_EQ(box.count(0, "rp_cnp_handled"), box.count(1, "np_cnp_sent"));
  }
}

// What answers a READ is data, too: who sends it slows down by the marks that it meets.
TEST(CongestionControl, ResponsesToReadsObeyNotifications) {
  Nanos took[2];
  for (const bool marked : {false, true}) {
    NicBox box("rate: 10Gbps\ndcqcn: {enabled: true}", marked ? "delay: 1us\nreverse: {mark: 100%}" : "delay: 1us");
    box.connect();
    box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { took[marked] = host.now(); };
    box.post(0, 1, IBV_WR_RDMA_READ, 0, 1 << 20);
    box.run();
    ASSERT_EQ(box.completions(0).size(), 1u) << box.state();
    EXPECT_EQ(box.count(1, "rp_cnp_handled") > 0, marked);
  }
  EXPECT_LT(took[0], kMillisecond);
  EXPECT_GT(took[1], 4 * took[0]);
}

TEST(CongestionControl, ContradictionsAreRefused) {
  const Registry registry;
  EXPECT_EQ(mistakes_of(registry, "{rate: 10Gbps, congestion_control: dcqcn}"), "");
  EXPECT_NE(mistakes_of(registry, "{rate: 10Gbps, congestion_control: dcqcn, dcqcn: {enabled: false}}")
                .find("`enabled` is false, and `congestion_control: dcqcn` says that it is used"),
            std::string::npos);
  EXPECT_NE(mistakes_of(registry, "{congestion_control: dcqcn}").find("`congestion_control` needs the port's `rate:`"),
            std::string::npos);
  EXPECT_NE(mistakes_of(registry, "{dcqcn: {enabled: true}}").find("`dcqcn` needs the port's `rate:`"),
            std::string::npos);
  EXPECT_NE(mistakes_of(registry, "{rate: 10Gbps, congestion_control: none, dcqcn: {enabled: true}}")
                .find("`congestion_control` says `none`, and `dcqcn` is enabled"),
            std::string::npos);
  EXPECT_NE(mistakes_of(registry, "{rate: 10Gbps, congestion_control: dcqnc}").find("did you mean `dcqcn`"),
            std::string::npos);
}

TEST(NicOptions, ContradictionsAreRefused) {
  const struct Row {
    std::string options, told;
  } rows[] = {
      {"credits: true, recovery: rnic_sr", "`credits` goes with `recovery: go_back_n` only"},
      {"scheduler: {policy: round_robin, turn: 4KiB}", "`turn` is of the greedy policy"},
      {"scheduler: {groups: [{priority: 3, strict: true, weight: 2}]}", "`weight` is of groups that are not strict"},
      {"scheduler: {groups: [{priority: 3}, {priority: 3, strict: true}]}", "`groups` has priority 3 twice"},
      {"mtu: 300", "for the smallest path MTU"},
  };
  const Registry registry;
  for (const auto& [options, told] : rows)
    EXPECT_NE(mistakes_of(registry, "{rate: 10Gbps, " + options + "}").find(told), std::string::npos)
        << mistakes_of(registry, "{rate: 10Gbps, " + options + "}");
}

TEST(CongestionControl, ComesLikeEveryComponent) {
  static const Component row = nic_model::congestion_control<Steady>("steady", "sends at one rate");
  Registry registry;
  registry.add(row, "the test");
  EXPECT_EQ(mistakes_of(registry, "{rate: 10Gbps, congestion_control: steady, steady: {at: 2Gbps}}"), "");
  EXPECT_NE(mistakes_of(registry, "{rate: 1Gbps, congestion_control: steady, steady: {at: 2Gbps}}")
                .find("`congestion_control` has a port that is too slow"),
            std::string::npos);
  EXPECT_NE(mistakes_of(registry, "{rate: 10Gbps, congestion_control: steady, dcqcn: {enabled: true}}")
                .find("`dcqcn` is enabled, and so is `steady`"),
            std::string::npos);
  // It is made with what it is told of its NIC, and its counters stand among the NIC's.
  std::unique_ptr<Options> options = row.options(registry);
  CounterSet counters;
  const auto& made_of = static_cast<const nic_model::CongestionControlOptions&>(*options);
  const auto control = made_of.make({25'000'000'000, 17, 4}, counters);
  EXPECT_EQ(static_cast<const Steady&>(*control).nic.queue_pairs, 4u);
  EXPECT_FALSE(made_of.notification_point()) << "no marks, no notifications";
  ASSERT_EQ(counters.rows().size(), 1u);
  EXPECT_EQ(counters.rows()[0].name, "steady_acks");
}

TEST(CongestionControl, IsRefusedLikeEveryComponent) {
  const auto refusal = [](const Component& row) -> std::string {
    Registry registry;
    try {
      registry.add(row, "the test");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const Component good = nic_model::congestion_control<Steady>("steady", "sends at one rate");
  EXPECT_EQ(refusal(good), "");
  Component row = good;
  row.name = "header_only";
  EXPECT_EQ(
      refusal(row),
      "the test: `header_only` would mean two things in `devices.NAME.nic`: give the congestion_control another name");
  row.name = "none";
  EXPECT_NE(refusal(row).find("`none` would mean two things"), std::string::npos);
  row = good;
  row.host = "switch";
  EXPECT_NE(refusal(row).find("the congestion_control `steady` runs in `switch`, which has no option `steady`"),
            std::string::npos);
  row = good;
  row.host = nullptr;
  EXPECT_EQ(refusal(row), "the test: the congestion_control `steady` has no host: name the device in which it runs");
  row = good;
  row.kind = "program";
  EXPECT_EQ(refusal(row), "the test: the program `steady` has options of another kind: use program()");
}

}  // namespace
}  // namespace rocebox::test::controlling
