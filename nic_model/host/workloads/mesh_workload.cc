// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/mesh_workload.h"

#include <algorithm>

namespace rocebox::nic_model {

MeshWorkload::MeshWorkload(std::span<const WorkloadHost> hosts, const MeshOptions& options)
    : mesh_(hosts, options, [this](std::size_t number, Nanos now) {
        on_received(number, now);
        look_whether_finished(now);
      }) {}

void MeshWorkload::look_whether_finished(Nanos now) {
  ended_ = std::max(ended_, now);  // hosts that act alone are not called by time
  if (finished_ || mesh_.unfinished() > 0 || !all_begun()) return;
  finished_ = true;
  tell_finished(ended_);
}

void MeshWorkload::report(Report& report) const {
  report.count("transfers", static_cast<std::int64_t>(mesh_.flows().size()));
  report.count("unfinished", static_cast<std::int64_t>(mesh_.unfinished()));
  report.count("bytes_received", static_cast<std::int64_t>(mesh_.bytes_received()));
  report.count("misplaced", static_cast<std::int64_t>(mesh_.misplaced()));
  report.count("unexpected_messages", static_cast<std::int64_t>(mesh_.unexpected()));
  report.count("failed_queue_pairs", static_cast<std::int64_t>(mesh_.failed()));
  if (!mesh_.error().empty()) report.text("error", mesh_.error());
  report.result("completion_time", finished_ ? std::optional(ended_ - began_) : std::nullopt);
}

}  // namespace rocebox::nic_model
