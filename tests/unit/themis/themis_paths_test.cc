// SPDX-License-Identifier: BSD-3-Clause
// N changes while a QP runs over paths of different delay and loss: no flow stalls, nothing is lost but on the paths,
// and a NACK passes early only of what was under way at a change. The NIC is an RNIC-SR (the paper's 2.3) in a few
// lines.
#include <fmt/format.h>

#include <map>
#include <queue>
#include <random>
#include <set>

#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

constexpr std::uint32_t kPackets = 3000, kWindow = 64, kRoundsMax = 200'000;
constexpr Nanos kGap = kMicrosecond, kTimeout = 5 * kMillisecond;

std::string with_paths(std::uint32_t paths, const std::string& more) {
  std::string yaml = one_way(tor_yaml(kConnection, more));
  const std::string old = "paths: 2, window: 8, ooo_threshold: 5";
  return yaml.replace(yaml.find(old), old.size(),
                      fmt::format("paths: {}, paths_max: 4, window: {}, ooo_threshold: 0", paths, kWindow));
}

class Flow {
 public:
  Flow(std::uint64_t seed, std::string more)
      : random_(seed), more_(std::move(more)), tor_(Tor::with(with_paths(4, more_))) {
    for (Nanos& delay : delays_) delay = 2 * kMicrosecond + static_cast<Nanos>(random_() % 30'000);
    tor_.meet();
  }
  // Until all has come, changing N every 300 packets.
  void run() {
    at(kMillisecond, Kind::kSend, 0);
    for (std::uint32_t rounds = 0; expected_ < kPackets && rounds < kRoundsMax && !events_.empty(); rounds++) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      tor_.now = now_ - 100;  // Tor::give adds them
      tor_.run_until(now_ - 1);
      take_out();
      carry_out(event);
    }
    tor_.drain();
  }

  std::uint32_t came() const { return expected_; }
  Tor& tor() { return tor_; }
  std::uint32_t nacks = 0, changes = 0, early = 0, truly_lost = 0;
  std::set<std::uint32_t> blocked_for_ever;  // had not come, and their NACK counted invalid
  std::set<std::uint32_t> stalled;           // lost and NACKed, and the NACK had not passed when the timer ran out

