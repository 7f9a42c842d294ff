// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/collectives.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "nic_model/host/workloads/flow_list.h"
#include "nic_model/host/workloads/mesh_workload.h"
#include "nic_model/host/workloads/perftest.h"
#include "nic_model/host/workloads/poisson.h"

namespace rocebox::nic_model {

namespace {

/// The steps of a collective, by rank in its group.
class Schedule {
 public:
  virtual ~Schedule() = default;
  struct Send {
    unsigned to;
    std::uint64_t bytes;
  };
  virtual unsigned steps(unsigned ranks) const = 0;
  /// What `rank` sends in `step`; all of step - 1 that it is sent must have come before.
  virtual void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size,
                     std::vector<Send>& out) const = 0;
};

// S / n to the next neighbour in each of `phases` * (n - 1) steps.
class RingSchedule final : public Schedule {
 public:
  explicit RingSchedule(unsigned phases) : phases_(phases) {}
  unsigned steps(unsigned ranks) const override { return phases_ * (ranks - 1); }
  void sends(unsigned rank, unsigned ranks, unsigned, std::uint64_t size, std::vector<Send>& out) const override {
    out.push_back({(rank + 1) % ranks, std::max<std::uint64_t>(1, size / ranks)});
  }

 private:
  unsigned phases_;
};

// Recursive halving, then doubling: partners 1, 2, 4, ... apart.
class HalvingDoublingSchedule final : public Schedule {
 public:
  unsigned steps(unsigned ranks) const override { return 2 * static_cast<unsigned>(std::countr_zero(ranks)); }
  void sends(unsigned rank, unsigned ranks, unsigned step, std::uint64_t size, std::vector<Send>& out) const override {
    const unsigned half = steps(ranks) / 2;
    const unsigned level = step < half ? step : 2 * half - 1 - step;
    out.push_back({rank ^ (ranks >> (level + 1)), std::max<std::uint64_t>(1, size >> (level + 1))});
  }
};

// S / n from each to each other at once, beginning with the next one.
class AllToAllSchedule final : public Schedule {
 public:
  unsigned steps(unsigned) const override { return 1; }
  void sends(unsigned rank, unsigned ranks, unsigned, std::uint64_t size, std::vector<Send>& out) const override {
    for (unsigned i = 1; i < ranks; i++) out.push_back({(rank + i) % ranks, std::max<std::uint64_t>(1, size / ranks)});
  }
};

class Collective final : public MeshWorkload {
 public:
  Collective(std::span<const WorkloadHost> hosts, const MeshOptions& options, std::unique_ptr<Schedule> schedule,
             std::uint64_t size, unsigned groups)
      : MeshWorkload(hosts, options),
        schedule_(std::move(schedule)),
        size_(size),
        groups_(groups),
        ranks_(static_cast<unsigned>(hosts.size()) / groups),
        steps_(schedule_->steps(ranks_)),
        connects_first_(options.rdma_cm),
        states_(std::size_t{groups} * ranks_),
        ended_(groups, kNever),
        left_(groups, ranks_) {
    for (State& state : states_) state.came.resize(steps_);
  }
  void start(Nanos now) override {
    started_ = now;
    if (!connects_first_) return begin(now);
    std::vector<std::pair<unsigned, unsigned>> pairs;
    std::vector<Schedule::Send> sends;
    for (unsigned host = 0; host < groups_ * ranks_; host++)
      for (unsigned step = 0; step < steps_; step++) {
        sends.clear();
        schedule_->sends(rank_of(host), ranks_, step, size_, sends);
        for (const Schedule::Send& send : sends) pairs.emplace_back(host, host_of(host % groups_, send.to));
      }
    mesh_.connect_all(pairs, [this](Nanos at) { begin(at); });
  }
  void report(Report& report) const override {
    MeshWorkload::report(report);
    if (connects_first_ && start_ != kNever) report.duration("connected_after", start_ - started_);
    report.table("groups", groups_, [&](Report& row, std::size_t i) {
      row.count("group_number", static_cast<std::int64_t>(i));
      if (ended_[i] != kNever) row.duration("completion_time", ended_[i] - start_);
    });
  }

 protected:
  void on_received(std::size_t number, Nanos now) override {
    const FlowRecord& flow = flows()[number];
    State& state = states_[flow.destination];
    state.came[step_of_[number]]++;
    try_next(flow.destination, now);
  }
  bool all_begun() const override {
    return std::ranges::all_of(left_, [](unsigned left) { return left == 0; });
  }

 private:
  struct State {
    unsigned step = 0;  // that was begun
    bool begun = false, done = false;
    std::vector<std::uint32_t> came;  // by step
  };
  // Hosts of one group lie `groups_` apart: where hosts are listed by rack, every rack has one in each group.
  unsigned rank_of(unsigned host) const { return host / groups_; }
  unsigned host_of(unsigned group, unsigned rank) const { return rank * groups_ + group; }

