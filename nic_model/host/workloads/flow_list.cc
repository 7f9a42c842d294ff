// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/flow_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "nic_model/host/workloads/flow_files.h"
#include "nic_model/host/workloads/mesh_workload.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/kernel/splitmix64.h"

namespace rocebox::nic_model {
namespace {

/// One transfer of a list.
struct FlowLine {
  std::int64_t source = 0, destination = 1;
  std::uint64_t bytes = 1 << 20;
  Nanos start = 0;
  std::uint32_t trigger = 0, fires[2]{};  ///< as in FileFlow
  void fields(Fields& f) {
    f.integer("source", source, {0, 1 << 20}, "place of the sender in `hosts`, from 0");
    f.integer("destination", destination, {0, 1 << 20}, "place of the receiver");
    f.bytes("bytes", bytes, {1, std::uint64_t{1} << 40}, "its length");
    f.duration("start", start, {0, 3600 * kSecond}, "when it begins, after the workload");
  }
};

// Queue pairs that hosts are sure to need: of each pair of them as many as transfers begin in one instant, and one at
// least. Those that begin at other times may find an idle one.
std::vector<std::uint64_t> queue_pairs_of_hosts(const std::vector<FlowLine>& lines, std::size_t hosts,
                                                std::int64_t connections) {
  std::vector<std::tuple<std::int64_t, std::int64_t, Nanos>> begins;
  for (const FlowLine& line : lines)
    begins.emplace_back(line.source, line.destination, line.trigger != 0 ? kNever : line.start);
  std::ranges::sort(begins);
  std::vector<std::uint64_t> needed(hosts);
  for (std::size_t i = 0; i < begins.size();) {
    const auto [source, destination, first] = begins[i];
    std::int64_t most = 1, together = 0;
    Nanos instant = first;
    for (; i < begins.size() && std::get<0>(begins[i]) == source && std::get<1>(begins[i]) == destination; i++) {
      const Nanos begin = std::get<2>(begins[i]);
      together = begin == std::exchange(instant, begin) ? together + 1 : 1;
      if (begin != kNever) most = std::max(most, std::min(together, connections));
    }
    needed[static_cast<std::size_t>(source)] += static_cast<std::uint64_t>(most);
    needed[static_cast<std::size_t>(destination)] += static_cast<std::uint64_t>(most);
  }
  return needed;
}

// Transfers that begin in their time, or when others have ended.
class FlowList final : public MeshWorkload {
 public:
  FlowList(std::span<const WorkloadHost> hosts, const MeshOptions& options, std::vector<FlowLine> lines,
           const std::vector<FileTrigger>& triggers = {})
      : MeshWorkload(hosts, options), lines_(std::move(lines)), triggers_(triggers.size()) {
    for (const FlowLine& line : lines_) {
      bytes_in_all_ += static_cast<double>(line.bytes);
      require_peers(hosts[static_cast<std::size_t>(line.source)], hosts[static_cast<std::size_t>(line.destination)],
                    &options.recovery);
    }
    plan_queue_pairs(hosts, queue_pairs_of_hosts(lines_, hosts.size(), options.connections));
    for (std::size_t i = 0; i < triggers.size(); i++) triggers_[i].needed = triggers[i].needed;
    for (std::size_t i = 0; i < lines_.size(); i++)
      if (lines_[i].trigger != 0) triggers_[lines_[i].trigger - 1].lines.push_back(i);
  }
  void start(Nanos now) override {
    began(now);
    for (std::size_t i = 0; i < lines_.size(); i++)
      if (lines_[i].trigger == 0) begin(i, lines_[i].start ? now + lines_[i].start : 0);
    look_whether_finished(now);
  }

  bool hosts_act_alone() const override { return all_begun() && mesh_.is_connected(); }

 protected:
  void on_received(std::size_t number, Nanos) override {
    for (const std::uint32_t fires : lines_[line_of_[number]].fires) {
      if (fires == 0) continue;
      Trigger& trigger = triggers_[fires - 1];
      if (trigger.needed == 0 || --trigger.needed > 0) continue;
      for (const std::size_t line : trigger.lines) begin(line, 0);
    }
  }
  bool all_begun() const override { return line_of_.size() == lines_.size(); }
  double bytes_in_all() const override { return bytes_in_all_; }

