// SPDX-License-Identifier: BSD-3-Clause
// Runs a network in the virtual drive, as `rocebox sim` does, and judges its report.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/drives/virtual/sim.h"
#include "tests/swarm/fabric.h"

namespace rocebox::swarm {
namespace {

// Beyond so many a run is one that does not end: what is drawn needs a tenth of it.
constexpr std::uint64_t kEventsMax = 4'000'000;
constexpr std::size_t kShownMax = 8;

struct FabricRun {
  Json report;
  std::vector<std::string> warnings;
  std::uint32_t in_use = 0;  // packets of the pool, when the run was over
};

FabricRun run_fabric(const FabricScenario& scenario, Pool& pool) {
  StopRequest stop;
  SimOptions options;
  options.stop = &stop;
  options.progress = [&stop](const SimProgress& progress) {
    if (progress.events > kEventsMax) stop.request();
  };
  Sim sim(scenario.config, pool, options);
  sim.open();
  sim.run();
  FabricRun run{sim.report(), sim.warnings(), pool.in_use()};
  run.report["run"].erase("pool_packets_max");  // of all runs so far
  return run;
}

class FabricJudge {
 public:
  FabricJudge(const FabricScenario& scenario, const FabricRun& run) : scenario_(scenario), run_(run) {
    for (const auto& [name, device] : run.report["devices"].items()) add_up(device);
    lost_ += dropped_by_gateways_ - std::min(dropped_by_gateways_, made_by_gateways_);
    for (const auto& [name, link] : run.report["links"].items())
      for (const auto& [counter, value] : link["counters"].items())
        if (counter.find("drop_") != std::string::npos) lost_ += value.get<std::uint64_t>();
  }

  std::vector<std::string> all() {
    books();
    end();
    contents();
    if (is_clean()) clean();
    return std::move(mistakes_);
  }
  // Nothing on the way takes packets, and nobody is in a hurry.
  bool is_clean() const {
    const FabricPromises& promised = scenario_.promises;
    return promised.faultless && promised.patient && lost_ == 0;
  }
  // Somebody has given up, as verbs and RDMA CM have it.
  bool gave_up() const {
    bool any = count("req_transport_retries_exceeded") > 0 || count("unresolved_neighbors") > 0;
    for (const auto& [name, workload] : run_.report["workloads"].items())
      any = any || !workload["details"].value("error", "").empty();
    return any;
  }

 private:
  using Counts = std::map<std::string, std::uint64_t>;
  // A NIC's counters; of a switch what it drops; and of what gateways drop what no gateway has made: repair packets end
  // at the other one.
  void add_up(const Json& device) {
    const auto dropped = device["counters"]["packets_dropped"].get<std::uint64_t>();
    std::string type;
    for (const auto& [name, kernel] : device["kernels"].items()) {
      type = kernel["type"];
      if (type != "nic") continue;
      for (const auto& [counter, value] : kernel["counters"].items()) nics_[counter] += value.get<std::uint64_t>();
    }
    if (type == "switch") lost_ += dropped;
    if (type == "nic" || type == "switch") return;
    dropped_by_gateways_ += dropped;
    made_by_gateways_ += device["counters"]["packets_made"].get<std::uint64_t>();
  }
  std::uint64_t count(const std::string& name) const {
    const auto found = nics_.find(name);
    if (found == nics_.end()) throw std::logic_error("NICs have no counter " + name);
    return found->second;
  }

  template <class... T>
  void mistake(fmt::format_string<T...> text, T&&... values) {
    if (mistakes_.size() < kShownMax) mistakes_.push_back(fmt::format(text, std::forward<T>(values)...));
  }
  void expect_zero(std::initializer_list<const char*> names, const char* why) {
    for (const char* name : names)
      if (const std::uint64_t value = count(name); value != 0) mistake("{} is {}: {}", name, value, why);
  }

  // What leaves one device comes to another, in the same instant: links are devices, too.
  void books() {
    std::uint64_t in = 0, out = 0, held = 0, replicated = 0;
    const auto add = [&](const Json& counters) {
      in += counters["packets_in"].get<std::uint64_t>();
      out += counters["packets_out"].get<std::uint64_t>();
    };
    for (const auto& [name, device] : run_.report["devices"].items()) {
      add(device["counters"]);
      held += device["counters"]["packets_held"].get<std::uint64_t>();
      for (const auto& [kernel, values] : device["kernels"].items())
        replicated += values["counters"].value("replicated", std::uint64_t{0});
    }
    for (const auto& [name, link] : run_.report["links"].items()) {
      const Json& counters = link["counters"];
      held += counters["packets_held"].get<std::uint64_t>();
      for (const char* side : {"forward", "reverse"}) {
        in += counters[std::string(side) + "_packets"].get<std::uint64_t>();
        out += counters[std::string(side) + "_delivered"].get<std::uint64_t>();
      }
    }
    const auto left = run_.report["run"]["packets_out"].get<std::uint64_t>();
    if (in + left != out) mistake("devices and links say in {}, out {}, of which {} left the network", in, out, left);
    if (run_.in_use < held || run_.in_use > held + std::min(held, replicated))
      mistake("{} packets are held, but {} of the pool are in use", held, run_.in_use);
    if (held != run_.report["run"]["held_at_end"].get<std::uint64_t>()) mistake("held_at_end is not {}", held);
  }

