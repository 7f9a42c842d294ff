// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a LoWAR gateway.
#pragma once
#include <cstdint>

#include "kernels/lowar/limits.h"
#include "kernels/lowar/redundancy.h"
#include "kernels/lowar/repair_header.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::lowar {

struct Config {
  std::int64_t r = 32, c = 1;
  int roce_mtu = 4;  ///< index into the words: 256, 512, 1024, 2048, 4096
  std::uint64_t link_mtu = 9000;
  std::int64_t streams = 4096, units = 1024, reordering = 2048;
  std::int64_t reorder = 16;
  Nanos hold_min = 20 * kMicrosecond, hold_max = 10 * kMillisecond;
  Nanos idle = 60 * kSecond;
  bool adapt = false;
  double target_loss = 1e-6, redundancy_max = 0.25;
  Nanos dwell = 100 * kMillisecond;

  Coding coding() const { return {static_cast<std::uint16_t>(r), static_cast<std::uint8_t>(c)}; }
  Aim aim() const;
  /// The longest transport packet that is protected: BTH, RETH and immediate data, payload, ICRC.
  std::uint32_t transport_bytes_max() const;
  /// The longest IP datagram of a repair packet.
  std::uint32_t repair_datagram_bytes() const;
  /// See KernelOptions.
  std::vector<MadeDatagrams> made_datagrams() const;
  std::optional<Port> faces_its_like() const;
  bool operator==(const Config&) const = default;
  void fields(Fields& fields);
};

}  // namespace rocebox::lowar
