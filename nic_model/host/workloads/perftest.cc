// SPDX-License-Identifier: BSD-3-Clause
// Workloads by the names and options of perftest: one host is the client, the other one the server.
#include "nic_model/host/workloads/perftest.h"

#include <algorithm>
#include <array>
#include <vector>

#include "nic_model/host/workloads/perftest_ends.h"
#include "nic_model/host/workloads/remote_perftest.h"

namespace rocebox::nic_model {
namespace {

class Bandwidth final : public Perftest {
 public:
  using Perftest::Perftest;
  void report(Report& report) const override {
    const double seconds = static_cast<double>(ended_ - start_) / 1e9;
    report.count("messages", messages_);
    report_failures(report);
    if (finished_ || window_is_over_ || report.wants_names()) report_window(report);
    const bool ended = finished_ && all_done() && seconds > 0;
    if (!ended && !report.wants_names()) return;
    report.duration("completion_time", ended_ - start_);
    report.real("average_bits_per_second", ended ? static_cast<double>(bytes()) * 8 / seconds : 0);
    report.real("messages_per_second", ended ? static_cast<double>(messages_) / seconds : 0);
  }

 private:
  // Of workloads that begin together this is of one window, whatever each has still to end behind it.
  void report_window(Report& report) const {
    if (!config_.duration) return;
    std::uint64_t all = 0;
    for (const PerftestEnd& end : ends_)
      for (std::size_t i = 0; i < sizes_.size(); i++) all += in_duration(end, i);
    report.real("in_duration_bits_per_second", rate(all));
    if (config_.size_max)
      report.table("queue_pairs", sizes_.size(), [&](Report& r, std::size_t i) {
        r.count("number", static_cast<std::int64_t>(i));
        r.count("bytes_of_a_message", static_cast<std::int64_t>(sizes_[i]));
        r.real("in_duration_bits_per_second", rate(in_duration(ends_[0], i)));
      });
  }
  std::uint64_t in_duration(const PerftestEnd& end, std::size_t number) const {
    return static_cast<std::uint64_t>(end.qps.empty() ? 0 : end.qps[number].in_duration) * sizes_[number];
  }
  double rate(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * 8e9 / static_cast<double>(config_.duration);
  }
  bool sends(unsigned side) const { return side == 0 || config_.bidirectional; }
  bool more(const PerftestEnd::Pair& pair, Nanos now) const {
    if (pair.status != IBV_WC_SUCCESS) return false;
    return config_.duration ? now - start_ < config_.duration : pair.posted < config_.iters;
  }
  void begin(Host& host, unsigned side) override {
    flows_[side].waits_for_answers = verb_ == Verb::kAtomic;
    if (verb_ == Verb::kSend)
      for (std::size_t i = 0; i < ends_[side].qps.size(); i++)
        for (std::int64_t n = 0; n < 2 * config_.tx_depth; n++) ends_[side].post_receive(host, i);
    if (!sends(side)) return;
    sending_[side] = config_.qp;
    for (std::size_t i = 0; i < ends_[side].qps.size(); i++) fill(host, side, i);
  }
  void fill(Host& host, unsigned side, std::size_t number) {
    PerftestEnd::Pair& pair = ends_[side].qps[number];
    while (pair.posted - pair.completed < config_.tx_depth && more(pair, host.now())) {
      if (config_.rate_limit && pair.next_post() > host.now()) return ends_[side].wait(host, number);
      const bool last = !config_.duration && pair.posted + 1 == config_.iters;
      const bool signaled = last || (pair.posted + 1) % config_.cq_mod == 0;
      if (ends_[side].post_send(host, number, config_.opcode(verb_), ends_[1 - side], signaled)) return;
      pair.posted++;
      // Hosts are called at whole nanoseconds, and so up to one late.
      if (config_.rate_limit) pair.rate.accept(pair.rate.after(host.now() - 1, sizes_[number]));
    }
  }
  void on_due(Host& host, unsigned side, std::size_t number) override {
    fill(host, side, number);
    look_whether_done(host, side, ends_[side].qps[number]);
  }
  void on_completion(Host& host, unsigned side, const ibv_wc& wc) override {
    if (wc.opcode & IBV_WC_RECV) return ends_[side].post_receive(host, wc.wr_id);
    PerftestEnd::Pair& pair = ends_[side].qps[wc.wr_id];
    const std::int64_t before = pair.completed;
    pair.completed = std::min(pair.posted, (pair.completed / config_.cq_mod + 1) * config_.cq_mod);
    messages_ += pair.completed - before;
    if (host.now() - start_ <= config_.duration)
      pair.in_duration = pair.completed;
    else
      window_is_over_ = true;
    const Nanos from = pair.last_completed == kNever ? start_ : pair.last_completed;
    carried(side, from, host.now(), static_cast<std::uint64_t>(pair.completed - before) * sizes_[wc.wr_id]);
    pair.last_completed = host.now();
    fill(host, side, wc.wr_id);
    look_whether_done(host, side, pair);
  }
  // The last of `iters` messages is signaled; of what a `duration` cuts off the last ones are known to be posted only.
  void look_whether_done(Host& host, unsigned side, PerftestEnd::Pair& pair) {
    const std::int64_t silent = config_.duration ? config_.cq_mod - 1 : 0;
    if (pair.done || more(pair, host.now()) || pair.posted - pair.completed > silent) return;
    pair.done = true;
    one_less(host, side);
  }
  // What its peer would have sent by it fails there.
  void on_failure(Host& host, unsigned side, PerftestEnd::Pair& pair) override {
    if (sends(side) && !std::exchange(pair.done, true)) one_less(host, side);
  }
  void one_less(Host& host, unsigned side) {
    if (--sending_[side] > 0) return;
    const auto has_failed = [](const PerftestEnd::Pair& pair) { return pair.status != IBV_WC_SUCCESS; };
    end(side, host.now(), std::ranges::none_of(ends_[side].qps, has_failed));
  }