  void end() {
    const std::string end = run_.report["run"]["end"];
    const bool finished = end == "all workloads had finished";
    // Timers shorter than what they wait for can fill a slow link with what was asked for again and again.
    if (run_.report["run"]["interrupted"].get<bool>()) {
      if (scenario_.promises.patient) mistake("more than {} events, and no end", kEventsMax);
      return;
    }
    const bool explained = gave_up() || (!scenario_.promises.reliable && !is_clean()) || !scenario_.promises.genuine;
    if (!finished && !explained) mistake("{}, and nobody gave up", end);
    for (const std::string& line : run_.warnings) {
      const bool stays =
          line.find("no timer would let them go") != std::string::npos ||
          (line.find("holds") != std::string::npos && end == "nothing advanced any more" && nothing_due());
      // Hosts whose peers never answer may ask for ever.
      const bool goes_on =
          line.find("longer `drain:`") != std::string::npos && (scenario_.promises.reliable || is_clean());
      if (stays || goes_on || (!finished && !explained)) mistake("{}", line);
    }
  }
  bool nothing_due() const {
    return std::ranges::any_of(
        run_.warnings, [](const std::string& line) { return line.find("nothing is due") != std::string::npos; });
  }

  // Every byte is where it belongs, and no request was refused: nobody asks for what is not his.
  void contents() {
    if (!scenario_.promises.genuine) return;
    for (const auto& [name, workload] : run_.report["workloads"].items())
      for (const char* what : {"misplaced", "mismatches", "unexpected_messages"})
        if (const auto value = workload["details"].value(what, std::int64_t{0}); value != 0)
          mistake("workload {}: {} is {}", name, what, value);
    expect_zero({"req_remote_invalid_request", "req_remote_access_errors", "req_remote_operation_errors",
                 "resp_invalid_requests", "resp_remote_access_errors", "resp_local_length_error", "cq_overruns",
                 "drop_bad_pkey"},
                "no workload asks for what cannot be had");
    if (scenario_.promises.keyed) expect_zero({"drop_bad_qkey"}, "nobody's group has another's Q_Key");
    if (scenario_.promises.apart) expect_zero({"drop_wrong_service"}, "nobody's peer has another service");
  }

  void clean() {
    if (gave_up()) mistake("somebody gave up where nothing is lost");
    for (const auto& [name, workload] : run_.report["workloads"].items()) {
      if (!workload["finished"].get<bool>()) mistake("workload {} has not finished where nothing is lost", name);
      if (workload["transfers"] != workload["transfers_done"]) mistake("workload {} has not done all transfers", name);
      for (const char* what : {"failed_queue_pairs", "failed_completions", "wrong_messages", "cases_incomplete"})
        if (workload["details"].value(what, std::int64_t{0}) != 0) mistake("workload {}: {}", name, what);
    }
    expect_zero({"drop_malformed", "rx_icrc_encapsulated", "drop_truncated", "drop_invalid", "drop_wrong_peer",
                 "req_cqe_error", "resp_cqe_error"},
                "nothing is lost or changed");
    if (scenario_.promises.prompt) expect_zero({"local_ack_timeout_err"}, "nothing is lost, and nobody waits long");
    if (scenario_.promises.ordered)
      expect_zero({"retransmitted_packets", "packet_seq_err", "implied_nak_seq_err", "out_of_sequence",
                   "duplicate_request", "drop_duplicate", "ghost_acks"},
                  "nothing is lost, and nothing overtakes");
  }

  const FabricScenario& scenario_;
  const FabricRun& run_;
  Counts nics_;
  std::uint64_t lost_ = 0, dropped_by_gateways_ = 0, made_by_gateways_ = 0;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::string judge_fabric(const FabricScenario& scenario, Pool& pool, Looked& looked) {
  std::vector<std::string> mistakes;
  std::string first, second;
  {
    const FabricRun run = run_fabric(scenario, pool);
    first = run.report.dump();
    FabricJudge judge(scenario, run);
    looked.fabrics++;
    looked.clean += judge.is_clean();
    looked.gave_up += judge.gave_up();
    for (const auto& [name, workload] : run.report["workloads"].items())
      looked.transfers += workload["transfers_done"].get<std::uint64_t>();
    mistakes = judge.all();
  }
  if (pool.in_use() != 0) mistakes.push_back(fmt::format("{} packets have leaked", pool.in_use()));
  const MemoryUse before = MemoryUse::now();
  {
    const FabricRun run = run_fabric(scenario, pool);
    second = run.report.dump();
  }
  if (first != second) {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(first, second).in1 - first.begin());
    const std::size_t from = at < 60 ? 0 : at - 60;
    mistakes.push_back(fmt::format("two equal runs differ: ...{}... and ...{}...", first.substr(from, 120),
                                   second.substr(std::min(from, second.size()), 120)));
  }
  second.clear();
  second.shrink_to_fit();
  const std::string kept = MemoryUse::now().beyond(before);
  if (mistakes.empty() && !kept.empty()) mistakes.push_back(kept);
  std::string all;
  for (const std::string& one : mistakes) all += "  " + one + "\n";
  return all;
}

}  // namespace rocebox::swarm
