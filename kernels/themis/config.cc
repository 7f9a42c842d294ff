// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <set>
#include <tuple>

#include "runtime/roce/address.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/psn.h"

namespace rocebox::themis {
namespace {

constexpr std::string_view kSprayWords[] = {"off", "egress_port", "udp_source_port"};
constexpr std::string_view kParts[] = {"path_check", "lazy_dropping", "rerouting", "spraying"};
constexpr std::size_t kConnectionsMax = 1 << 16;

struct Operation {
  std::string_view name;
  std::uint16_t flag;
  std::uint8_t opcode;  // of those that no flag tells
};
constexpr Operation kOperations[] = {{"write", roce::kIsWrite, 0},
                                     {"send", roce::kIsSend, 0},
                                     {"read", 0, IBV_OPCODE_RC_RDMA_READ_REQUEST},
                                     {"atomic", roce::kHasAtomicEth, 0}};

bool parse_delta(const std::string& text, std::uint16_t& delta) {
  const bool hexadecimal = text.starts_with("0x");
  const char *begin = text.data() + (hexadecimal ? 2 : 0), *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, delta, hexadecimal ? 16 : 10);
  return error == std::errc() && at == end;
}

// Packets spread over a destination's equal ports when there are N of them. One rack may be reached otherwise.
void check_paths(Fields& f, const Config& config, const switch_model::SwitchInfo& info) {
  if (config.spray != Spray::kEgressPort || config.hosts.empty()) return;
  const auto is_host = [&](const std::string& port) {
    return std::ranges::find(config.hosts, port) != config.hosts.end();
  };
  const switch_model::EqualPorts* other = nullptr;
  for (const switch_model::EqualPorts& equal : info.equal_ports) {
    if (std::ranges::any_of(equal.ports, is_host)) continue;
    if (equal.ports.size() == static_cast<std::size_t>(config.paths)) return;
    if (!other) other = &equal;
  }
  if (other)
    f.refuse("paths",
             fmt::format("is {}, and no destination has so many equal ports, so that nothing would be sprayed; "
                         "`{}` has {}: {}",
                         config.paths, other->to, other->ports.size(), fmt::join(other->ports, ", ")));
}

void check_hosts(Fields& f, const Config& config, const switch_model::SwitchInfo& info) {
  if (config.spray == Spray::kOff || config.hosts.empty()) return;
  if (std::ranges::all_of(info.ports, [&](const std::string& port) {
        return std::ranges::find(config.hosts, port) != config.hosts.end();
      }))
    f.refuse("hosts", "names all ports of the switch: none would lead to the fabric");
}

void check_operations(Fields& f, const Config& config) {
  const std::vector<std::string>& names = config.operations;
  if (names.empty() && config.spray != Spray::kOff)
    f.refuse("operations", "must name one at least, such as [write]; to spray none, write `spray: off`");
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::ranges::find(kOperations, *name, &Operation::name) == std::end(kOperations))
      f.refuse("operations", fmt::format("must be of write, send, read and atomic, found `{}`", *name));
    if (std::find(names.begin(), name, *name) != name) f.refuse("operations", fmt::format("names `{}` twice", *name));
  }
}

void check_path_map(Fields& f, const Config& config) {
  if (config.spray != Spray::kUdpSourcePort) {
    if (!config.path_map.empty()) f.refuse("path_map", "is used with `spray: udp_source_port` only");
    return;
  }
  if (config.path_map.size() != static_cast<std::size_t>(config.paths))
    return f.refuse("path_map", fmt::format("has {} entries, must have one for each of {} paths",
                                            config.path_map.size(), config.paths));
  std::set<std::uint16_t> seen;
  for (const std::string& text : config.path_map) {
    std::uint16_t delta = 0;
    if (!parse_delta(text, delta))
      return f.refuse("path_map", fmt::format("must hold numbers from 0 to 0xffff, found `{}`", text));
    if (!seen.insert(delta).second)
      return f.refuse("path_map", fmt::format("has `{}` twice: two paths would be one", text));
  }
}

// Each direction of a connection is of one only, and its ends speak one IP.
void check_connections(Fields& f, const std::vector<ConnectionConfig>& connections) {
  std::set<std::tuple<roce::IpAddress, roce::IpAddress, std::int64_t>> directions;
  for (const ConnectionConfig& row : connections) {
    if (!row.local || !row.remote) continue;  // refused where they stand
    const auto what = fmt::format("{} QP {} and {} QP {}", roce::address_text(*row.local), row.local_qpn,
                                  roce::address_text(*row.remote), row.remote_qpn);
    if (row.local == row.remote) return f.refuse("connections", what + ": both ends have one address");
    if (roce::is_ipv4(*row.local) != roce::is_ipv4(*row.remote))
      return f.refuse("connections", what + ": one end has IPv4, the other IPv6");
    const bool fresh = directions.insert({*row.local, *row.remote, row.remote_qpn}).second;
    if (!directions.insert({*row.remote, *row.local, row.local_qpn}).second || !fresh)
      return f.refuse("connections", what + ": one of these QPs has another connection between these addresses");
  }
}

}  // namespace

void ConnectionConfig::fields(Fields& f) {
  f.address("local", local, Presence::kRequired, "IP address of the end in this rack");
  f.integer("local_qpn", local_qpn, {2, 0xFFFFFF}, "its queue pair number");
  f.address("remote", remote, Presence::kRequired, "IP address of the end elsewhere");
  f.integer("remote_qpn", remote_qpn, {2, 0xFFFFFF}, "its queue pair number");
  f.integer(
      "first_psn", first_psn, {-1, roce::kPsnMask},
      "PSN of the first request to the local end; -1: not known, and NACKs are judged from the second request on");
}

