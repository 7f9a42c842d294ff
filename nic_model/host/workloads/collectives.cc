// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/collectives.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "nic_model/host/workloads/flow_list.h"
#include "nic_model/host/workloads/mesh_workload.h"
#include "nic_model/host/workloads/perftest.h"
#include "nic_model/host/workloads/poisson.h"
#include "nic_model/host/workloads/programs.h"
#include "nic_model/host/workloads/schedules.h"
#include "runtime/kernel/collectives.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::nic_model {

namespace {

class Collective final : public MeshWorkload, public CollectiveTimes {
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
    host_of_.resize(states_.size());
    std::iota(host_of_.begin(), host_of_.end(), 0u);
    find_ranks();
  }
  /// Queue pairs that each rank is sure to need: one for each it sends to, and one for each that sends to it. Nothing
  /// where finding out would take long.
  std::vector<std::uint64_t> queue_pairs_of_ranks() const {
    constexpr std::size_t kLooksMax = std::size_t{1} << 23;
    std::vector<std::uint64_t> needed(ranks_);
    std::vector<unsigned> seen_by(ranks_, UINT32_MAX);
    std::vector<Schedule::Send> sends;
    std::size_t looks = 0;
    for (unsigned rank = 0; rank < ranks_; rank++)
      for (unsigned step = 0; step < steps_; step++) {
        sends.clear();
        schedule_->sends(rank, ranks_, step, size_, sends);
        if ((looks += sends.size() + 1) > kLooksMax) return {};
        for (const Schedule::Send& send : sends) {
          if (std::exchange(seen_by[send.to], rank) == rank) continue;
          needed[rank]++;
          needed[send.to]++;
        }
      }
    return needed;
  }
  unsigned rank_of(unsigned host) const { return rank_of_[host]; }
  /// Gives each group's hosts their ranks in an order of its own. Before start().
  void shuffle(std::uint64_t seed) {
    for (unsigned group = 0; group < groups_; group++)
      for (unsigned left = ranks_; left > 1; left--) {
        const auto other = static_cast<unsigned>(splitmix64::next(seed) % left);
        std::swap(host_of_[(left - 1) * groups_ + group], host_of_[other * groups_ + group]);
      }
    find_ranks();
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
    if (connects_first_)
      report.result("connected_after", start_ != kNever ? std::optional(start_ - started_) : std::nullopt);
    report.table("groups", groups_, [&](Report& row, std::size_t i) {
      row.count("group_number", static_cast<std::int64_t>(i));
      row.result("completion_time", ended_[i] != kNever ? std::optional(ended_[i] - start_) : std::nullopt);
    });
  }

  std::size_t collectives() const override { return groups_; }
  Times collective(std::size_t number) const override { return {start_, ended_[number]}; }
  // Along the longest chain of transfers, of which each waits for another one. Where a rank sends or gets several at
  // once they share its wire: then a chain of transfers that are each alone says little.
  double least_nanos(std::size_t number, const Alone& alone) const override {
    struct Transfer {
      unsigned to = UINT32_MAX;
      std::uint64_t bytes = 0;
      double nanos = 0;
    };
    const auto group = static_cast<unsigned>(number);
    std::vector<Transfer> last(ranks_);  // by rank: in a ring all are alike
    std::vector<double> begins(ranks_), next;
    std::vector<Schedule::Send> sends;
    for (unsigned step = 0; step < steps_; step++) {
      next = begins;
      for (unsigned rank = 0; rank < ranks_; rank++) {
        sends.clear();
        schedule_->sends(rank, ranks_, step, size_, sends);
        if (sends.size() > 1 || schedule_->receives(rank, ranks_, step) > 1) return 0;
        if (sends.empty()) continue;
        const auto& [to, bytes] = sends.front();
        Transfer& one = last[rank];
        if (one.to != to || one.bytes != bytes)
          one = {to, bytes, alone(host_of(group, rank), host_of(group, to), bytes)};
        if (one.nanos <= 0) return 0;
        next[to] = std::max(next[to], begins[rank] + one.nanos);
        if (schedule_->waits_for_sends()) next[rank] = std::max(next[rank], begins[rank] + one.nanos);
      }
      begins.swap(next);
    }
    return *std::ranges::max_element(begins);
  }

