// SPDX-License-Identifier: BSD-3-Clause
#include "tests/swarm/judge.h"

#include <fmt/format.h>
#include <malloc.h>
#include <rte_malloc.h>

#include <algorithm>

namespace rocebox::swarm {
namespace {

// Queues of the engine grow with the longest burst so far; a kernel's state is sized at start.
constexpr std::uint64_t kHeapGrowthMax = 1 << 20;
// What the allocator keeps for itself counts as used; a few bytes for each packet would be more.
constexpr std::uint64_t kHeapKeptMax = 1 << 16;
constexpr std::size_t kMistakesMax = 5;

class Judge {
 public:
  Judge(const Scenario& scenario, const Traffic& traffic) : scenario_(scenario), traffic_(traffic) {
    for (const Sent& sent : traffic.packets) {
      if (sent.flow < 0) continue;
      flow_of_.try_emplace(sent.mark, sent.flow);
      came_[sent.flow].push_back({sent.mark, sent.at});
    }
  }

  void bytes(const std::pair<unsigned, unsigned>& port, const std::vector<Left>& all) {
    for (const Left& left : all) {
      const auto known = traffic_.payloads.find(left.mark);
      if (known == traffic_.payloads.end()) {
        if (left.right && scenario_.promises.genuine)
          add(port, "a payload that nobody sent, with a right ICRC: mark {:016x}, {} bytes", left.mark,
              left.payload_bytes);
        continue;
      }
      const Payload& payload = known->second;
      const bool same = payload.digest == left.digest && payload.bytes == left.payload_bytes;
      if (left.right && !same && scenario_.promises.genuine)
        add(port, "a payload that was changed has a right ICRC: mark {:016x}", left.mark);
      if (left.right && !payload.right && scenario_.promises.genuine)
        add(port, "a wrong ICRC came out right: mark {:016x}", left.mark);
      if (payload.right && !left.right && scenario_.promises.whole)
        add(port, "a right ICRC came out wrong: mark {:016x}", left.mark);
    }
  }

  // What leaves by a port of one flow is what came, in its order, with gaps, and nothing more often than it came.
  void order(const std::pair<unsigned, unsigned>& port, const std::vector<Left>& all) {
    std::map<int, Reached> reached;
    for (const Left& left : all) {
      const auto flow = flow_of_.find(left.mark);
      if (flow == flow_of_.end()) continue;
      const std::vector<Came>& came = came_[flow->second];
      Reached& to = reached[flow->second];
      to.left.resize(came.size());
      std::size_t at = to.next;
      while (at < came.size() && (came[at].mark != left.mark || to.left[at])) at++;
      if (at == came.size()) {
        const auto first = std::find_if(came.begin(), came.end(), [&](const Came& c) { return c.mark == left.mark; });
        return add(port, "flow {}: packet {} (mark {:016x}) left behind packet {}, or too often", flow->second,
                   first - came.begin(), left.mark, to.next);
      }
      // What came again while the first one waited may leave right behind that, ahead of what came between.
      const bool waited = to.last == left.mark && came[at].at <= to.last_left;
      if (!waited || scenario_.promises.repeats_stay) to.next = at + 1;
      to.left[at] = true;
      to.last = left.mark;
      to.last_left = left.at;
    }
  }

  template <class... T>
  void add(const std::pair<unsigned, unsigned>& port, fmt::format_string<T...> text, T&&... values) {
    if (mistakes.size() < kMistakesMax)
      mistakes.push_back(
          fmt::format("port {}.{}: {}", port.first, port.second, fmt::format(text, std::forward<T>(values)...)));
  }

  std::vector<std::string> mistakes;

 private:
  struct Came {
    std::uint64_t mark;
    Nanos at;
  };
  // How far a flow has left a port.
  struct Reached {
    std::size_t next = 0;    // what is before it leaves no more
    std::vector<bool> left;  // of what came
    std::uint64_t last = 0;
    Nanos last_left = 0;
  };
  const Scenario& scenario_;
  const Traffic& traffic_;
  std::unordered_map<std::uint64_t, int> flow_of_;
  std::map<int, std::vector<Came>> came_;  // by flow
};

}  // namespace

MemoryUse MemoryUse::now() {
  rte_malloc_socket_stats stats{};
  rte_malloc_get_socket_stats(0, &stats);
  return {mallinfo2().uordblks, stats.heap_allocsz_bytes};
}

std::string MemoryUse::beyond(const MemoryUse& before) const {
  if (heap <= before.heap + kHeapKeptMax && tables == before.tables) return "";
  return fmt::format("memory is not back: heap {} to {}, tables {} to {} bytes", before.heap, heap, before.tables,
                     tables);
}

std::string judge(const Scenario& scenario, const Traffic& traffic, Pool& pool, Looked& looked) {
  const Outcome kept = run_scenario(scenario, traffic, pool, 1, true);
  Judge judge(scenario, traffic);
  judge.mistakes = kept.mistakes;
  looked.runs++;
  looked.delivered += kept.delivered;
  for (const auto& [port, left] : kept.left) {
    looked.payloads += left.size();
    if (scenario.promises.order) looked.in_order += left.size();
    judge.bytes(port, left);
    if (scenario.promises.order) judge.order(port, left);
  }
  std::vector<std::string>& mistakes = judge.mistakes;
  const auto compare = [&](unsigned batch_max, const char* what) {
    const Outcome other = run_scenario(scenario, traffic, pool, batch_max, false);
    if (other.hashes != kept.hashes) mistakes.emplace_back(what);
    if (other.heap_growth > kHeapGrowthMax)
      mistakes.push_back(fmt::format("the heap grew by {} bytes while packets came", other.heap_growth));
    if (mistakes.empty()) mistakes = other.mistakes;
  };
  const MemoryUse before = MemoryUse::now();
  compare(1, "two equal runs differ");
  const std::string kept_back = MemoryUse::now().beyond(before);
  if (mistakes.empty() && !kept_back.empty()) mistakes.push_back(kept_back);
  if (scenario.promises.equal_batches) looked.cuts++;
  if (scenario.promises.equal_batches)
    for (const unsigned batch : {7u, 64u}) compare(batch, "another cut into batches gives another output");
  std::string all;
  for (const std::string& mistake : mistakes) all += "  " + mistake + "\n";
  return all;
}

}  // namespace rocebox::swarm
