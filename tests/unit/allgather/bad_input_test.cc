// SPDX-License-Identifier: BSD-3-Clause
// What the network and other ranks can do to a multicast collective: chunks that are none of its own, ranks that stop,
// roots of which nothing comes, timers that are far off, staging that overruns.
#include <gtest/gtest.h>

#include "nic_model/host/connect.h"
#include "tests/unit/allgather/judge.h"

namespace rocebox::allgather::test {
namespace {

TeamOptions plain() {
  TeamOptions options;
  options.mtu = 256;
  options.staging = 64 << 10;
  options.timeout_exponent = 5;
  options.timeout = 20 * kMillisecond;
  return options;
}

// A host that is no rank sends to the group, with the right Q_Key.
class Stranger {
 public:
  explicit Stranger(Star& star, unsigned host) : host_(*dynamic_cast<nic_model::Host*>(star.all[host].side)) {
    program_ = host_.submit(program_body_);
  }
  void send(const TeamOptions& options, std::vector<std::pair<std::uint32_t, std::uint32_t>> immediates_and_bytes,
            bool with_immediate = true) {
    program_body_.to_do.push_back([=, this](nic_model::Host& host) {
      if (!qp_) make(host, options);
      nic_model::AddressHandle group;
      ASSERT_EQ(0, host.create_ah(group, options.group_of(0, 0), 0, static_cast<std::uint32_t>(options.qkey)));
      for (const auto& [immediate, bytes] : immediates_and_bytes) {
        ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), bytes, key_};
        ibv_send_wr request{};
        request.opcode = with_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        request.sg_list = &sge;
        request.num_sge = 1;
        request.imm_data = htobe32(immediate);
        ASSERT_EQ(0, host.post_send(*qp_, &request, nullptr, &group));
      }
    });
    host_.start_again(program_);
  }

 private:
  struct Body final : nic_model::HostProgram {
    void on_start(nic_model::Host& h) override {
      for (auto& one : std::exchange(to_do, {})) one(h);
    }
    std::vector<std::function<void(nic_model::Host&)>> to_do;
  };
  void make(nic_model::Host& host, const TeamOptions& options) {
    nic_model::QpInit init;
    init.type = IBV_QPT_UD;
    init.domain = host.alloc_pd();
    key_ = host.memory().add(init.domain, memory_.data(), memory_.size(), 0);
    init.send_cq = init.receive_cq = host.create_cq(64, program_);
    init.capacity = {64, 1, 1, 1, 0};
    qp_ = host.create_qp(init);
    nic_model::start_datagrams(host, *qp_, static_cast<std::uint32_t>(options.qkey));
  }

  nic_model::Host& host_;
  Body program_body_;
  std::uint32_t program_ = 0, key_ = 0;
  nic_model::Qp* qp_ = nullptr;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(4096, 0x99);
};

TEST(AllgatherBadInput, ChunksThatAreNoneOfItsOwnAreCountedByReason) {
  for (const Receiver receiver : {Receiver::kHost, Receiver::kDpa}) {
    Star star(4, "dpa: {heap: 4MiB}", "delay: 1us");
    Stranger stranger(star, 3);
    star.all.pop_back();
    TeamOptions options = plain();
    options.receiver = receiver;
    options.cutoff = 2 * kMillisecond;
    // A rank is silent behind the barrier, so that the others have time to take what comes.
    options.stop_rank = 2;
    options.stop_at = StopAt::kSending;
    options.batch = 2;
    Judge judge(star, options, {{0, 0, -1, 1, 2560}});
    judge.team.connect();
    star.run([&] { return star.now > kMillisecond; }, kSecond);
    const ImmediateLayout layout = options.layout();
    stranger.send(options, {{layout.encode({0, 0, 0}), 256},   // a chunk of rank 0
                            {layout.encode({29, 0, 0}), 256},  // the last one
                            {layout.encode({30, 0, 0}), 256},  // none
                            {layout.encode({0xFFFFFF, 0, 0}), 256},
                            {layout.encode({3, 1, 0}), 256},  // another collective's
                            {layout.encode({3, 0, 1}), 256},  // another generation's
                            {0xFFFFFFFF, 1}});
    stranger.send(options, {{0, 256}}, false);
    star.run([] { return false; }, star.now + 500 * kMicrosecond);
    const TeamCounters c = judge.team.counters();
    // At each rank; the silent one's workers on the DPA go on.
    const unsigned ranks = receiver == Receiver::kDpa ? 3 : 2;
    EXPECT_EQ(c.strangers, 2 * ranks);
    EXPECT_EQ(c.out_of_range, 2 * ranks);
    EXPECT_EQ(c.stale, 3 * ranks);
    EXPECT_EQ(c.no_immediate, 1 * ranks);
    star.run([&] { return judge.ended == 2; }, 5 * kSecond);
    EXPECT_EQ(judge.failed[End::kFetchTimeout], 2u);
    EXPECT_EQ(judge.whole, 0u);
  }
}