  std::uint32_t expected(unsigned host, unsigned step) const {
    std::uint32_t count = 0;
    std::vector<Schedule::Send> sends;
    for (unsigned rank = 0; rank < ranks_; rank++) {
      sends.clear();
      schedule_->sends(rank, ranks_, step, size_, sends);
      for (const Schedule::Send& send : sends) count += send.to == rank_of(host);
    }
    return count;
  }
  void begin(Nanos now) {
    began(now);
    start_ = now;
    for (unsigned host = 0; host < groups_ * ranks_; host++)
      mesh_.call(host, 0, [this, host](Nanos at) { begin_step(host, at); });
  }
  void begin_step(unsigned host, Nanos now) {
    State& state = states_[host];
    std::vector<Schedule::Send> sends;
    state.begun = true;
    schedule_->sends(rank_of(host), ranks_, state.step, size_, sends);
    for (const Schedule::Send& send : sends) {
      step_of_.push_back(state.step);
      mesh_.transfer(host, host_of(host % groups_, send.to), send.bytes, now);
    }
    try_next(host, now);
  }
  // In every step each rank is sent as many as it sends.
  void try_next(unsigned host, Nanos now) {
    State& state = states_[host];
    if (!state.begun || state.done) return;
    if (!expected_) expected_ = expected(host, state.step);
    if (state.came[state.step] < expected_) return;
    if (++state.step < steps_) return begin_step(host, now);
    state.done = true;
    const unsigned group = host % groups_;
    if (--left_[group] == 0) ended_[group] = now;
    look_whether_finished(now);
  }

  std::unique_ptr<Schedule> schedule_;
  std::uint64_t size_;
  unsigned groups_, ranks_, steps_;
  bool connects_first_;
  std::vector<State> states_;
  std::vector<Nanos> ended_;
  std::vector<unsigned> left_;
  std::vector<unsigned> step_of_;       // of flows()
  std::uint32_t expected_ = 0;          // transfers that come to a rank in a step: the same for all
  Nanos started_ = 0, start_ = kNever;  // as a workload; its first step
};

enum class Kind : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll };
constexpr std::string_view kAlgorithms[] = {"ring", "halving_doubling"};

template <Kind kKind>
class CollectiveOptions final : public WorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("size", size_, {1, std::uint64_t{1} << 40}, "bytes of each host's buffer");
    f.fraction("scale", scale_, {1e-9, 1}, "share of `size` that is really sent: the same on a smaller scale");
    f.integer("groups", groups_, {1, 1 << 16},
              "groups of as many hosts each, which do the same side by side; hosts of one "
              "group lie so many places apart");
    if constexpr (kKind == Kind::kAllReduce)
      f.choice("algorithm", algorithm_, kAlgorithms,
               "ring, or recursive halving and doubling among 2, 4, 8, ... hosts");
    mesh_.fields(f);
  }
  Range<std::int64_t> hosts() const override { return {2 * groups_, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    const auto groups = static_cast<std::size_t>(groups_);
    if (hosts.size() % groups) throw ConfigError("`hosts` are not a multiple of its `groups`");
    if (algorithm_ == 1 && !std::has_single_bit(hosts.size() / groups))
      throw ConfigError("halving and doubling needs 2, 4, 8, ... hosts a group");
    return std::make_unique<Collective>(hosts, mesh_, schedule(), bytes(), static_cast<unsigned>(groups_));
  }

 private:
  std::unique_ptr<Schedule> schedule() const {
    if (kKind == Kind::kAllToAll) return std::make_unique<AllToAllSchedule>();
    if (algorithm_ == 1) return std::make_unique<HalvingDoublingSchedule>();
    return std::make_unique<RingSchedule>(kKind == Kind::kAllReduce ? 2 : 1);
  }
  std::uint64_t bytes() const {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(static_cast<double>(size_) * scale_)));
  }
  std::uint64_t size_ = 1 << 20;
  double scale_ = 1;
  std::int64_t groups_ = 1;
  int algorithm_ = 0;
  MeshOptions mesh_;
};

}  // namespace
}  // namespace rocebox::nic_model

std::span<const rocebox::Component> rocebox::nic_workloads() {
  using namespace nic_model;
  static const std::vector<Component> rows = [] {
    std::vector<Component> all = flow_workloads();
    const Component others[] = {
        poisson_workload(),
        workload_component<CollectiveOptions<Kind::kAllReduce>>("all_reduce",
                                                                "AllReduce by ring, or by halving and doubling"),
        workload_component<CollectiveOptions<Kind::kAllGather>>("all_gather", "ring Allgather"),
        workload_component<CollectiveOptions<Kind::kReduceScatter>>("reduce_scatter", "ring ReduceScatter"),
        workload_component<CollectiveOptions<Kind::kAllToAll>>("all_to_all", "each host sends a part to each other"),
    };
    all.insert(all.end(), std::begin(others), std::end(others));
    const std::vector<Component> perftest = perftest_workloads();
    all.insert(all.end(), perftest.begin(), perftest.end());
    return all;
  }();
  return rows;
}