 protected:
  void on_received(std::size_t number, Nanos now) override {
    const FlowRecord flow = flows()[number];  // of which there may be more in a moment
    State& state = states_[flow.destination];
    state.came[step_of_[number]]++;
    try_next(flow.destination, now);
    if (!schedule_->waits_for_sends()) return;
    if (--states_[flow.source].leaving > 0) return;
    mesh_.call(flow.source, 0, [this, host = flow.source](Nanos at) { try_next(host, at); });
  }
  bool all_begun() const override {
    return std::ranges::all_of(left_, [](unsigned left) { return left == 0; });
  }
  // Every group sends the same.
  double bytes_in_all() const override {
    if (bytes_in_all_ > 0) return bytes_in_all_;
    std::vector<Schedule::Send> sends;
    for (unsigned rank = 0; rank < ranks_; rank++)
      for (unsigned step = 0; step < steps_; step++) {
        sends.clear();
        schedule_->sends(rank, ranks_, step, size_, sends);
        for (const Schedule::Send& send : sends) bytes_in_all_ += static_cast<double>(send.bytes) * groups_;
      }
    return bytes_in_all_;
  }

 private:
  struct State {
    unsigned step = 0;     // that was begun
    unsigned leaving = 0;  // of its sends, where the next step waits for them
    bool begun = false, done = false;
    std::vector<std::uint32_t> came;  // by step
  };
  // Hosts of one group lie `groups_` apart: where hosts are listed by rack, every rack has one in each group.
  unsigned host_of(unsigned group, unsigned rank) const { return host_of_[rank * groups_ + group]; }
  void find_ranks() {
    rank_of_.resize(host_of_.size());
    for (unsigned place = 0; place < host_of_.size(); place++) rank_of_[host_of_[place]] = place / groups_;
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
    state.leaving = static_cast<unsigned>(sends.size());
    for (const Schedule::Send& send : sends) {
      step_of_.push_back(state.step);
      mesh_.transfer(host, host_of(host % groups_, send.to), send.bytes, now);
    }
    try_next(host, now);
  }
  void try_next(unsigned host, Nanos now) {
    State& state = states_[host];
    if (!state.begun || state.done || (schedule_->waits_for_sends() && state.leaving > 0)) return;
    if (state.came[state.step] < schedule_->receives(rank_of(host), ranks_, state.step)) return;
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
  std::vector<unsigned> step_of_;            // of flows()
  std::vector<unsigned> host_of_, rank_of_;  // by rank, group after group in each; by host
  Nanos started_ = 0, start_ = kNever;       // as a workload; its first step
  mutable double bytes_in_all_ = 0;          // once somebody has asked: it takes a while
};

enum class Kind : std::uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
constexpr std::string_view kRanks[] = {"in_order", "shuffled"};
constexpr std::string_view kReduceAlgorithms[] = {"ring", "halving_doubling"};
constexpr std::string_view kGatherAlgorithms[] = {"ring", "linear", "recursive_doubling"};
constexpr std::string_view kExchangeAlgorithms[] = {"linear", "pairwise"};
constexpr std::string_view kBroadcastAlgorithms[] = {"k_nomial", "binary_tree"};

template <Kind kKind>
class CollectiveOptions final : public MeshWorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("size", size_, {1, std::uint64_t{1} << 40}, "bytes of each host's buffer");
    f.fraction("scale", scale_, {1e-9, 1}, "share of `size` that is really sent: the same on a smaller scale");
    f.integer("groups", groups_, {1, 1 << 16},
              "groups of as many hosts each, which do the same side by side; hosts of one "
              "group lie so many places apart");
    f.choice(
        "ranks", ranks_, kRanks,
        "in_order: within a group hosts have their ranks as they stand; shuffled: in an order of each group's own, "
        "by the seed");
    if constexpr (kKind == Kind::kAllReduce)
      f.choice("algorithm", algorithm_, kReduceAlgorithms,
               "ring, or recursive halving and doubling among 2, 4, 8, ... hosts");
    if constexpr (kKind == Kind::kAllGather)
      f.choice(
          "algorithm", algorithm_, kGatherAlgorithms,
          "ring; linear, in which each sends its part to each other; or recursive doubling among 2, 4, 8, ... hosts");
    if constexpr (kKind == Kind::kAllToAll)
      f.choice("algorithm", algorithm_, kExchangeAlgorithms,
               "linear, in which each sends to all others at once; or pairwise: in step k to the one k places further");
    if constexpr (kKind == Kind::kBroadcast) {
      f.choice("algorithm", algorithm_, kBroadcastAlgorithms, "k_nomial tree, or a binary tree");
      f.integer("radix", radix_, {2, 64}, "k of the k-nomial tree");
      f.integer("segments", segments_, {1, 4096}, "of the binary tree: parts that follow each other down the tree");
    }
    mesh_.fields(f);
  }
  Range<std::int64_t> hosts() const override { return {2 * groups_, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    const auto groups = static_cast<std::size_t>(groups_);
    if (hosts.size() % groups) throw ConfigError("`hosts` are not a multiple of its `groups`");
    const bool doubles = kKind == Kind::kAllReduce ? algorithm_ == 1 : kKind == Kind::kAllGather && algorithm_ == 2;
    if (doubles && !std::has_single_bit(hosts.size() / groups))
      throw ConfigError("halving and doubling needs 2, 4, 8, ... hosts a group");
    std::vector<std::vector<WorkloadHost>> of_group(groups);
    for (std::size_t i = 0; i < hosts.size(); i++) of_group[i % groups].push_back(hosts[i]);
    for (const auto& ranks : of_group) require_all_peers(ranks, &mesh_.recovery);
    auto made = std::make_unique<Collective>(hosts, mesh_, schedule(), bytes(), static_cast<unsigned>(groups_));
    if (ranks_ == 1) made->shuffle(seed);
    if (const std::vector<std::uint64_t> needed = made->queue_pairs_of_ranks(); !needed.empty()) {
      std::vector<std::uint64_t> counts;
      for (unsigned i = 0; i < hosts.size(); i++) counts.push_back(needed[made->rank_of(i)]);
      plan_queue_pairs(hosts, counts);
    }
    return made;
  }

 private:
  std::unique_ptr<Schedule> schedule() const {
    switch (kKind) {
      case Kind::kAllReduce:
        return algorithm_ == 0 ? ring_schedule(2) : halving_doubling_schedule();
      case Kind::kAllGather:
        return algorithm_ == 0 ? ring_schedule(1) : algorithm_ == 1 ? linear_gather_schedule() : doubling_schedule();
      case Kind::kReduceScatter:
        return ring_schedule(1);
      case Kind::kAllToAll:
        return algorithm_ == 0 ? all_to_all_schedule() : pairwise_schedule();
      case Kind::kBroadcast:
        return algorithm_ == 0 ? k_nomial_schedule(static_cast<unsigned>(radix_))
                               : binary_tree_schedule(static_cast<unsigned>(segments_));
    }
    return nullptr;
  }
  std::uint64_t bytes() const {
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(static_cast<double>(size_) * scale_)));
  }
  std::uint64_t size_ = 1 << 20;
  double scale_ = 1;
  std::int64_t groups_ = 1;
  std::int64_t radix_ = 2, segments_ = 1;
  int algorithm_ = 0, ranks_ = 0;
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
        workload_component<CollectiveOptions<Kind::kAllGather>>("all_gather",
                                                                "Allgather by ring, linear, or by recursive doubling"),
        workload_component<CollectiveOptions<Kind::kReduceScatter>>("reduce_scatter", "ring ReduceScatter"),
        workload_component<CollectiveOptions<Kind::kBroadcast>>(
            "broadcast", "Broadcast from the first host of a group down a k-nomial or binary tree"),
        workload_component<CollectiveOptions<Kind::kAllToAll>>("all_to_all", "each host sends a part to each other"),
    };
    all.insert(all.end(), std::begin(others), std::end(others));
    const std::vector<Component> perftest = perftest_workloads();
    all.insert(all.end(), perftest.begin(), perftest.end());
    return all;
  }();
  return rows;
}