  std::int64_t messages_ = 0;
  std::array<std::int64_t, 2> sending_{};  // queue pairs of each side
  bool window_is_over_ = false;            // something was completed behind `duration`
};

// One message there, one back; a READ or an atomic is both.
class Latency final : public Perftest {
 public:
  using Perftest::Perftest;
  void report(Report& report) const override {
    report.count("messages", static_cast<std::int64_t>(times_.size()));
    report_failures(report);
    report_times(report, times_);
  }

 private:
  void begin(Host& host, unsigned side) override {
    flows_[side].waits_for_answers = true;
    for (unsigned i = 0; i < 4 && !is_answered(verb_); i++) ends_[side].post_receive(host, 0);
    if (side == 0) ping(host);
  }
  void ping(Host& host) {
    sent_ = host.now();
    post(host, 0);
  }
  // A WRITE tells its receiver its number, for which perftest polls, by an immediate: there may be no bytes to poll.
  void post(Host& host, unsigned side) {
    if (posted_[side] == config_.iters) return;
    posted_[side]++;
    const ibv_wr_opcode opcode = verb_ == Verb::kWrite ? IBV_WR_RDMA_WRITE_WITH_IMM : config_.opcode(verb_);
    ends_[side].post_send(host, 0, opcode, ends_[1 - side], true, static_cast<std::uint32_t>(posted_[side]));
  }
  // A message that the network doubles has one response. The server's bears the number of the client's.
  bool awaited(unsigned side, const ibv_wc& wc) const {
    return verb_ != Verb::kWrite || be32toh(wc.imm_data) == static_cast<std::uint32_t>(posted_[side] + side);
  }
  void on_completion(Host& host, unsigned side, const ibv_wc& wc) override {
    const bool received = wc.opcode & IBV_WC_RECV;
    if (received) ends_[side].post_receive(host, 0);
    if (received ? !awaited(side, wc) : !is_answered(verb_)) return;
    if (side == 1) return post(host, 1);
    if (static_cast<std::int64_t>(times_.size()) == config_.iters) return;
    times_.push_back((host.now() - sent_) / (is_answered(verb_) ? 1 : 2));
    carried(0, sent_, host.now(), config_.size);
    if (static_cast<std::int64_t>(times_.size()) == config_.iters) return end(0, host.now(), true);
    ping(host);
  }
  // No message comes back, whichever side's has failed.
  void on_failure(Host& host, unsigned, PerftestEnd::Pair&) override { end(0, host.now(), false); }

  std::vector<Nanos> times_;
  std::array<std::int64_t, 2> posted_{};  // messages of each side
  Nanos sent_ = 0;
};

template <Verb kVerb, bool kLatency>
class PerftestOptions final : public WorkloadOptions {
 public:
  PerftestOptions() {
    if (kLatency) config_.size = 2, config_.tx_depth = 4;
    if (kVerb == Verb::kAtomic) config_.size = sizeof(std::uint64_t);
  }
  void fields(Fields& f) override { config_.fields(f, kVerb, kLatency); }
  Range<std::int64_t> hosts() const override { return {1, 2}; }
  std::uint32_t packets_in_flight() const override { return config_.recovery.packets_in_flight(); }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    if (hosts.size() == 1) return remote_perftest(hosts[0], config_, kVerb, kLatency);
    if (config_.address)
      throw ConfigError("`address` is for a workload with one host, a client, and `" + hosts[1].name +
                        "` is a second one");
    if constexpr (kLatency) return std::make_unique<Latency>(hosts, config_, kVerb, seed);
    return std::make_unique<Bandwidth>(hosts, config_, kVerb, seed);
  }

 private:
  PerftestConfig config_;
};

}  // namespace

std::vector<Component> perftest_workloads() {
  return {
      workload_component<PerftestOptions<Verb::kWrite, false>>("write_bw", "WRITEs as fast as they go, as ib_write_bw"),
      workload_component<PerftestOptions<Verb::kRead, false>>("read_bw", "READs as fast as they go, as ib_read_bw"),
      workload_component<PerftestOptions<Verb::kSend, false>>("send_bw", "SENDs as fast as they go, as ib_send_bw"),
      workload_component<PerftestOptions<Verb::kAtomic, false>>("atomic_bw",
                                                                "atomics as fast as they go, as ib_atomic_bw"),
      workload_component<PerftestOptions<Verb::kWrite, true>>("write_lat", "WRITEs there and back, as ib_write_lat"),
      workload_component<PerftestOptions<Verb::kRead, true>>("read_lat", "READs one by one, as ib_read_lat"),
      workload_component<PerftestOptions<Verb::kSend, true>>("send_lat", "SENDs there and back, as ib_send_lat"),
      workload_component<PerftestOptions<Verb::kAtomic, true>>("atomic_lat", "atomics one by one, as ib_atomic_lat")};
}

}  // namespace rocebox::nic_model
