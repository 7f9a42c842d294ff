// SPDX-License-Identifier: BSD-3-Clause
// What all of perftest's workloads have: two hosts, each an end of all queue pairs, that know of each other.
#pragma once
#include <endian.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nic_model/host/connect.h"
#include "nic_model/host/workloads/perftest_config.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/carried.h"

namespace rocebox::nic_model {

// One end of all queue pairs.
class PerftestEnd final : public HostProgram {
 public:
  PerftestEnd(const WorkloadHost& on, const PerftestConfig& config, const std::vector<std::uint64_t>& sizes)
      : name(on.name), config_(config), sizes_(sizes) {
    host_ = &host_of(on, config.mtu);
    program_ = host_->submit(*this);
  }
  void run(std::function<void(Host&)> what) { tasks_.add(*host_, program_, std::move(what)); }
  void on_start(Host& host) override { tasks_.run(host); }
  void on_completion(Host& host, CompletionQueue& cq) override {
    complete_all(host, cq, [&](const ibv_wc& wc) { on_wc(host, wc); });
  }
  void on_timer(Host& host, Timer&) override {
    while (!waiting_.empty() && waiting_.begin()->first <= host.now()) {
      const std::size_t number = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      qps[number].waits = false;
      on_due(host, number);
    }
    arm(host);
  }

  void prepare(Host& host) {
    domain_ = host.alloc_pd();
    if (host.config().header_only) {
      mapping_.key = host.memory().add_without_bytes(domain_, 0, config_.largest(), ConnectOptions().access);
    } else {
      bytes_.resize(config_.largest());
      mapping_ = host.memory().map(domain_, bytes_.data(), bytes_.size(), ConnectOptions().access);
    }
    const auto depth = static_cast<std::uint32_t>(config_.tx_depth);
    cq_ = host.create_cq(static_cast<std::uint32_t>(config_.cq_entries()), program_);
    for (std::int64_t i = 0; i < config_.qp; i++) {
      QpInit init;
      init.type = config_.connection == 0 ? IBV_QPT_RC : IBV_QPT_UC;
      init.domain = domain_;
      init.send_cq = init.receive_cq = cq_;
      init.capacity = {depth, 2 * depth, 1, 1, static_cast<std::uint32_t>(config_.inline_size)};
      Qp* qp = host.create_qp(init);
      if (!qp) no_queue_pair_left(name, host.config());
      config_.recovery.apply(host, *qp);
      qps.push_back({qp, RateQueue(config_.rate_limit)});
    }
    host.arm(*cq_);
  }
  void connect(Host& host, const PerftestEnd& other) {
    ConnectOptions options;
    options.mtu = static_cast<std::uint32_t>(config_.mtu);
    options.timeout = static_cast<std::uint8_t>(config_.timeout);
    options.traffic_class = static_cast<std::uint8_t>(config_.traffic_class);
    options.rd_atomic = static_cast<std::uint8_t>(config_.outs);
    for (std::size_t i = 0; i < qps.size(); i++)
      nic_model::connect(host, *qps[i].qp,
                         {other.host_->config().source_for(*host.config().address), other.qps[i].qp->number()},
                         options);
  }
  void post_receive(Host& host, std::size_t number) {
    ibv_sge sge{address(), static_cast<std::uint32_t>(sizes_[number]), mapping_.key};
    ibv_recv_wr request{number, nullptr, &sge, 1};
    host.post_receive(*qps[number].qp, &request, nullptr);
  }
  int post_send(Host& host, std::size_t number, ibv_wr_opcode opcode, const PerftestEnd& other, bool signaled,
                std::uint32_t immediate = 0) {
    ibv_sge sge{address(), static_cast<std::uint32_t>(sizes_[number]), mapping_.key};
    ibv_send_wr request{};
    request.wr_id = number;
    request.opcode = opcode;
    request.sg_list = &sge;
    request.num_sge = 1;
    const bool inlined =
        sizes_[number] <= static_cast<std::uint64_t>(config_.inline_size) && !host.config().header_only;
    if (inlined) sge.addr = reinterpret_cast<std::uintptr_t>(bytes_.data());  // that the host copies, not the NIC
    request.send_flags = (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0u) |
                         (inlined ? static_cast<unsigned>(IBV_SEND_INLINE) : 0u);
    request.imm_data = htobe32(immediate);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
      request.wr.atomic = {other.address(), 1, 0, other.mapping_.key};
    else
      request.wr.rdma = {other.address(), other.mapping_.key};
    return host.post_send(*qps[number].qp, &request, nullptr);
  }
  Progress progress() const { return host_->progress(program_); }
  std::uint64_t address() const { return mapping_.address; }
  /// on_due() is called at the pair's next_post().
  void wait(Host& host, std::size_t number) {
    Pair& pair = qps[number];
    if (std::exchange(pair.waits, true)) return;
    waiting_.emplace(pair.next_post(), number);
    arm(host);
  }