 private:
  enum class Kind { kSend, kArrive, kResponse, kResend, kTimer };
  struct Event {
    Nanos at;
    std::uint64_t order;
    Kind kind;
    std::uint32_t psn;
    std::uint8_t syndrome;
    bool operator<(const Event& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  void at(Nanos time, Kind kind, std::uint32_t psn, std::uint8_t syndrome = 0) {
    events_.push({time, order_++, kind, psn, syndrome});
  }
  void carry_out(const Event& event) {
    switch (event.kind) {
      case Kind::kSend:
        return send_next();
      case Kind::kArrive:
        flying_[event.psn]--;
        tor_.data(event.psn);
        return take_out();
      case Kind::kResponse:
        return response_leaves(event.psn, event.syndrome);
      case Kind::kResend:
        return resend(event.psn);
      case Kind::kTimer:
        if (oldest_ == event.psn && oldest_ < sent_) time_out();
        if (oldest_ < kPackets) at(now_ + kTimeout, Kind::kTimer, oldest_);
    }
  }
  // The sender, and Themis-S beside it, which always has the N that the far end has.
  void send_next() {
    if (sent_ == 0) at(now_ + kTimeout, Kind::kTimer, 0);
    if (sent_ == kPackets) return;
    at(now_ + kGap, Kind::kSend, 0);
    if (sent_ >= oldest_ + kWindow) return;
    if (sent_ % 300 == 299 && changed_before_ <= sent_) change_paths();
    fly(sent_, sent_ % paths_, random_() % 100 < 3);
    sent_++;
  }
  void time_out() {
    if (!has(oldest_) && flying_[oldest_] == 0 && nacked_ == oldest_ && !passed_.contains(oldest_))
      stalled.insert(oldest_);
    resend(oldest_);
  }
  void resend(std::uint32_t psn) {
    resent_.insert(psn);
    fly(psn, static_cast<std::uint32_t>(random_() % paths_), false);
  }
  void fly(std::uint32_t psn, std::uint32_t path, bool lost) {
    if (lost) return;
    flying_[psn]++;
    at(now_ + delays_[path], Kind::kArrive, psn);
  }
  void change_paths() {
    constexpr std::uint32_t kPaths[] = {2, 3, 1, 4};
    paths_ = kPaths[changes++ % 4];
    changed_before_ = sent_ + 1;
    test::prepare_change(tor_, with_paths(paths_, more_))->apply(*tor_.kernel, now_);
  }
  // Packets that left: to the NIC, which answers, or answers to the fabric.
  void take_out() {
    for (; seen_ < tor_.out.size(); seen_++) {
      const test::Out& out = tor_.out[seen_];
      const std::uint32_t psn = out.bytes[51] << 16 | out.bytes[52] << 8 | out.bytes[53];
      if (out.bytes[42] != IBV_OPCODE_RC_ACKNOWLEDGE) {
        if (out.port == 0) receive(psn);
      } else if (out.bytes[54] == kNackSyndrome) {
        nack_passes(psn);
      } else {
        oldest_ = std::max(oldest_, psn + 1);
      }
    }
  }
  void receive(std::uint32_t psn) {
    if (psn > expected_) {
      out_of_order_.insert(psn);
      if (nacked_ != expected_) at(now_ + 1'500, Kind::kResponse, nacked_ = expected_, kNackSyndrome);
      return;
    }
    if (psn == expected_) expected_++;
    while (out_of_order_.erase(expected_)) expected_++;
    at(now_ + 1'500, Kind::kResponse, expected_ - 1, kAckSyndrome);
  }
  void response_leaves(std::uint32_t psn, std::uint8_t syndrome) {
    const std::uint64_t invalid = tor_.count("drop_nack_invalid");
    tor_.give(0, response(false, psn, syndrome));
    if (syndrome == kNackSyndrome) {
      nacks++;
      if (tor_.count("drop_nack_invalid") != invalid && !has(psn)) blocked_for_ever.insert(psn);
    }
    take_out();
  }
  void nack_passes(std::uint32_t psn) {
    passed_.insert(psn);
    oldest_ = std::max(oldest_, psn);
    if (has(psn)) return;
    if (flying_[psn] == 0) {
      truly_lost++;
    } else {
      early++;
      EXPECT_TRUE(psn < changed_before_ || resent_.contains(psn))
          << psn << " is under way, was sent behind the last change, and its NACK passed";
    }
    at(now_ + 5'000, Kind::kResend, psn);
  }
  bool has(std::uint32_t psn) const { return psn < expected_ || out_of_order_.contains(psn); }

  std::mt19937_64 random_;
  std::string more_;
  Tor tor_;
  Nanos delays_[4], now_ = 0;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint32_t paths_ = 4, sent_ = 0, oldest_ = 0, changed_before_ = 0;
  std::map<std::uint32_t, int> flying_;  // copies under way, by PSN
  std::set<std::uint32_t> resent_, passed_;
  std::uint32_t expected_ = 0, nacked_ = ~0u;
  std::set<std::uint32_t> out_of_order_;
  std::size_t seen_ = 0;
};

class ThemisPaths : public InPipes {};

TEST_P(ThemisPaths, NothingStallsWhenNChanges) {
  std::uint64_t early = 0, truly_lost = 0, aged = 0;
  for (std::uint64_t seed = 1; seed <= 6; seed++) {
    Flow flow(seed, pipes());
    flow.run();
    EXPECT_EQ(flow.came(), kPackets) << "seed " << seed;
    EXPECT_GE(flow.changes, 9u);
    EXPECT_EQ(flow.blocked_for_ever, std::set<std::uint32_t>{}) << "seed " << seed;
    EXPECT_EQ(flow.stalled, std::set<std::uint32_t>{}) << "seed " << seed;
    // Every NACK has its counter, and every stash its end.
    const auto count = [&](std::string_view name) { return flow.tor().count(name); };
    EXPECT_EQ(count("drop_nack_invalid") + count("nack_valid") + count("drop_nack_undetermined") + count("nack_doubt") +
                  count("nack_behind_window") + count("nack_before_state") + count("nack_ahead_of_data"),
              flow.nacks);
    EXPECT_EQ(count("undetermined_valid") + count("undetermined_invalid") + count("undetermined_acknowledged") +
                  count("undetermined_aged"),
              count("drop_nack_undetermined"));
    const Conservation all = flow.tor().conservation();
    EXPECT_EQ(all.in + all.made, all.out + all.dropped) << "and nothing is held";
    early += flow.early, truly_lost += flow.truly_lost, aged += count("undetermined_aged");
  }
  EXPECT_GT(truly_lost, 100u);
  EXPECT_GT(early, 0u) << "in doubt NACKs pass: else no change came while it mattered";
}

// What tells at the near end that N is not what its paths are; so long its packets keep the port of plain ECMP.
TEST_P(ThemisPaths, ANearEndWithAnotherNThanItsPathsCountsIt) {
  const std::string known =
      "connections: [{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12}], paths_max: 4";
  // Another rack has three equal ports, so that both numbers make sense.
  std::string yaml = tor_yaml(known, pipes());
  yaml.replace(yaml.find("hosts: [p0, p1]"), 15, "hosts: [p0]");
  yaml.insert(yaml.find("    - {mac: 02:00:00:00:00:01, vlan"),
              "    - {mac: 02:00:00:00:00:03, ports: [p1, p2, p3]}\n");
  const auto paths = [&](const char* number) {
    std::string text = yaml;
    return text.replace(text.find("paths: 2"), 8, std::string("paths: ") + number);
  };
  Tor tor = Tor::with(yaml), plain("spray: off", pipes());
  std::set<int> ports;
  std::uint32_t psn = 0;
  for (const char* number : {"2", "3", "2", "3", "2"}) {
    test::prepare_change(tor, paths(number))->apply(*tor.kernel, tor.now);
    const bool fits = *number == '2';
    const std::uint64_t sprayed = tor.count("sprayed"), refused = tor.count("not_sprayed_group");
    if (psn == 0) tor.give(0, write(false, psn++));  // it makes the state
    ports.clear();
    for (int i = 0; i < 10; i++, psn++) {
      const Ports left = tor.give(0, write(false, psn));
      ports.insert(left.begin(), left.end());
      const Ports ecmp = plain.give(0, write(false, psn));
      EXPECT_TRUE(fits || left == ecmp) << psn;
    }
    EXPECT_EQ(ports.size(), fits ? 2u : 1u) << "N " << number;
    EXPECT_EQ(tor.count("sprayed") - sprayed, fits ? 10u : 0u);
    EXPECT_EQ(tor.count("not_sprayed_group") - refused, fits ? 0u : 10u);
  }
}

INSTANTIATE_TEST_SUITE_P(Pipes, ThemisPaths, testing::Values(1, 2));

}  // namespace
}  // namespace rocebox::themis
