// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "runtime/component/fields.h"

namespace rocebox::allgather {

struct ObserverConfig {
  std::int64_t chunk_bits = 24, collective_bits = 3;  ///< of the immediate; generations have the rest
  std::int64_t streams = 4096, window = 4096, collectives = 1024, groups = 256;
  std::int64_t block_chunks = 0;
  Nanos cutoff = 0, restart_after = kSecond;
  std::int64_t staging_slots = 1024;
  std::uint64_t slot_bytes = 4096 + 40, copy_rate = 200'000'000'000;
  Nanos copy_latency = 2 * kMicrosecond;
  std::int64_t events = 256;
  bool check_icrc = true;

  bool operator==(const ObserverConfig&) const = default;
  void fields(Fields& fields);
};

}  // namespace rocebox::allgather
