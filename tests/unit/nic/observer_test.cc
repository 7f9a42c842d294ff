// SPDX-License-Identifier: BSD-3-Clause
// The observer: which events it gets, and what its rates, source ports, probes and timers do.
#include "nic_model/rate/observer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/roce/headers.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::observing {
namespace {

using nic_model::Controls;
using nic_model::QpEvent;
using nic_model::QpEventKind;

// Keeps what it is told, and does what a test says.
class Recorder final : public nic_model::Observer {
 public:
  explicit Recorder(std::uint32_t events = ~0u) : events_(events) {}
  std::uint32_t events() const override { return events_; }
  void on_queue_pair(Controls& controls, std::uint32_t qpn) override {
    queue_pairs.push_back(qpn);
    if (begin) begin(controls, qpn);
  }
  void on_event(Controls& controls, const QpEvent& event) override {
    all.push_back(event);
    if (event.rtt) samples.push_back(*event.rtt);
    if (act) act(controls, event);
  }
  void on_timer(Controls& controls) override {
    woken.push_back(controls.now());
    if (wake) wake(controls);
  }
  bool on_rtt_request(Controls&, const nic_model::RttRequest& request, nic_model::RttAnswer& answer) override {
    answer.payload[0] = 7;
    answer.payload[31] = static_cast<std::uint8_t>(request.qpn);
    return true;
  }
  std::vector<QpEvent> of(QpEventKind kind) const {
    std::vector<QpEvent> some;
    std::ranges::copy_if(all, std::back_inserter(some), [&](const QpEvent& one) { return one.kind == kind; });
    return some;
  }

  std::vector<QpEvent> all;
  std::vector<nic_model::RttSample> samples;
  std::vector<std::uint32_t> queue_pairs;
  std::vector<Nanos> woken;
  std::function<void(Controls&, std::uint32_t)> begin;
  std::function<void(Controls&)> wake;
  std::function<void(Controls&, const QpEvent&)> act;

