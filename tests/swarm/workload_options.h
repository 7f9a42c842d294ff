// SPDX-License-Identifier: BSD-3-Clause
// Options of workloads that fields drawn one by one would seldom get right: `below(n)` draws one of 0 to n - 1.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace rocebox::swarm {

// What both ends of a server and its client say; empty: the workload is no such pair.
template <class Draw>
std::string pair_options(std::string_view kind, Draw below) {
  if (kind == "rping") return fmt::format("size: {}B", 24 + below(below(2) ? 100 : 9000));
  if (kind == "ucmatose") {
    const unsigned connections = 1 + below(4), count = below(20), size = 1 + below(9000);
    return fmt::format("connections: {}, message_count: {}, message_size: {}B", connections, count, size);
  }
  if (kind == "dpa_program") {
    const unsigned messages = 1 + below(60), size = 4 + below(below(2) ? 100 : 1000);
    return fmt::format("messages: {}, size: {}B", messages, size);
  }
  if (kind == "verbs_check") {
    const unsigned size = 4 + below(1000), messages = 1 + below(8);
    return fmt::format("size: {}B, messages: {}, settle: 3ms", size, messages);
  }
  return {};
}

// Sizes that go with each other.
template <class Draw>
std::string sdr_messages_options(Draw below) {
  constexpr const char* kReliability[] = {"selective_repeat", "selective_repeat_nack", "erasure_coding"};
  const unsigned reliability = below(3), messages = 1 + below(20), size = 1 + below(40'000), chunk = below(4);
  const unsigned channels = 1 + below(4), generations = below(3), code = below(2);
  return fmt::format(
      "reliability: {}, messages: {}, max_size: {}B, mtu: 1KiB, chunk: {}KiB, message_bytes: 64KiB, message_ids: 64, "
      "channels: {}, "
      "generations: {}, code: {}, data: 8, parity: 2, rtt: 1ms, global_timeout: 2s",
      kReliability[reliability], messages, size, 1 << chunk, channels, 1 << generations, code ? "xor" : "mds");
}

}  // namespace rocebox::swarm
