// SPDX-License-Identifier: BSD-3-Clause
// What can be written about forwarding.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "switch_model/program.h"

namespace rocebox::switch_model::forward {

/// A static entry: one of ports (equal paths, see Balance) or group.
struct MacConfig {
  std::optional<Mac> mac;
  std::int64_t vlan = 0;
  std::vector<std::string> ports;
  std::int64_t group = 0;
  void fields(Fields& fields, const SwitchInfo& info);
};

struct HopConfig {
  std::string port;
  std::optional<Mac> mac;
  void fields(Fields& fields, const SwitchInfo& info);
};

struct RouteConfig {
  std::optional<roce::Prefix> prefix;
  std::vector<HopConfig> via;
  void fields(Fields& fields, const SwitchInfo& info);
};

/// A static address with several ports, or a route: its equal next hops.
std::vector<NextHop> hops_of(const MacConfig& mac, const SwitchInfo& info);
std::vector<NextHop> hops_of(const RouteConfig& route, const SwitchInfo& info);

enum class Unknown : std::uint8_t { kFlood, kDrop, kDropAll };
/// What chooses among equal next hops; all but kFlow for RoCEv2 only.
enum class Balance : std::uint8_t {
  kFlow,        ///< the hash of the packet's flow: ECMP
  kFlowlet,     ///< a draw for each burst of a flow
  kRandom,      ///< a draw for each packet
  kLeastQueue,  ///< the port in whose queues the least bytes wait
};

struct Config {
  bool learning = true;
  Nanos mac_age = 300 * kSecond;
  std::int64_t mac_entries = 16384, route_entries = 1024, hop_entries = 1024;
  Unknown unknown = Unknown::kFlood;
  std::vector<MacConfig> macs;
  std::optional<Mac> router_mac;
  std::vector<RouteConfig> routes;
  Balance balance = Balance::kFlow;
  std::vector<std::string> balance_operations = {"write", "read"};
  Nanos flowlet_gap = 500 * kMicrosecond;
  std::int64_t flowlet_entries = 65536;
  int ecmp_hash = 0;  ///< place in crc_algorithms()
  std::int64_t ecmp_seed = 0, ecmp_polynomial = 0;
  void fields(Fields& fields, const SwitchInfo& info);
  /// Nothing is learnt or flooded: hosts and switches are known, and paths are equal.
  void place(const Placement& placement, const SwitchInfo& info);
  /// Of the tables; twice, where those of a reload are built beside.
  std::uint64_t eal_bytes() const;
  /// Destinations with several equal ports.
  void tell(SwitchInfo& info) const;
  bool has_equal_paths() const;

 private:
  void balance_fields(Fields& fields);
};

}  // namespace rocebox::switch_model::forward
