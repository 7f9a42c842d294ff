// SPDX-License-Identifier: BSD-3-Clause
// The packet trace: which packets to follow, and their events as text.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/trace_sink.h"
#include "runtime/packet/packet.h"

namespace rocebox {

/// `qpn=0x11 psn=100-120 opcode=17 src=10.0.0.1 dst=10.0.0.2`: all words must match; a word may list values and
/// ranges, `psn=1,5,100-120`. PSN ranges may wrap (`psn=0xfffff0-0x10`). `all` follows everything. A list that could be
/// one number with its digits in groups (`psn=9,524,366`) is refused: `psn=9 psn=524 psn=366` is the list.
class TraceFilter {
 public:
  /// Throws ConfigError naming the word that cannot be read.
  explicit TraceFilter(const std::string& text);
  bool matches(Packet packet) const;

 private:
  struct Span {
    std::uint32_t first, last;
  };
  void add_values(const std::string& word, const std::string& key, const std::string& values);
  using Address = std::array<std::uint8_t, 16>;
  static bool within(const std::vector<Span>& spans, std::uint32_t value);

  bool all_ = false;
  std::vector<Span> qpns_, psns_, opcodes_;
  std::optional<Address> source_, destination_;
};

/// One line: time, device, stage, verdict, reason, packet. `counter_name` is the reason's name.
std::string trace_line(const TraceEvent& event, std::string_view device, std::string_view port_name,
                       std::string_view counter_name);

/// "pass", "drop", ...
std::string_view trace_verdict_name(TraceVerdict verdict);

}  // namespace rocebox