// Nobody hangs, each is released once, and what is released as whole is whole.
TEST(AllgatherBadInput, RanksThatStopAreNamed) {
  struct Case {
    StopAt at;
    End expected;
    bool loses;
  };
  for (const Case& one :
       {Case{StopAt::kStart, End::kBarrierTimeout, false}, Case{StopAt::kBarrier, End::kBarrierTimeout, false},
        Case{StopAt::kSending, End::kFetchTimeout, false}, Case{StopAt::kRecovery, End::kFetchTimeout, true},
        Case{StopAt::kHandshake, End::kHandshakeTimeout, false}}) {
    TeamOptions options = plain();
    options.stop_rank = 2;
    options.stop_at = one.at;
    options.batch = 2;
    Star star(5, "", one.loses ? "{delay: 1us, loss: 50%, match: {opcode: 0x65}}" : "delay: 1us");
    Judge judge(star, options, {{0, 0, -1, 1, 5120}});
    judge.team.connect();
    star.run([&] { return judge.ended == 4; }, 5 * kSecond);
    EXPECT_EQ(judge.ended, 4u) << "all but that rank, at " << static_cast<int>(one.at);
    EXPECT_EQ(judge.wrong, 0u);
    EXPECT_GT(judge.failed[one.expected], 0u) << name_of(one.expected);
    const bool some_have_all = one.at == StopAt::kRecovery || one.at == StopAt::kHandshake;
    EXPECT_TRUE(some_have_all || judge.whole == 0u);
  }
}

TEST(AllgatherBadInput, ConnectionsThatAreLostAreNamed) {
  // Nothing of rank 1's messages arrives.
  Star star(4, "", "delay: 1us", 1, {{1, "{delay: 1us, loss: 100%, match: {opcode: 4}}"}});
  TeamOptions options = plain();
  options.timeout = kSecond;
  Judge judge(star, options, {{0, 0, -1, 1, 1000}});
  judge.run();
  EXPECT_EQ(judge.ended, 4u);
  EXPECT_EQ(judge.whole, 0u);
  EXPECT_GT(judge.failed[End::kConnection], 0u);
}

// A neighbour whose answer is lost is asked again after a second, which is no rank's fault: time-outs begin when all
// ways are known. Whoever cannot be reached at all is a rank that does not come to the barrier.
TEST(AllgatherBadInput, AddressesThatAreLearntLateCostNothing) {
  for (const bool comes : {true, false}) {
    Star star(4, "arp_timeout: 100ms", "delay: 1us");
    star.link(1, "up: false");
    Judge judge(star, plain(), {{0, 0, -1, 1, 1000}});
    judge.team.connect();
    star.run([] { return false; }, 10 * kMillisecond);
    if (comes) star.link(1, "delay: 1us");
    star.run([&] { return judge.ended == 4; }, 5 * kSecond);
    EXPECT_EQ(judge.ended, 4u);
    EXPECT_EQ(judge.whole, comes ? 4u : 0u);
    EXPECT_EQ(judge.failed[End::kBarrierTimeout] > 0, !comes);
    EXPECT_GT(star.now, 100 * kMillisecond);
  }
}

TEST(AllgatherBadInput, AllOfOneRootIsLost) {
  Star star(6, "", "{delay: 1us, loss: 100%, match: {opcode: 0x65, source: 10.0.0.3}}");
  Judge judge(star, plain(), {{0, 0, -1, 2, 3000}, {0, 1, 2, 1, 3000}});
  judge.run();
  EXPECT_EQ(judge.whole, 12u);
  EXPECT_EQ(judge.wrong, 0u);
  const TeamCounters c = judge.team.counters();
  EXPECT_EQ(c.requests, 10u) << "five of each collective";
  EXPECT_EQ(c.bytes_read, 30000u);
}

TEST(AllgatherBadInput, AllOfAllIsLost) {
  Star star(7, "", "{delay: 1us, loss: 100%, match: {opcode: 0x65}}");
  Judge judge(star, plain(), {{0, 0, -1, 3, 3000}});
  judge.run();
  EXPECT_EQ(judge.whole, 7u);
  EXPECT_EQ(judge.wrong, 0u);
  EXPECT_EQ(judge.team.counters().bytes_read, 7u * 6 * 3000) << "a ring Allgather";
}

TEST(AllgatherBadInput, CutoffFarTooEarlyAndFarTooLate) {
  for (const Nanos cutoff : {Nanos{0}, Nanos{2 * kSecond}}) {
    TeamOptions options = plain();
    options.cutoff = cutoff;
    Star star(6, "", "{delay: 1us, loss: 3%, match: {opcode: 0x65}}");
    Judge judge(star, options, {{0, 0, -1, 2, 20000}});
    judge.run();
    EXPECT_EQ(judge.whole, 6u) << "the others' wait for the handshake is none as long as cutoffs may come";
    EXPECT_EQ(judge.wrong, 0u);
    EXPECT_EQ(star.now > kSecond, cutoff > kSecond);
  }
}

TEST(AllgatherBadInput, ChunksThatComeTwiceAreTakenOnce) {
  Star star(4, "", "{delay: 1us, duplicate: 50%, match: {opcode: 0x65}}");
  Judge judge(star, plain(), {{0, 0, -1, 2, 5000}});
  judge.run();
  EXPECT_EQ(judge.whole, 4u);
  EXPECT_EQ(judge.wrong, 0u);
  const TeamCounters c = judge.team.counters();
  EXPECT_EQ(c.chunks, 4u * 3 * 20);
  EXPECT_EQ(c.copies, c.chunks);
  EXPECT_GT(c.duplicates + c.stale, 0u);
}

TEST(AllgatherBadInput, StagingOverruns) {
  TeamOptions options = plain();
  options.staging = 4 * 296;
  options.worker_time = 2000;  // of a datagram that takes 30 ns to come
  Star star(4, "", "delay: 1us");
  Judge judge(star, options, {{0, 0, -1, 1, 20000}});
  judge.run();
  EXPECT_EQ(judge.whole, 4u);
  EXPECT_EQ(judge.wrong, 0u);
  EXPECT_GT(judge.team.counters().reads, 0u);
}

}  // namespace
}  // namespace rocebox::allgather::test
