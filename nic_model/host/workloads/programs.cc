// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/telemetry/histogram.h"

namespace rocebox::nic_model {
namespace {

// IB specification, volume 1, 12.6.7.2.
std::string_view reject_name(roce::CmReject reason) {
  switch (reason) {
    case roce::CmReject::kNoQp:
      return "no queue pair available";
    case roce::CmReject::kNoResources:
      return "no resources available";
    case roce::CmReject::kTimeout:
      return "timeout";
    case roce::CmReject::kInvalidCommunicationId:
      return "invalid communication ID";
    case roce::CmReject::kInvalidServiceId:
      return "invalid service ID";
    case roce::CmReject::kInvalidTransport:
      return "invalid transport service type";
    case roce::CmReject::kStaleConnection:
      return "stale connection";
    case roce::CmReject::kInvalidMtu:
      return "invalid path MTU";
    case roce::CmReject::kConsumer:
      return "consumer reject";
  }
  return "another reason";
}

}  // namespace

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

void require_peers(const WorkloadHost& one, const WorkloadHost& other, const RecoveryOptions* recovery) {
  const NicConfig& here = host_of(one).config();
  const NicConfig& there = host_of(other).config();
  const auto refuse = [&](std::string_view option, std::string_view left, std::string_view right,
                          std::string_view why) {
    throw ConfigError(fmt::format("the NIC of `{}` has `{}: {}`, and that of `{}` `{}: {}`: {}", one.name, option, left,
                                  other.name, option, right, why));
  };
  if (recovery) {
    recovery->require_possible(one.name, here);
    recovery->require_possible(other.name, there);
  }
  if (recovery && !recovery->recovery && here.recovery != there.recovery)
    refuse("recovery", word_of(here.recovery), word_of(there.recovery),
           "both ends must recover alike: give the workload a `recovery:` of its own");
  if (recovery) {
    const LossRecovery left = recovery->over(here.loss_recovery()), right = recovery->over(there.loss_recovery());
    if (left.places_directly() && std::max(left.window, right.window) > 2 * std::min(left.window, right.window))
      refuse("window", std::to_string(left.window), std::to_string(right.window),
             fmt::format("with `recovery: {}` a receiver keeps no more than twice its own window ahead: give the "
                         "workload a `window:` of its own",
                         word_of(left.how)));
  }
  if (here.header_only != there.header_only)
    refuse("header_only", here.header_only ? "true" : "false", there.header_only ? "true" : "false",
           "one would take the other's packets for cut off");
  if (here.icrc != there.icrc)
    refuse("icrc", here.icrc ? "true" : "false", there.icrc ? "true" : "false",
           "one would find no right ICRC in the other's packets");
  const roce::IpAddress to = there.source_for(*here.address);
  if (here.has_source_for(to)) return;
  const bool is_ipv4 = roce::is_ipv4(*here.address);
  throw ConfigError(fmt::format(
      "the NICs of `{}` and `{}` have no addresses of one family, but {} and {}: give that of `{}` an IPv4 `address`, "
      "or that of `{}` an `address6`",
      one.name, other.name, roce::address_text(*here.address), roce::address_text(to), is_ipv4 ? other.name : one.name,
      is_ipv4 ? one.name : other.name));
}

void require_all_peers(std::span<const WorkloadHost> hosts, const RecoveryOptions* recovery) {
  if (hosts.empty()) return;
  // All that understand one of a single family have that family. The windows that differ most are the two to compare.
  const auto single =
      std::ranges::find_if(hosts, [](const WorkloadHost& on) { return !host_of(on).config().address6; });
  const WorkloadHost& one = single == hosts.end() ? hosts.front() : *single;
  for (const WorkloadHost& other : hosts) require_peers(one, other, recovery);
  if (!recovery) return;
  const auto ends =
      std::ranges::minmax_element(hosts, {}, [](const WorkloadHost& on) { return host_of(on).config().window; });
  require_peers(*ends.min, *ends.max, recovery);
}

void require_source_for(const WorkloadHost& on, const roce::IpAddress& destination, std::string_view is) {
  if (const std::string why = host_of(on).config().lacks_source_for(destination); !why.empty())
    throw ConfigError(
        fmt::format("{} is {}, and the NIC of `{}` {}", is, roce::address_text(destination), on.name, why));
}

void plan_queue_pairs(std::span<const WorkloadHost> hosts, std::span<const std::uint64_t> counts) {
  std::size_t worst = 0;
  std::uint64_t worst_all = 0;
  for (std::size_t i = 0; i < hosts.size(); i++) {
    Host& host = host_of(hosts[i]);
    const std::uint64_t all = host.plan_queue_pairs(counts[i]);
    if (all <= static_cast<std::uint64_t>(host.config().queue_pairs) || all <= worst_all) continue;
    worst = i;
    worst_all = all;
  }
  if (worst_all == 0) return;
  const std::string needed = fmt::format("the NIC of `{}` has {} queue pairs, and workloads on it need {}",
                                         hosts[worst].name, host_of(hosts[worst]).config().queue_pairs, worst_all);
  if (worst_all > static_cast<std::uint64_t>(kQpsMax))
    throw ConfigError(fmt::format("{}, more than a NIC can have: {}", needed, kQpsMax));
  throw ConfigError(fmt::format("{}: give it `queue_pairs: {}`", needed, worst_all));
}

void no_queue_pair_left(const std::string& host, const NicConfig& nic) {
  throw std::runtime_error(
      fmt::format("the NIC of `{}` has no queue pair left for its workloads: give it more than `queue_pairs: {}`", host,
                  nic.queue_pairs));
}

void traffic_class_field(Fields& f, std::int64_t& traffic_class) {
  f.integer("traffic_class", traffic_class, {0, 255},
            "of IP, of both ends' packets: the upper three bits are the priority that schedulers, pauses and switches "
            "go by, the upper six the DSCP; the lower two are ECN's, and NICs that obey congestion marks set them");
}

ClientOrServer::ClientOrServer(const WorkloadHost& on, const Ends& ends)
    : host_(host_of(on, ends.path_mtu)),
      port_(static_cast<std::uint16_t>(ends.port)),
      is_client_(ends.server.has_value()),
      cq_entries_(ends.cq_entries) {
  if (ends.compares && host_.config().header_only)
    throw ConfigError("`" + on.name + "` has `header_only: true`, and " + ends.compares);
  ends.recovery.require_possible(on.name, host_.config());
  if (ends.server) require_source_for(on, *ends.server, "`address`");
  program_ = host_.submit(*this);
}

void ClientOrServer::on_start(Host& host) {
  if (!std::exchange(is_due_, false)) return;
  cq_ = host.create_cq(cq_entries_, program_);
  host.arm(*cq_);
  if (is_client_) return connect(host);
  if (host.connections().listen(program_, PortSpace::kTcp, port_) != 0) end(host, "its port is taken");
}

std::string ClientOrServer::why(const ConnectionEvent& event) {
  if (event.type == ConnectionEventType::kUnreachable) return "no response";
  if (event.type != ConnectionEventType::kRejected) return "its queue pair cannot be connected";
  return fmt::format("the server rejects: {} ({})", reject_name(static_cast<roce::CmReject>(event.status)),
                     event.status);
}

void ClientOrServer::end(Host& host, std::string_view error) {
  note_error(error);
  if (std::exchange(finished_, true)) return;
  tell_finished(host.now());
}

const char* waiting_state(const Qp& qp) {
  return qp.flushes_requests() ? "failed" : qp.can_send() ? "waits" : "not connected";
}

const char* status_name(ibv_wc_status status) {
  constexpr const char* kNames[] = {"SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
                                    "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
                                    "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
                                    "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
                                    "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
                                    "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  return static_cast<std::size_t>(status) < std::size(kNames) ? kNames[status] : "another error";
}

const char* failed_status(ibv_wc_status status) { return status == IBV_WC_SUCCESS ? "" : status_name(status); }

std::string failed_pair_text(const std::string& host, const Qp& qp, const std::string& peer, ibv_wc_status status) {
  return fmt::format("`{}` to `{}`, QPN {:#08x}: {}", host, peer, qp.number(), status_name(status));
}

std::string failures_text(std::uint64_t count, std::string_view what, const std::string& first) {
  return count == 1 ? fmt::format("a {} failed{}{}", what, first.empty() ? "" : ": ", first)
                    : fmt::format("{} {}s failed{}{}", count, what, first.empty() ? "" : ", first ", first);
}

void report_times(Report& report, std::span<const Nanos> times) {
  if (times.empty() && !report.wants_names()) return;
  std::vector<Nanos> sorted(times.begin(), times.end());
  if (sorted.empty()) sorted.push_back(0);
  std::ranges::sort(sorted);
  const auto at = [&](std::uint64_t permille) { return sorted[nearest_rank(sorted.size(), permille) - 1]; };
  report.duration("t_min", sorted.front());
  report.duration("t_typical", sorted[sorted.size() / 2]);
  report.duration("t_p99", at(990));
  report.duration("t_p999", at(999));
  report.duration("t_max", sorted.back());
}

}  // namespace rocebox::nic_model
