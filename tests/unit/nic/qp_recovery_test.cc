// SPDX-License-Identifier: BSD-3-Clause
// Loss recovery of each queue pair: several ways at once between the same two NICs.
#include <gtest/gtest.h>

#include <initializer_list>
#include <numeric>
#include <random>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::qp_recovery {
namespace {

using nic_model::Controls;
using nic_model::Host;
using nic_model::LossRecovery;
using nic_model::QpEvent;
using nic_model::QpEventKind;
using nic_model::Recovery;

constexpr std::uint32_t kMtu = 1024, kPackets = 400, kBytes = kMtu * kPackets, kPsn = 100, kLost = 200;

struct Sent {
  std::uint32_t qpn, psn;
  Nanos at;
};

// Keeps which packets of requests leave.
class Recorder final : public nic_model::Observer {
 public:
  std::uint32_t events() const override { return event_bit(QpEventKind::kTx); }
  void on_event(Controls& controls, const QpEvent& event) override {
    all.push_back({event.qpn, event.psn, controls.now()});
  }
  std::vector<Sent> of(std::uint32_t qpn) const {
    std::vector<Sent> some;
    std::ranges::copy_if(all, std::back_inserter(some), [&](const Sent& one) { return one.qpn == qpn; });
    return some;
  }

  std::vector<Sent> all;
};

// A wire of 1 us that loses, the first time, the packet with this PSN of each of these queue pairs of side 1.
std::string losing(std::uint32_t psn, std::initializer_list<unsigned> qpns) {
  std::string link = "delay: 1us\nevents: [";
  for (const unsigned qpn : qpns)
    link += "{qpn: " + std::to_string(qpn) + ", psn: " + std::to_string(psn) + ", source: 10.0.0.1, do: drop}, ";
  return link + "]";
}

// Queue pairs that recover as given, in order, from side 0 to side 1 of one box; each writes to a part of its own.
class Several : public NicBox {
 public:
  Several(const std::vector<LossRecovery>& recoveries, const std::string& nic, const std::string& link,
          bool header_only = false, const PairOptions& pairs = {})
      : NicBox("rate: 100Gbps\n" + nic + (header_only ? "\nheader_only: true" : ""), link) {
    PairOptions first = pairs;
    first.psn = kPsn;
    first.bytes = kBytes * recoveries.size();
    first.without_bytes = header_only;
    first.recovery = recoveries[0];
    connect(first);
    qps = {{sides[0].qp, sides[1].qp}};
    for (std::size_t i = 1; i < recoveries.size(); i++) {
      std::array<nic_model::Qp*, 2> both{};
      for (unsigned side = 0; side < 2; side++)
        on(side, [&](Host& host) {
          nic_model::QpInit init;
          init.domain = sides[side].pd;
          init.send_cq = init.receive_cq = sides[side].cq;
          init.capacity = {4, 4, 1, 1, 0};
          both[side] = host.create_qp(init);
          ASSERT_NE(both[side], nullptr);
          ASSERT_EQ(host.modify_loss_recovery(*both[side], recoveries[i]), 0);
        });
      for (unsigned side = 0; side < 2; side++) make_ready(side, *both[side], both[1 - side]->number(), first);
      qps.push_back(both);
    }
    std::iota(sides[0].memory.begin(), sides[0].memory.end(), std::uint8_t{1});
    for (std::size_t i = 0; i < sides[0].memory.size(); i += kMtu) sides[0].memory[i] = std::uint8_t(i / kMtu * 7);
  }
  void watch() {
    auto recorder = std::make_unique<Recorder>();
    seen = recorder.get();
    nics[0]->observe_by(std::move(recorder));
  }
  // Each posts a WRITE, in one call.
  void write(std::uint32_t bytes = kBytes) {
    on(0, [&](Host& host) {
      for (std::size_t i = 0; i < qps.size(); i++) {
        ibv_sge sge{sides[0].address() + i * kBytes, bytes, sides[0].key};
        ibv_send_wr request{};
        request.wr_id = i;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.sg_list = &sge;
        request.num_sge = 1;
        request.send_flags = IBV_SEND_SIGNALED;
        request.wr.rdma.remote_addr = sides[1].address() + i * kBytes;
        request.wr.rdma.rkey = sides[1].key;
        ASSERT_EQ(host.post_send(*qps[i][0], &request, nullptr), 0);
      }
    });
  }
  void expect_complete() {
    std::vector<std::uint64_t> done;
    for (const ibv_wc& wc : completions(0)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << wc.wr_id;
      done.push_back(wc.wr_id);
    }
    std::ranges::sort(done);
    std::vector<std::uint64_t> all(qps.size());
    std::iota(all.begin(), all.end(), 0u);
    EXPECT_EQ(done, all);
  }
  std::vector<Sent> sent_by(unsigned number) const { return seen->of(qps[number][0]->number()); }

