// SPDX-License-Identifier: BSD-3-Clause
// What can be written about the traffic manager.
#pragma once
#include <string>
#include <vector>

#include "switch_model/program.h"

namespace rocebox::switch_model {

/// What a packet's traffic class is taken from.
enum class ClassOf : std::uint8_t {
  kNothing,  ///< all are of class 0, unless a program says otherwise
  kDscp,     ///< the three high bits of the DSCP
  kPcp,      ///< the priority in the VLAN tag
};
enum class Scheduler : std::uint8_t {
  kStrict,      ///< the highest class that has a packet
  kRoundRobin,  ///< deficit round robin over the classes, the same bytes to each
};

struct RateConfig {
  std::vector<std::string> ports;
  std::uint64_t rate = 0;
};

struct TrafficManagerConfig {
  std::uint64_t rate = 0;  ///< bits per second of every port; 0: as fast as packets come
  std::vector<RateConfig> rates;
  std::vector<std::uint64_t> placed;  ///< of a topology's wires, by port, where neither of these says otherwise
  bool places_rates = true;           ///< no `rate` is written
  std::uint64_t overhead = 24;
  std::uint64_t buffer = std::uint64_t{16} << 20;
  std::int64_t packets = 16384;
  double alpha = 1;
  ClassOf class_of = ClassOf::kNothing;
  Scheduler scheduler = Scheduler::kStrict;
  std::uint64_t ecn_min = 0, ecn_max = 0;  ///< bytes of one queue; ecn_max 0: no marks
  double ecn_probability = 1;
  std::vector<std::string> pfc_classes;  ///< numbers of lossless classes
  std::uint64_t xoff = 512 << 10, xon = 256 << 10;

  void fields(Fields& fields, const SwitchInfo& info);
  /// Bits per second of a port; 0: as fast as packets come.
  std::uint64_t rate_of(const SwitchInfo& info, Port port) const;
  /// At which its neighbour counts pauses: its wire's in a topology, whatever rate it has.
  std::uint64_t wire_rate_of(const SwitchInfo& info, Port port) const;
  /// Whether anything may wait: some port has a rate, or some class is lossless.
  bool waits() const;
  /// Bit n: class n is lossless.
  std::uint8_t lossless() const;
};

}  // namespace rocebox::switch_model