 private:
  struct Trigger {
    std::uint32_t needed = 1;
    std::vector<std::size_t> lines;
  };
  void begin(std::size_t line, Nanos at) {
    mesh_.call(static_cast<unsigned>(lines_[line].source), at, [this, line](Nanos now) {
      const FlowLine& one = lines_[line];
      line_of_.push_back(line);
      mesh_.transfer(static_cast<unsigned>(one.source), static_cast<unsigned>(one.destination), one.bytes, now);
    });
  }

  std::vector<FlowLine> lines_;
  std::vector<Trigger> triggers_;
  std::vector<std::size_t> line_of_;  // of flows()
  double bytes_in_all_ = 0;
};

// Which host a node of a file is: `hN` where all hosts are called so, else the one at place N.
class NodesOfFile {
 public:
  explicit NodesOfFile(std::span<const WorkloadHost> hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts.size(); i++) {
      std::uint32_t number = 0;
      const std::string& name = hosts[i].name;
      if (!name.starts_with('h') || !number_of(std::string_view(name).substr(1), number)) {
        by_number_.clear();
        return;
      }
      by_number_.emplace(number, i);
    }
  }
  std::int64_t place(std::uint32_t node, const std::string& file, int line) const {
    const auto found = by_number_.find(node);
    if (found != by_number_.end()) return static_cast<std::int64_t>(found->second);
    if (!by_number_.empty())
      throw ConfigError(fmt::format("{}:{}: there is no host `h{}`: the workload runs on {}, `{}` to `{}`", file, line,
                                    node, hosts_.size(), hosts_.front().name, hosts_.back().name));
    if (node < hosts_.size()) return node;
    throw ConfigError(fmt::format("{}:{}: node {} has no host: the workload runs on {}, for nodes from 0 on", file,
                                  line, node, hosts_.size()));
  }

