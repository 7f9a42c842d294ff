// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/mesh_workload.h"

#include <algorithm>

namespace rocebox::nic_model {

MeshWorkload::MeshWorkload(std::span<const WorkloadHost> hosts, const MeshOptions& options)
    : mesh_(
          hosts, options,
          [this](std::size_t number, Nanos now) {
            on_received(number, now);
            look_whether_finished(now);
          },
          [this](Nanos now) { look_whether_finished(now); }) {}

void MeshWorkload::look_whether_finished(Nanos now) {
  ended_ = std::max(ended_, now);  // hosts that act alone are not called by time
  const bool is_done = mesh_.unfinished() == 0 && all_begun();
  if (finished_ || !(is_done || mesh_.has_given_up())) return;
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
  if (mesh_.failed() > 0 || report.wants_names()) report.text("error", mesh_.error());
  const bool is_done = finished_ && mesh_.unfinished() == 0 && all_begun();
  report.result("completion_time", is_done ? std::optional(ended_ - began_) : std::nullopt);
}

}  // namespace rocebox::nic_model
