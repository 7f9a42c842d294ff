// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/signals.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace rocebox {
namespace {

constexpr std::string_view kSignals[] = {"retransmitted_packets", "local_ack_timeout_err", "packet_seq_err",
                                         "np_cnp_sent",           "ecn_marked_packets",    "tx_pause_frames",
                                         "drop_buffer_full"};

// Nanoseconds of one that a counter of paused time counts; 0: it is none.
std::uint64_t pause_unit(std::string_view name) {
  if (name == "rx_pause_duration_ns") return 1;  // a switch's
  const bool is_nics = name == "rx_global_pause_duration" ||
                       (name.starts_with("rx_prio") && name.ends_with("_pause_duration"));  // mlx5's names and unit
  return is_nics ? kMicrosecond : 0;
}

}  // namespace

Json signals(const Testbed& testbed) {
  Json all = Json::object();
  const auto add = [&all](std::string_view name, std::uint64_t value) {
    Json& sum = all[std::string(name)];
    sum = (sum.is_null() ? 0 : sum.get<std::uint64_t>()) + value;
  };
  for (const std::string_view name : kSignals) add(name, 0);
  std::uint64_t paused = 0;
  for (unsigned i = 0; i < testbed.device_count(); i++)
    testbed.device(i).books().for_each_counter([&](const CounterView& counter) {
      if (counter.kernel.empty()) return;
      const std::uint64_t unit = pause_unit(counter.name);
      if (unit == 0 && std::ranges::find(kSignals, counter.name) == std::end(kSignals)) return;
      add(counter.name, counter.value);
      paused += unit * counter.value;
    });
  all["pause_time_ns"] = paused;
  return all;
}

}  // namespace rocebox
