// SPDX-License-Identifier: BSD-3-Clause
// Placement: what a topology says to a device that it places: what it is called, where its ports lead, and which
// addresses are behind them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"

namespace rocebox {

struct Placement {
  struct PlacedPort {
    std::string name;
    std::uint64_t bits_per_second = 0;  ///< of the wire; 0: no limit
    Nanos delay = 0;                    ///< of the wire, one way
    roce::Mac neighbor_mac{};           ///< of who is at the other end
    std::string neighbor;               ///< its device's name
    unsigned neighbor_tier = 0;         ///< its tier, see below
  };
  struct Hop {
    Port port;
    roce::Mac mac;
  };
  /// Equal next hops of a prefix.
  struct Route {
    roce::Prefix prefix;
    std::vector<Hop> via;
  };

  roce::Mac mac{};
  std::optional<roce::IpAddress> address;  ///< of a host
  std::vector<PlacedPort> ports;
  std::vector<Route> routes;  ///< of a switch
  unsigned tier = 0;          ///< 0: a host; switches from 1, at the hosts, upwards
};

}  // namespace rocebox
