// SPDX-License-Identifier: BSD-3-Clause
// RDMA WRITEs that go round through a device, and their ACKs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/micro/packets.h"

namespace rocebox::bench {

/// A little less than 100 Gbps with packets of 1088 B on the wire, so that nothing piles up.
inline constexpr Nanos kBurstNanos = kBurst * 90;

/// Packets that go round: one per flow and enough to cover what a link holds, each with its flow's next PSN when sent
/// (edited, so that the ICRC stays right: that is part of what a bump without kernels costs in kernel_bench).
class Traffic {
 public:
  explicit Traffic(std::size_t flows);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  /// Whether there are packets enough for next().
  bool can();
  /// The next burst; the PSNs of a flow follow one another. Valid until the next call; the device takes the packets
  /// over.
  std::span<Packet> next();
  /// ACKs of what the last burst had, one for 16 packets of a flow, as its receiver would send them.
  std::span<Packet> acks();
  /// What has left a device: goes round again, but for what a kernel made itself and ACKs, which are freed.
  void back(std::span<Packet> packets);
  /// Makes up for `packets` that were dropped since the start, so that they do not run out.
  void restore(std::uint64_t packets);
  /// Bursts that reach every flow twice.
  std::size_t warm_up_bursts() const { return 2 * std::max<std::size_t>(flows_.size(), kLeastPackets) / kBurst; }
  /// Its flows as Themis' connections in YAML; `receivers`: of the ToR of their receivers, else of the senders'.
  std::string connections(bool receivers) const;

 private:
  static constexpr std::size_t kLeastPackets = 1024;
  struct Flow {
    roce::Underlay underlay;
    std::uint32_t psn;
    Packet first;  // kept aside
  };
  std::vector<Flow> flows_;
  std::vector<Packet> free_, burst_, acks_;
  std::size_t at_ = 0;
  std::uint64_t restored_ = 0;
};

}  // namespace rocebox::bench
