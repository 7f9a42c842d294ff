// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>

#include "runtime/drives/live/live.h"

namespace rocebox {
namespace {

std::vector<unsigned> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  std::vector<unsigned> cores;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) cores.push_back(cpu);
  return cores;
}

// A number at the start of `text`, which is taken off.
unsigned take_number(std::string_view& text, const std::string& list) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) throw ConfigError(fmt::format("--cores {}: write numbers and ranges, such as 1,3-5", list));
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::vector<unsigned> choose_cores(const std::string& list, const config::LiveOptions& options) {
  const std::vector<unsigned> allowed = allowed_cores();
  std::vector<unsigned> cores;
  for (std::string_view rest = list; !rest.empty();) {
    const unsigned first = take_number(rest, list);
    unsigned last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      last = take_number(rest, list);
    }
    if (last < first || last - first >= kShardsMax || (!rest.empty() && rest[0] != ','))
      throw ConfigError(fmt::format("--cores {}: write numbers and ranges, such as 1,3-5", list));
    for (unsigned core = first; core <= last; core++) cores.push_back(core);
    if (!rest.empty()) rest.remove_prefix(1);
  }
  for (std::size_t i = 0; i < cores.size(); i++)
    if (std::find(cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(i), cores[i]) !=
        cores.begin() + static_cast<std::ptrdiff_t>(i))
      throw ConfigError(fmt::format("--cores {}: core {} is named twice; a core has one shard", list, cores[i]));
  for (unsigned core : cores)
    if (std::find(allowed.begin(), allowed.end(), core) == allowed.end())
      throw ConfigError(fmt::format("--cores {}: core {} is not there, or not for this process, which may use {}", list,
                                    core, fmt::join(allowed, ",")));
  if (!cores.empty()) {
    if (cores.size() > kShardsMax) throw ConfigError(fmt::format("--cores {}: at most {} shards", list, kShardsMax));
    return cores;
  }
  const auto shards = static_cast<std::size_t>(options.shards);
  if (shards > allowed.size() && options.idle == config::Idle::kPoll)
    throw ConfigError(
        fmt::format("`live: shards:` is {}, and this process may use {} CPUs; shards that share a CPU need "
                    "`idle: pause`",
                    shards, allowed.size()));
  // From the last on: the first are where the kernel likes to do its own work.
  for (std::size_t i = 0; i < shards; i++) cores.push_back(allowed[allowed.size() - 1 - i % allowed.size()]);
  return cores;
}

}  // namespace rocebox
