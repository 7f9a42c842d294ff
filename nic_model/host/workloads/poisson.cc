// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/poisson.h"

#include <algorithm>
#include <cmath>

#include "nic_model/host/workloads/flow_files.h"
#include "nic_model/host/workloads/mesh_workload.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/rate_queue.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::nic_model {
namespace {

// Transfers of one workload: their records take 200 MiB. Then no more arrive, which the report says.
constexpr std::size_t kTransfersMax = std::size_t{1} << 22;

// At each host transfers arrive as a Poisson process, each to another host, all alike.
class Poisson final : public MeshWorkload {
 public:
  /// `gap`: the mean of nanoseconds between two of one host. `duration` 0: for ever.
  Poisson(std::span<const WorkloadHost> hosts, const MeshOptions& options, const SizeDistribution& sizes, double gap,
          Nanos duration, std::uint64_t seed)
      : MeshWorkload(hosts, options), sizes_(sizes), gap_(gap), duration_(duration), active_(hosts.size()) {
    for (std::size_t i = 0; i < hosts.size(); i++) states_.push_back(splitmix64::next(seed));
  }
  void start(Nanos now) override {
    began(now);
    end_ = duration_ ? now + duration_ : kNever;
    for (unsigned host = 0; host < states_.size(); host++) next(host, now);
  }
  void report(Report& report) const override {
    MeshWorkload::report(report);
    report.count("arrivals_refused", static_cast<std::int64_t>(refused_));
  }

 protected:
  void on_received(std::size_t, Nanos) override {}
  bool all_begun() const override { return active_ == 0; }

 private:
  // From 0 to below 1.
  double draw(unsigned host) { return static_cast<double>(splitmix64::next(states_[host]) >> 11) * 0x1p-53; }

  void next(unsigned host, Nanos now) {
    const Nanos at = now + std::max<Nanos>(1, std::llround(-std::log1p(-draw(host)) * gap_));
    if (at <= end_) return mesh_.call(host, at, [this, host](Nanos due) { arrive(host, due); });
    active_--;
    look_whether_finished(now);
  }
  void arrive(unsigned host, Nanos now) {
    const auto others = static_cast<double>(states_.size() - 1);
    const auto step = 1 + static_cast<unsigned>(draw(host) * others);
    const std::uint64_t bytes = sizes_.at(draw(host));
    if (flows().size() < kTransfersMax) {
      mesh_.transfer(host, (host + step) % static_cast<unsigned>(states_.size()), bytes, now);
    } else {
      refused_++;
      end_ = now;
    }
    next(host, now);
  }

  const SizeDistribution& sizes_;
  double gap_;
  Nanos duration_, end_ = 0;
  std::size_t active_;                 // hosts at which more arrive
  std::vector<std::uint64_t> states_;  // by host, of its draws
  std::uint64_t refused_ = 0;
};

class PoissonOptions final : public MeshWorkloadOptions {
 public:
  PoissonOptions() { mesh_.connections = kConnectionsOfAPair; }
  void fields(Fields& f) override {
    f.fraction("load", load_, {0.001, 1}, "payload that arrives at each host, as a share of its link's rate");
    f.file("sizes", file_,
           "the cumulative distribution of sizes: lines `BYTES SHARE`, such as those in configs/sim/sizes");
    f.rate("rate", rate_, {0, kRateMax}, "the link's rate; 0: that of the hosts' NICs");
    f.duration("duration", duration_, {0, 3600 * kSecond},
               "time in which transfers arrive; 0: for ever, as for a workload that is `background: true`");
    mesh_.fields(f);
    if (file_.path.empty()) f.refuse("sizes", "must be given: a file");
    if (!file_.is_read) return;
    sizes_ = SizeDistribution::parse(file_.text, [&](int line, int column, const std::string& why) {
      f.refuse_in("sizes", file_, line, column, why);
    });
  }
  Range<std::int64_t> hosts() const override { return {2, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    if (sizes_.empty()) throw ConfigError("its `sizes` were not read");
    std::uint64_t rate = rate_;
    require_all_peers(hosts, &mesh_.recovery);
    for (const WorkloadHost& host : hosts) {
      const auto* nic = dynamic_cast<const Host*>(host.side);
      if (rate_ != 0 || !nic) continue;  // without a NIC it cannot be made, which the mesh says
      if (rate != 0 && nic->config().rate != rate)
        throw ConfigError("its hosts have links of different rates: give it `rate:`");
      rate = nic->config().rate;
    }
    if (rate == 0) throw ConfigError("its hosts' NICs have no `rate:`, and neither has it");
    const double gap = sizes_.mean() * 8e9 / (static_cast<double>(rate) * load_);
    return std::make_unique<Poisson>(hosts, mesh_, sizes_, gap, duration_, seed);
  }

 private:
  double load_ = 0.3;
  InputFile file_;
  SizeDistribution sizes_;
  std::uint64_t rate_ = 0;
  Nanos duration_ = 10 * kMillisecond;
};

}  // namespace

Component poisson_workload() {
  return workload_component<PoissonOptions>("poisson",
                                            "transfers that arrive by chance: a load, and sizes of a distribution");
}

}  // namespace rocebox::nic_model