void Config::place(const Placement& placement, const switch_model::SwitchInfo& info) {
  std::int64_t uplinks = 0;
  for (std::size_t port = 0; port < placement.ports.size(); port++) {
    if (placement.ports[port].neighbor_tier == 0)
      hosts.push_back(info.ports[port]);
    else
      uplinks++;
  }
  if (hosts.empty() || uplinks < 2)
    spray = Spray::kOff;
  else
    paths = uplinks;
}

void Config::fields(Fields& f, const switch_model::SwitchInfo& info) {
  info.read_ports(f, "hosts", hosts, "ports to the NICs of this rack; all others lead to the fabric");
  f.choice("spray", spray, kSprayWords,
           "how a packet gets its path: by a port of its destination's equal paths, by its UDP source port, or not at "
           "all, and then no NACK is judged either");
  check_hosts(f, *this, info);
  f.integer("paths", paths, {1, kPathsMax}, "equal paths to another rack (N); the same at both ends");
  f.integer("paths_max", paths_max, {0, kPathsMax},
            "paths that room is made for, so that `paths` can be raised while it runs; 0: as many as `paths`");
  if (paths_max != 0 && paths_max < paths) f.refuse("paths_max", "must not be below `paths`");
  check_paths(f, *this, info);
  f.texts("path_map", path_map,
          "for `udp_source_port`: what is put on the source port by exclusive or, one entry a path (PathMap)");
  check_path_map(f, *this);
  f.texts("operations", operations, "requests that are sprayed: write, send, read, atomic; the same at both ends");
  check_operations(f, *this);
  f.integer("qps", qps, {1, kQpsMax}, "queue pairs of the rack's NICs with state; more stay on plain ECMP");
  f.integer("window", window, {2, kWindowMax}, "packets that a NIC may have unacknowledged, a power of two");
  if (!std::has_single_bit(static_cast<std::uint64_t>(window))) f.refuse("window", "must be a power of two");
  f.integer("ooo_threshold", ooo_threshold, {0, kWindowMax},
            "OOO degree, in packets, beyond which a path is given up; 0: never");
  if (ooo_threshold >= window) f.refuse("ooo_threshold", "must be below `window`, or it is never exceeded");
  f.integer("avoidance_window", avoidance_window, {1, 0xFFFFFFFF},
            "packets of a path given up that are sent elsewhere, for each QP");
  f.integer("path_avoidance_bit", path_avoidance_bit, {0, 5},
            "which of BTH's six reserved bits beside FECN and BECN marks a Path Avoidance Signal");
  f.integer("turned_class", turned_class, {0, 7},
            "class, and so queue, in which ACKs and NACKs wait that are turned back at the port of their NIC");
  f.duration("stash_timeout", stash_timeout, {0, kSecond},
             "an undetermined NACK passes after this time; 0: never, as in the paper");
  f.duration("qp_timeout", qp_timeout, {kMillisecond, 86400 * kSecond}, "queue pairs silent so long are forgotten");
  f.boolean("reroute_timeouts", reroute_timeouts,
            "a request that is sent again without a NACK takes any path; false: its own, as in the paper, though that "
            "may be dead");
  f.texts("without", without,
          "parts that are left out, to see what each is for (figures 13 to 15): path_check, lazy_dropping, rerouting; "
          "failure handling is `ooo_threshold: 0`; spraying: all, as `spray: off`");
  for (const std::string& part : without)
    if (std::ranges::find(kParts, part) == std::end(kParts))
      f.refuse("without", fmt::format("must be of {}, found `{}`", fmt::join(kParts, ", "), part));
  if (!has("spraying")) spray = Spray::kOff;
  f.boolean("learning", learning, "pair the two directions of connections whose set-up was not seen, by their PSNs");
  f.list("connections", connections, kConnectionsMax, "connections that are known");
  check_connections(f, connections);
  if (connections.size() > static_cast<std::size_t>(qps)) f.refuse("connections", "has more entries than `qps`");
}

std::uint32_t Config::slots_per_pipe(const switch_model::SwitchInfo& info) const {
  std::set<unsigned> pipes;
  for (const std::string& host : hosts) pipes.insert(info.pipe_of(info.find(host)));
  const std::uint64_t shares = std::max<std::size_t>(pipes.size(), 1);
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(qps) + shares - 1) / shares);
}

std::array<bool, 256> Config::sprayed_opcodes() const {
  std::array<bool, 256> sprayed{};
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    const roce::OpcodeInfo& info = roce::opcode_info(static_cast<std::uint8_t>(opcode));
    if (info.service != roce::Service::kRc || !info.has(roce::kIsRequest)) continue;
    for (const Operation& operation : kOperations)
      if (std::ranges::find(operations, operation.name) != operations.end() &&
          (operation.flag ? info.has(operation.flag) : opcode == operation.opcode))
        sprayed[opcode] = true;
  }
  return sprayed;
}

std::uint16_t Config::path_delta(std::uint32_t path) const {
  std::uint16_t delta = 0;
  if (path < path_map.size()) parse_delta(path_map[path], delta);
  return delta;
}

}  // namespace rocebox::themis
