// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/programs.h"

#include <algorithm>

namespace rocebox::nic_model {

Host& host_of(const WorkloadHost& on, std::int64_t path_mtu) {
  auto* host = dynamic_cast<Host*>(on.side);
  if (!host) throw ConfigError("`" + on.name + "` is no host behind a NIC");
  const NicConfig& config = host->config();
  if (path_mtu > config.path_mtu_max())
    throw ConfigError("its path MTU, `mtu: " + std::to_string(path_mtu) + "`, is more than the NIC of `" + on.name +
                      "` can have: " + std::to_string(config.path_mtu_max()) +
                      " with `mtu: " + std::to_string(config.mtu) + "` there");
  return *host;
}

ClientOrServer::ClientOrServer(const WorkloadHost& on, const Ends& ends)
    : host_(host_of(on, ends.path_mtu)),
      port_(static_cast<std::uint16_t>(ends.port)),
      is_client_(ends.server.has_value()),
      cq_entries_(ends.cq_entries) {
  if (ends.compares && host_.config().header_only)
    throw ConfigError("`" + on.name + "` has `header_only: true`, and " + ends.compares);
  program_ = host_.submit(*this);
}

void ClientOrServer::on_start(Host& host) {
  if (!std::exchange(is_due_, false)) return;
  cq_ = host.create_cq(cq_entries_, program_);
  host.arm(*cq_);
  if (is_client_) return connect(host);
  if (host.connections().listen(program_, PortSpace::kTcp, port_) != 0) end(host, "its port is taken");
}

const char* ClientOrServer::why(const ConnectionEvent& event) {
  return event.type == ConnectionEventType::kRejected      ? "the server rejects"
         : event.type == ConnectionEventType::kUnreachable ? "no response"
                                                           : "its queue pair cannot be connected";
}

void ClientOrServer::end(Host& host, const char* error) {
  note_error(error);
  if (std::exchange(finished_, true)) return;
  tell_finished(host.now());
}

void report_times(Report& report, std::span<const Nanos> times) {
  if (times.empty()) return;
  std::vector<Nanos> sorted(times.begin(), times.end());
  std::ranges::sort(sorted);
  const auto at = [&](double share) {
    return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
  };
  report.duration("t_min", sorted.front());
  report.duration("t_typical", at(0.5));
  report.duration("t_p99", at(0.99));
  report.duration("t_p999", at(0.999));
  report.duration("t_max", sorted.back());
}

}  // namespace rocebox::nic_model