  std::vector<std::array<nic_model::Qp*, 2>> qps;  // by side
  Recorder* seen = nullptr;
};

// PSNs that left more than once, in order.
std::vector<std::uint32_t> again(const std::vector<Sent>& sent) {
  std::map<std::uint32_t, unsigned> times;
  for (const Sent& one : sent) times[one.psn]++;
  std::vector<std::uint32_t> twice;
  for (const auto& [psn, count] : times)
    if (count > 1) twice.push_back(psn);
  return twice;
}

// One packet of each of four is lost: one sends all behind it again, one that and the last sent, one that alone, and
// one waits for its timer. All bytes are placed, each once, in whole packets and in headers alone.
TEST(QpRecovery, FourWaysAtOnceBetweenTwoNics) {
  for (const char* own : {"recovery: go_back_n", "recovery: selective"})
    for (const bool header_only : {false, true}) {
      SCOPED_TRACE(std::string(own) + (header_only ? ", headers alone" : ""));
      constexpr Nanos kTimeout = 400 * kMicrosecond;
      Several box(
          {{Recovery::kGoBackN}, {Recovery::kRnicSr}, {Recovery::kSelective}, {Recovery::kTimeoutOnly, 512, kTimeout}},
          own, losing(kPsn + kLost, {17, 18, 19, 20}), header_only);
      box.watch();
      box.write();
      box.run();
      box.expect_complete();
      if (header_only) {
        const nic_model::Extents& placed = *box.hosts[1]->host.memory().find(box.sides[1].key)->placed;
        EXPECT_EQ(placed.bytes_covered(), 4u * kBytes);
        EXPECT_EQ(placed.bytes_written(), 4u * kBytes) << "nothing was written twice";
      } else {
        EXPECT_TRUE(box.sides[1].memory == box.sides[0].memory);
      }
      const std::vector<std::uint32_t> go_back = again(box.sent_by(0)), ranged = again(box.sent_by(1)),
                                       selective = again(box.sent_by(2)), timed = again(box.sent_by(3));
      ASSERT_GT(go_back.size(), 3u);
      EXPECT_EQ(go_back.front(), kPsn + kLost);
      EXPECT_EQ(go_back.back() - go_back.front() + 1, go_back.size()) << "all behind the gap, too";
      ASSERT_EQ(ranged.size(), 2u) << "that, and the one last sent";
      EXPECT_EQ(ranged.front(), kPsn + kLost);
      EXPECT_EQ(selective, std::vector{kPsn + kLost});
      ASSERT_GT(timed.size(), 0u);
      EXPECT_LE(timed.front(), kPsn + kLost) << "all from the oldest one without an ACK";
      EXPECT_EQ(std::ranges::count(timed, kPsn + kLost), 1);
      const std::vector<Sent> last = box.sent_by(3);
      const auto first_again = std::ranges::find_if(last.begin() + kPackets, last.end(),
                                                    [](const Sent& one) { return one.psn == kPsn + kLost; });
      ASSERT_NE(first_again, last.end());
      EXPECT_GT(first_again->at - last[kPackets - 1].at, kTimeout - 100 * kMicrosecond) << "not before its timer";
      EXPECT_EQ(box.count(0, "local_ack_timeout_err"), 1u) << "the others heard of it";
    }
}

// Long before the first ACK, as many packets of each are on their way as its own window has.
TEST(QpRecovery, EachHasItsOwnWindow) {
  Several box({{Recovery::kGoBackN, 1}, {Recovery::kGoBackN, 2}, {Recovery::kSelective, 7}, {Recovery::kRnicSr, 300}},
              "window: 64", "delay: 500us", false, {.timeout = 20});
  box.watch();
  box.run();  // next hops are asked for
  box.write();
  box.run(400 * kMicrosecond);
  for (const auto& [number, window] : {std::pair(0u, 1u), {1u, 2u}, {2u, 7u}, {3u, 300u}})
    EXPECT_EQ(box.sent_by(number).size(), window);
  box.run();
  box.expect_complete();
  EXPECT_TRUE(box.sides[1].memory == box.sides[0].memory);
  EXPECT_EQ(box.count(0, "retransmitted_packets"), 0u);
}

// A message of one packet, which is lost: each sends it again when its own time is over; 0: as verbs' `timeout` says.
TEST(QpRecovery, EachHasItsOwnTimeout) {
  constexpr Nanos kTimes[] = {50 * kMicrosecond, 3 * kMillisecond, 4096 << 8};
  Several box({{Recovery::kGoBackN, 512, kTimes[0]}, {Recovery::kSelective, 512, kTimes[1]}, {Recovery::kGoBackN}},
              "retransmission_timeout: 300us", losing(kPsn, {17, 18, 19}), false, {.timeout = 8});
  box.watch();
  box.write(kMtu);
  box.run();
  box.expect_complete();
  for (unsigned i = 0; i < 3; i++) {
    const std::vector<Sent> sent = box.sent_by(i);
    ASSERT_EQ(sent.size(), 2u) << i;
    EXPECT_EQ(sent[1].at - sent[0].at, kTimes[i]) << i;
  }
}

// One that stalls after what it sends again is later by that; the other, which does not, is not.
TEST(QpRecovery, EachHasItsOwnStall) {
  const auto ended = [](Nanos stall) {
    Several box({{Recovery::kSelective, 512, 0, stall}, {Recovery::kSelective}}, "", losing(kPsn + kLost, {17, 18}));
    std::array<Nanos, 2> at{};
    box.hosts[0]->on_wc = [&](Host& host, const ibv_wc& wc) { at[wc.wr_id] = host.now(); };
    box.write();
    box.run();
    return at;
  };
  const auto without = ended(0), with = ended(400 * kMicrosecond);
  EXPECT_GT(with[0] - without[0], 300 * kMicrosecond);
  EXPECT_LT(with[1] - without[1], 50 * kMicrosecond);
}

// A NAK is a loss to DCQCN where receivers place packets as they come, and not from go-back-N's.
TEST(QpRecovery, ANakIsALossToDcqcnOfThoseThatPlaceDirectly) {
  for (const char* own : {"recovery: go_back_n", "recovery: rnic_sr"})
    for (const unsigned lossy : {0u, 1u}) {
      SCOPED_TRACE(std::string(own) + ", queue pair " + std::to_string(lossy) + " loses");
      Several box({{Recovery::kGoBackN}, {Recovery::kRnicSr}}, std::string("congestion_control: dcqcn\n") + own,
                  losing(kPsn + kLost, {17 + lossy}));
      box.write();
      box.run(kMillisecond);
      EXPECT_GT(box.count(0, "packet_seq_err"), 0u);
      EXPECT_EQ(box.qps[0][0]->rate, 100e9);
      if (lossy == 1)
        EXPECT_LT(box.qps[1][0]->rate, 100e9);
      else
        EXPECT_EQ(box.qps[1][0]->rate, 100e9);
    }
}

// What one life had says nothing of the next.
TEST(QpRecovery, AnotherLifeMayRecoverOtherwise) {
  Several box({{Recovery::kGoBackN}}, "", "delay: 1us\nloss: 3%\nduplicate: 3%\nreorder: 3%");
  std::mt19937 random(1);
  for (unsigned life = 0; life < 40; life++) {
    const auto how = static_cast<Recovery>(random() % 4);
    SCOPED_TRACE(std::to_string(life) + ": " + std::string(nic_model::word_of(how)));
    const LossRecovery recovery{how, 1u + static_cast<std::uint32_t>(random() % 600)};
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](Host& host) {
        nic_model::Qp& qp = *box.qps[0][side];
        ASSERT_EQ(host.modify_qp(qp, reset, IBV_QP_STATE), 0);
        EXPECT_EQ(qp.attributes.loss_recovery, host.config().loss_recovery()) << "the NIC's own again";
        ASSERT_EQ(host.modify_loss_recovery(qp, recovery), 0);
      });
    box.run();  // nothing of the last life is on the wire
    for (unsigned side = 0; side < 2; side++)
      box.make_ready(side, *box.qps[0][side], box.qps[0][1 - side]->number(), {.psn = kPsn});
    EXPECT_EQ(box.qps[0][0]->attributes.loss_recovery, recovery);
    box.completions(0).clear();
    std::ranges::fill(box.sides[1].memory, std::uint8_t{0});
    box.write();
    box.run(20 * kSecond);
    box.expect_complete();
    EXPECT_TRUE(box.sides[1].memory == box.sides[0].memory);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace rocebox::test::qp_recovery