  struct Pair {
    Qp* qp;
    RateQueue rate;                                           // at which messages are posted
    std::int64_t posted = 0, completed = 0, in_duration = 0;  // the last: completed until posting ended
    Nanos last_completed = kNever;
    bool done = false, waits = false;
    ibv_wc_status status = IBV_WC_SUCCESS;  // the first other one
    /// When its rate lets the next message go.
    Nanos next_post() const { return rate.after(0, 0).rounded_up(); }
  };
  const std::string name;  // of the host
  std::vector<Pair> qps;
  std::function<void(Host&, const ibv_wc&)> on_wc;
  std::function<void(Host&, std::size_t number)> on_due;

 private:
  // All pairs share one timer, which stands for the one that is due first.
  void arm(Host& host) {
    if (!waiting_.empty()) host.arm_timer(program_, timer_, waiting_.begin()->first);
  }

  const PerftestConfig& config_;
  const std::vector<std::uint64_t>& sizes_;  // of each queue pair
  Host* host_;
  std::uint32_t program_ = 0, domain_ = 0;
  Mapping mapping_;
  CompletionQueue* cq_ = nullptr;
  std::vector<std::uint8_t> bytes_;
  HostTasks tasks_;
  Timer timer_;
  std::set<std::pair<Nanos, std::size_t>> waiting_;  // pairs, by when they are due
};

class Perftest : public Workload, public Carrier {
 public:
  Perftest(std::span<const WorkloadHost> hosts, const PerftestConfig& config, Verb verb, std::uint64_t seed)
      : config_(config),
        sizes_(config.sizes(seed)),
        verb_(verb),
        ends_{PerftestEnd(hosts[0], config_, sizes_), PerftestEnd(hosts[1], config_, sizes_)} {
    require_peers(hosts[0], hosts[1], config.connection == 0 ? &config.recovery : nullptr);
    plan_queue_pairs(hosts, std::vector(hosts.size(), static_cast<std::uint64_t>(config.qp)));
    for (unsigned side = 0; side < 2; side++) {
      ends_[side].on_wc = [this, side](Host& host, const ibv_wc& wc) {
        if (wc.status != IBV_WC_SUCCESS)
          fail(host, side, wc.wr_id, wc.status);
        else
          on_completion(host, side, wc);
      };
      ends_[side].on_due = [this, side](Host& host, std::size_t number) { on_due(host, side, number); };
    }
  }
  // Both know of each other as by perftest's own connection; then the client begins, and with it the server.
  void start(Nanos now) override {
    start_ = flows_[0].start = flows_[1].start = now;
    over_time_.start(now);
    ends_[0].run([this](Host& client) {
      ends_[0].prepare(client);
      ends_[1].run([this](Host& server) {
        ends_[1].prepare(server);
        ends_[1].connect(server, ends_[0]);
        begin(server, 1);
        ends_[0].run([this](Host& again) {
          ends_[0].connect(again, ends_[1]);
          begin(again, 0);
        });
      });
    });
  }
  bool finished() const override { return finished_; }
  std::span<const FlowRecord> flows() const override { return {flows_.data(), config_.bidirectional ? 2u : 1u}; }
  Progress progress() const override {
    Progress sum{bytes() + static_cast<std::uint64_t>(failed_)};
    for (const PerftestEnd& end : ends_) sum.add(end.progress());
    return sum;
  }
  void explain_waiting(Report& report, unsigned lines) const override;
  // How much comes in a `duration` is not known.
  Share share_carried() const override {
    double all = 0;
    for (const std::uint64_t size : sizes_) all += static_cast<double>(size) * static_cast<double>(config_.iters);
    return {static_cast<double>(bytes()), config_.duration ? 0 : config_.bidirectional ? 2 * all : all};
  }
  const BytesOverTime* over_time() const override { return &over_time_; }

