// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/reload.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace rocebox {
namespace {

// A device that is new or gone differs in each of its options.
constexpr std::size_t kReasonsMax = 16;

struct Prepared {
  Shard* shard;
  unsigned device, kernel;
  std::unique_ptr<Change> change;
};

std::string text_of(const std::string& value) { return value.empty() ? "not written" : value; }

bool prepared_for(const std::vector<Prepared>& all, const Shard* shard, const config::Difference& d) {
  return std::any_of(all.begin(), all.end(), [&](const Prepared& p) {
    return p.shard == shard && p.device == d.device && p.kernel == d.kernel;
  });
}

}  // namespace

std::vector<config::Difference> reload(Live& live, const config::RunConfig& running, const config::RunConfig& next) {
  std::vector<config::Difference> all = config::differences(running, next);
  std::string reasons;
  std::size_t refused = 0;
  auto refuse = [&](const config::Difference& d, const std::string& why) {
    if (refused++ >= kReasonsMax) return;
    reasons += fmt::format("{}{}: {} is {} and would be {}: {}", reasons.empty() ? "" : "\n", next.file, d.path,
                           text_of(d.before), text_of(d.after), why);
  };
  std::vector<Prepared> changes;
  for (const config::Difference& d : all)
    if (d.device == config::Difference::kElsewhere)
      refuse(d, "only options of kernels and links can change while packets flow; start the run again for it");
  auto refuse_all = [&] {
    if (refused > kReasonsMax)
      reasons += fmt::format("\n{}: and {} more differences", next.file, refused - kReasonsMax);
    if (refused) throw ConfigError(reasons);
  };
  refuse_all();  // the kernels of both may not even be the same
  for (const config::Difference& d : all) {
    try {
      for (Shard* shard : live.shards())
        if (!prepared_for(changes, shard, d))
          changes.push_back(
              {shard, d.device, d.kernel,
               config::kernel_of(next, d).options->change(shard->testbed().device(d.device).kernel(d.kernel))});
    } catch (const ConfigError& error) {
      refuse(d, error.what());
    }
  }
  refuse_all();
  live.for_each_shard([&](Shard& shard) {
    for (Prepared& prepared : changes)
      if (prepared.shard == &shard) shard.change(prepared.device, prepared.kernel, *prepared.change);
  });
  return all;
}

}  // namespace rocebox