 private:
  std::uint32_t events_;
};

class ObservedBox : public NicBox {
 public:
  explicit ObservedBox(const std::string& link = "delay: 1us", std::uint32_t events = ~0u,
                       const std::string& nic = "rate: 100Gbps")
      : NicBox(nic, link) {
    for (unsigned side = 0; side < 2; side++) {
      auto recorder = std::make_unique<Recorder>(events);
      seen[side] = recorder.get();
      nics[side]->observe_by(std::move(recorder));
    }
  }
  Recorder* seen[2];
};

TEST(Observer, SeesWhatIsSentReceivedAndAcknowledged) {
  ObservedBox box;
  box.connect({.psn = 100});
  const std::uint32_t qpn = box.sides[0].qp->number();
  EXPECT_EQ(box.seen[0]->queue_pairs, std::vector{qpn});
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  const auto sent = box.seen[0]->of(QpEventKind::kTx), came = box.seen[1]->of(QpEventKind::kRx);
  ASSERT_EQ(sent.size(), 8u);
  ASSERT_EQ(came.size(), 8u);
  for (unsigned i = 0; i < 8; i++) {
    EXPECT_EQ(sent[i].qpn, qpn);
    EXPECT_EQ(sent[i].psn, 100 + i);
    EXPECT_EQ(came[i].psn, 100 + i);
    EXPECT_EQ(sent[i].bytes, came[i].bytes);
    EXPECT_EQ(sent[i].bytes, 14u + 20 + 8 + 12 + (i == 0 ? 16 : 0) + 1024 + 4 + 24) << "as the wire has it";
    EXPECT_EQ(sent[i].udp_source_port, came[i].udp_source_port);
  }
  const auto acks = box.seen[0]->of(QpEventKind::kAck);
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(acks[0].psn, 107u);
  EXPECT_EQ(acks[0].syndrome, 0x1F);
  EXPECT_EQ(box.seen[0]->of(QpEventKind::kRx).size(), 1u) << "the ACK";
  EXPECT_TRUE(box.seen[0]->of(QpEventKind::kNack).empty());
}

TEST(Observer, SeesNaksAndOnlyWhatItWants) {
  ObservedBox lossy("delay: 1us\nevents: [{qpn: 17, psn: 103, source: 10.0.0.1, do: drop}]");
  lossy.connect({.psn = 100});
  lossy.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  lossy.run();
  const auto naks = lossy.seen[0]->of(QpEventKind::kNack);
  ASSERT_EQ(naks.size(), 1u);
  EXPECT_EQ(naks[0].psn, 103u);
  EXPECT_EQ(naks[0].syndrome, 0x60);
  EXPECT_EQ(lossy.seen[0]->of(QpEventKind::kTx).size(), 8u + 5) << "what goes again counts";
  ObservedBox box("delay: 1us", nic_model::event_bit(QpEventKind::kAck));
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  EXPECT_EQ(box.seen[0]->all.size(), 1u);
  EXPECT_TRUE(box.seen[1]->all.empty());
}

TEST(Observer, SetsTheRate) {
  for (const double rate : {1e9, 20e9, 0.0}) {
    SCOPED_TRACE(rate);
    ObservedBox box;
    box.seen[0]->begin = [&](Controls& controls, std::uint32_t qpn) {
      EXPECT_EQ(controls.line_rate(), 100'000'000'000u);
      EXPECT_TRUE(controls.set_rate(qpn, rate));
      EXPECT_EQ(controls.rate(qpn), rate);
      EXPECT_FALSE(controls.set_rate(qpn + 1000, rate));
    };
    box.connect();
    Nanos ended = 0;
    box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
    const Nanos began = box.now;
    box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1 << 20);
    box.run();
    double bytes = 0;
    for (const QpEvent& one : box.seen[0]->of(QpEventKind::kTx)) bytes += one.bytes;
    const double expected = bytes * 8e9 / (rate != 0 ? rate : 100e9);
    EXPECT_NEAR(static_cast<double>(ended - began), expected, expected * 0.01 + 3000);
  }
}

// What waits for the end of a packet at a low rate goes on as soon as the rate is higher.
TEST(Observer, ARateThatRisesShortensTheWait) {
  ObservedBox box;
  std::uint32_t queue_pair = 0;
  box.seen[0]->begin = [&](Controls& controls, std::uint32_t qpn) {
    queue_pair = qpn;
    controls.set_rate(qpn, 1e6);
    controls.wake_at(controls.now() + 1'000'000);
  };
  box.seen[0]->wake = [&](Controls& controls) { controls.set_rate(queue_pair, 10e9); };
  box.connect({.timeout = 0});
  const Nanos began = box.now;
  Nanos ended = 0;
  box.hosts[0]->on_wc = [&](nic_model::Host& host, const ibv_wc&) { ended = host.now(); };
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  EXPECT_GT(ended - began, 900'000);
  EXPECT_LT(ended - began, 1'100'000) << "a packet at 1 Mbit/s takes 9 ms";
}

// A retransmission that waits for its turn at a low rate has not been lost.
TEST(Observer, LowRatesUseUpNoRetries) {
  ObservedBox box("delay: 1us\nforward: {events: [{qpn: 0x11, relative_psn: 0, do: drop}]}");
  box.seen[0]->begin = [&](Controls& controls, std::uint32_t qpn) { controls.set_rate(qpn, 1e6); };
  box.connect({.timeout = 6, .retry_cnt = 2});  // 262 us; a packet takes 9 ms
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  ASSERT_EQ(box.completions(0).size(), 1u);
  EXPECT_EQ(box.completions(0)[0].status, IBV_WC_SUCCESS);
}

TEST(Observer, RatesStayBetweenTheLeastAndThePort) {
  ObservedBox box;
  box.seen[0]->begin = [&](Controls& controls, std::uint32_t qpn) {
    controls.set_rate(qpn, 1e15);
    EXPECT_EQ(controls.rate(qpn), 100e9);
    controls.set_rate(qpn, 1e-3);
    EXPECT_EQ(controls.rate(qpn), 1000);
    controls.set_rate(qpn, -5);
    EXPECT_EQ(controls.rate(qpn), 0) << "unlimited";
  };
  box.connect();
  EXPECT_EQ(box.seen[0]->queue_pairs.size(), 1u);
}

TEST(Observer, GivesEachPacketAPath) {
  ObservedBox box;
  box.seen[0]->act = [](Controls& controls, const QpEvent& event) {
    if (event.kind != QpEventKind::kTx) return;
    EXPECT_TRUE(controls.set_udp_source_port(event.qpn, static_cast<std::uint16_t>(event.udp_source_port + 1)));
  };
  box.connect();
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  const auto came = box.seen[1]->of(QpEventKind::kRx);
  ASSERT_EQ(came.size(), 8u);
  for (unsigned i = 1; i < 8; i++) EXPECT_EQ(came[i].udp_source_port, came[0].udp_source_port + i);
  EXPECT_EQ(box.completions(0).size(), 1u) << "with right ICRCs";
}

TEST(Observer, SeesTheSourcePortThatTheHostHasChosen) {
  ObservedBox box;
  box.connect();
  box.on(0, [&](nic_model::Host& host) {
    EXPECT_EQ(EINVAL, host.modify_udp_source_port(*box.sides[0].qp, 0));
    EXPECT_EQ(0, host.modify_udp_source_port(*box.sides[0].qp, 0xC123));
  });
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 8 * 1024);
  box.run();
  const auto came = box.seen[1]->of(QpEventKind::kRx);
  ASSERT_EQ(came.size(), 8u);
  for (const auto& event : came) EXPECT_EQ(event.udp_source_port, 0xC123);
  EXPECT_EQ(box.completions(0).size(), 1u) << "with right ICRCs";
  box.on(0, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(0, host.modify_qp(*box.sides[0].qp, a, IBV_QP_STATE));
    EXPECT_EQ(EINVAL, host.modify_udp_source_port(*box.sides[0].qp, 0xC123)) << "it is not connected";
  });
}