 protected:
  /// Messages of a side's pair were completed, of which none was before `from`.
  void carried(unsigned side, Nanos from, Nanos now, std::uint64_t bytes) {
    flows_[side].bytes += bytes;
    over_time_.add(from, now, bytes);
  }
  void fail(Host& host, unsigned side, std::size_t number, ibv_wc_status status) {
    failed_++;
    PerftestEnd::Pair& pair = ends_[side].qps[number];
    if (pair.status != IBV_WC_SUCCESS) return;
    pair.status = status;
    if (first_failure_.empty())
      first_failure_ = failed_pair_text(ends_[side].name, *pair.qp, ends_[1 - side].name, status);
    on_failure(host, side, pair);
  }
  /// Of what the report has of each of them.
  void report_failures(Report& report) const {
    report.count("failed_completions", failed_);
    if (failed_ > 0 || report.wants_names())
      report.text("error", failed_ > 0
                               ? failures_text(static_cast<std::uint64_t>(failed_), "work request", first_failure_)
                               : "");
  }
  virtual void begin(Host& host, unsigned side) = 0;
  virtual void on_completion(Host& host, unsigned side, const ibv_wc& wc) = 0;
  /// A side's pair has failed, for the first time.
  virtual void on_failure(Host& host, unsigned side, PerftestEnd::Pair& pair) = 0;
  virtual void on_due(Host&, unsigned /*side*/, std::size_t /*number*/) {}
  /// All that a side does is over: `done`, or the rest of its messages has failed.
  void end(unsigned side, Nanos now, bool done) {
    if (std::exchange(over_[side], true)) return;
    if (done) flows_[side].end = now;
    if (!over_[0] || (config_.bidirectional && !over_[1])) return;
    finished_ = true;
    ended_ = now;
    tell_finished(now);
  }
  bool all_done() const {
    return std::ranges::all_of(flows(), [](const FlowRecord& flow) { return flow.end != kNever; });
  }
  std::uint64_t bytes() const { return flows_[0].bytes + flows_[1].bytes; }

  const PerftestConfig config_;
  const std::vector<std::uint64_t> sizes_;
  const Verb verb_;
  std::array<PerftestEnd, 2> ends_;
  // By side; one stands for all messages, of which there may be very many.
  std::array<FlowRecord, 2> flows_{{{0, 1, 0, 0, kNever}, {1, 0, 0, 0, kNever}}};
  BytesOverTime over_time_;
  Nanos start_ = 0, ended_ = 0;
  std::int64_t failed_ = 0;
  std::string first_failure_;
  std::array<bool, 2> over_{};  // by side
  bool finished_ = false;
};

// Queue pairs that failed, and those that send and have not done so.
inline void Perftest::explain_waiting(Report& report, unsigned lines) const {
  report.count("failed_completions", failed_);
  std::vector<std::pair<unsigned, std::size_t>> open;
  for (unsigned side = 0; side < 2; side++)
    for (std::size_t i = 0; i < ends_[side].qps.size() && open.size() < lines; i++) {
      const PerftestEnd::Pair& pair = ends_[side].qps[i];
      const bool sends = side == 0 || config_.bidirectional;
      if (pair.status != IBV_WC_SUCCESS || (sends && !pair.done)) open.emplace_back(side, i);
    }
  report.table("unfinished", open.size(), [&](Report& row, std::size_t number) {
    const auto& [side, i] = open[number];
    const PerftestEnd& end = ends_[side];
    const PerftestEnd& peer = ends_[1 - side];
    row.text("host", end.name);
    row.count("qpn", end.qps[i].qp->number());
    row.text("peer", peer.name);
    row.count("peer_qpn", i < peer.qps.size() ? std::int64_t{peer.qps[i].qp->number()} : -1);
    row.text("state", waiting_state(*end.qps[i].qp));
    row.text("status", failed_status(end.qps[i].status));
  });
}

}  // namespace rocebox::nic_model