 private:
  std::span<const WorkloadHost> hosts_;
  std::unordered_map<std::uint32_t, std::size_t> by_number_;
};

class FlowsOptions final : public MeshWorkloadOptions {
 public:
  FlowsOptions() { mesh_.connections = kConnectionsOfAPair; }
  void fields(Fields& f) override {
    f.list("flows", lines_, 1 << 16, "the transfers");
    f.file(
        "htsim", htsim_,
        "transfers of a connection matrix of htsim (.cm); node N is host `hN`, or the one at place N; its `prio` says "
        "nothing: all have `traffic_class`");
    f.file("ns3", ns3_,
           "transfers of a flow file of HPCC's or ConWeave's ns-3 simulators, in the same way; its priority groups say "
           "nothing");
    mesh_.fields(f);
    const int given = !lines_.empty() + !htsim_.path.empty() + !ns3_.path.empty();
    if (given > 1) f.refuse(ns3_.path.empty() ? "htsim" : "ns3", "is a second list: give `flows`, `htsim` or `ns3`");
    if (htsim_.is_read)
      file_ = parse_connection_matrix(htsim_.text, [&](int line, int column, const std::string& why) {
        f.refuse_in("htsim", htsim_, line, column, why);
      });
    if (ns3_.is_read)
      file_ = parse_ns3_flows(ns3_.text, [&](int line, int column, const std::string& why) {
        f.refuse_in("ns3", ns3_, line, column, why);
      });
    htsim_.text.clear();
    ns3_.text.clear();
    for (const FlowLine& line : lines_)
      if (line.source == line.destination) f.refuse("flows", "has a transfer from a host to itself");
  }
  Range<std::int64_t> hosts() const override { return {2, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    if (file_.flows.empty()) {
      for (std::size_t i = 0; i < lines_.size(); i++) {
        require_place("source", lines_[i].source, i, hosts);
        require_place("destination", lines_[i].destination, i, hosts);
      }
      return std::make_unique<FlowList>(hosts, mesh_, lines_);
    }
    const NodesOfFile nodes(hosts);
    const std::string& name = htsim_.path.empty() ? ns3_.path : htsim_.path;
    std::vector<FlowLine> lines;
    lines.reserve(file_.flows.size());
    for (const FileFlow& flow : file_.flows)
      lines.push_back({nodes.place(flow.source, name, flow.line),
                       nodes.place(flow.destination, name, flow.line),
                       flow.bytes,
                       flow.start,
                       flow.trigger,
                       {flow.fires[0], flow.fires[1]}});
    return std::make_unique<FlowList>(hosts, mesh_, std::move(lines), file_.triggers);
  }

 private:
  static void require_place(const char* option, std::int64_t place, std::size_t line,
                            std::span<const WorkloadHost> hosts) {
    if (place < static_cast<std::int64_t>(hosts.size())) return;
    throw ConfigError(fmt::format(
        "`{}: {}` of entry {} of `flows` is no place in its `hosts`: there are {}, counted from 0, `{}` to `{}`",
        option, place, line + 1, hosts.size(), hosts.front().name, hosts.back().name));
  }

  std::vector<FlowLine> lines_;
  InputFile htsim_, ns3_;
  FlowFile file_;
};

constexpr std::string_view kOrders[] = {"ring", "random"};

// Every host sends to one other, and receives from one.
class PermutationOptions final : public MeshWorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("size", size_, {1, std::uint64_t{1} << 40}, "bytes that each host sends");
    f.choice("order", order_, kOrders,
             "ring: to the host `shift` places on; random: drawn from the seed, none to itself");
    f.integer("shift", shift_, {1, 1 << 20}, "places on the ring; no multiple of the number of hosts");
    mesh_.fields(f);
  }
  Range<std::int64_t> hosts() const override { return {2, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t seed) const override {
    const auto count = static_cast<std::int64_t>(hosts.size());
    if (order_ == 0 && shift_ % count == 0)
      throw ConfigError(fmt::format("`shift: {}` on a ring of {} hosts leads each host to itself, and nothing is sent",
                                    shift_, count));
    std::vector<std::int64_t> to(hosts.size());
    for (std::int64_t i = 0; i < count; i++) to[static_cast<std::size_t>(i)] = i;
    // One cycle through all hosts (Sattolo): nobody sends to himself.
    for (std::size_t i = hosts.size() - 1; order_ == 1 && i > 0; i--)
      std::swap(to[i], to[static_cast<std::size_t>(splitmix64::next(seed) % i)]);
    std::vector<FlowLine> lines;
    for (std::int64_t i = 0; i < count; i++) {
      const std::int64_t other = order_ == 1 ? to[static_cast<std::size_t>(i)] : (i + shift_) % count;
      lines.push_back({i, other, size_});
    }
    return std::make_unique<FlowList>(hosts, mesh_, std::move(lines));
  }

 private:
  std::uint64_t size_ = 1 << 20;
  int order_ = 0;
  std::int64_t shift_ = 1;
};

// All but the first send to the first.
class IncastOptions final : public MeshWorkloadOptions {
 public:
  void fields(Fields& f) override {
    f.bytes("size", size_, {1, std::uint64_t{1} << 40}, "bytes that each sender sends");
    mesh_.fields(f);
  }
  Range<std::int64_t> hosts() const override { return {2, 1 << 20}; }
  std::unique_ptr<Workload> make(std::span<const WorkloadHost> hosts, std::uint64_t) const override {
    std::vector<FlowLine> lines;
    for (std::size_t i = 1; i < hosts.size(); i++) lines.push_back({static_cast<std::int64_t>(i), 0, size_});
    return std::make_unique<FlowList>(hosts, mesh_, std::move(lines));
  }

 private:
  std::uint64_t size_ = 1 << 20;
};

constexpr Example kFlowsExample[] = {{"two transfers", "flows:\n  - {source: 0, destination: 1, bytes: 1MiB}\n"},
                                     {nullptr, nullptr}};

}  // namespace

std::vector<Component> flow_workloads() {
  return {workload_component<FlowsOptions>("flows", "transfers from a list, each at its time", kFlowsExample),
          workload_component<PermutationOptions>("permutation", "every host sends to one other"),
          workload_component<IncastOptions>("incast", "all hosts send to the first")};
}

}  // namespace rocebox::nic_model
