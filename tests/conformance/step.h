// SPDX-License-Identifier: BSD-3-Clause
// What a case writes of packets, work requests and completions, as text: NAME NUMBER KEY=VALUE... FLAG...
#pragma once
#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>

#include "runtime/packet/packet.h"

namespace rocebox::conformance {

/// Throws std::runtime_error for what is no number, decimal or hexadecimal.
std::uint64_t to_number(const std::string& text);

/// A duration such as 20us, 1200ms, 1s. Throws std::runtime_error for what is none.
std::int64_t to_nanos(const std::string& text);

struct Step {
  explicit Step(const std::string& text);
  std::uint64_t number(const std::string& key, std::uint64_t otherwise) const;
  std::string text(const std::string& key) const;
  bool has(const std::string& flag) const { return values.contains(flag); }

  std::string name;
  std::uint32_t psn = 0;                      ///< the number behind the name
  std::map<std::string, std::string> values;  ///< flags have none
};

/// The opcode that a name means in a service, whose first opcode is `service`; of acknowledgements `syndrome` says
/// more.
std::uint8_t opcode_of(const std::string& name, std::uint8_t service, std::uint8_t& syndrome);
/// A packet that a NIC sent, as cases write it; `remote` is where its requests' addresses count from.
std::string text_of(Packet packet, std::uint64_t remote);
/// "SUCCESS", "RETRY_EXC_ERR", ...
std::string status_name(ibv_wc_status status);
/// What a queue pair allows: write, read, atomic. Throws std::runtime_error for others.
unsigned right_of(const std::string& name);

}  // namespace rocebox::conformance