TEST(Observer, MeasuresRoundTripsOutOfBand) {
  ObservedBox box("delay: 5us");
  box.seen[0]->begin = [](Controls& controls, std::uint32_t) { controls.wake_at(controls.now() + kMillisecond); };
  box.connect();
  const std::uint32_t qpn = box.sides[0].qp->number();
  box.run(kMillisecond);
  ASSERT_EQ(box.seen[0]->woken.size(), 1u);
  // The NICs know each other's MAC address since the first packets.
  box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 1);
  box.run(kMillisecond);
  bool asked = false;
  box.seen[0]->act = [&](Controls& controls, const QpEvent& event) {
    if (event.kind == QpEventKind::kTx && !asked) asked = controls.request_rtt(qpn, 50123);
  };
  box.post(0, 2, IBV_WR_RDMA_WRITE, 0, 1);
  box.run(kMillisecond);
  ASSERT_TRUE(asked);
  ASSERT_EQ(box.seen[0]->samples.size(), 1u);
  const nic_model::RttSample& sample = box.seen[0]->samples[0];
  EXPECT_EQ(sample.udp_source_port, 50123);
  EXPECT_NEAR(static_cast<double>(sample.rtt()), 10'000, 100) << "two delays, and less than 100 ns for the packets";
  EXPECT_EQ(sample.network_rtt(), sample.rtt()) << "answered at once";
  EXPECT_GT(sample.request_received, sample.request_sent + 5000);
  EXPECT_EQ(sample.payload[0], 7);
  EXPECT_EQ(sample.payload[31], static_cast<std::uint8_t>(box.sides[1].qp->number()));
  EXPECT_EQ(box.count(0, "rtt_requests_sent"), 1u);
  EXPECT_EQ(box.count(1, "rtt_responses_sent"), 1u);
  EXPECT_EQ(box.count(0, "rtt_responses_received"), 1u);
  EXPECT_EQ(box.count(0, "drop_rtt") + box.count(1, "drop_rtt"), 0u);
}

TEST(Observer, ProbesThatAreDamagedOrDoubledGiveNoSample) {
  unsigned dropped = 0, asked = 0, answered = 0;
  for (std::uint64_t seed = 1; seed <= 20; seed++) {
    NicBox box("rate: 100Gbps", "delay: 5us\ncorrupt: 20%\nduplicate: 20%", seed);
    auto recorder = std::make_unique<Recorder>();
    Recorder& seen = *recorder;
    box.nics[0]->observe_by(std::move(recorder));
    box.connect();
    seen.act = [&](Controls& controls, const QpEvent& event) {
      if (event.kind == QpEventKind::kTx) asked += controls.request_rtt(event.qpn, 50000);
    };
    for (unsigned i = 0; i < 20; i++) {
      box.post(0, i, IBV_WR_RDMA_WRITE, 0, 1);
      box.run(100 * kMillisecond);
    }
    for (const nic_model::RttSample& one : seen.samples) EXPECT_NEAR(static_cast<double>(one.rtt()), 10'000, 200);
    answered += static_cast<unsigned>(seen.samples.size());
    dropped += static_cast<unsigned>(box.count(0, "drop_rtt") + box.count(1, "drop_rtt"));
    EXPECT_EQ(box.count(0, "rtt_responses_received"), seen.samples.size());
  }
  EXPECT_GT(answered, asked / 4);
  EXPECT_LT(answered, asked);
  EXPECT_GT(dropped, 20u);
}

}  // namespace
}  // namespace rocebox::test::observing
