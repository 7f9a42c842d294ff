// SPDX-License-Identifier: BSD-3-Clause
// Notification: a probe of the round-trip time as a notification point's program sees it, and the answer that it
// writes; and how that answer goes over the wire.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "nic_model/pcc/include/rocebox_pcc_np.h"
#include "nic_model/rate/observer.h"

namespace rocebox::nic_model::pcc {

inline constexpr std::size_t kNotificationBytes = ROCEBOX_PCC_NP_RESPONSE_BYTES;

struct NotificationAnswer {
  std::array<std::uint8_t, kNotificationBytes> data{};
  std::optional<std::uint8_t> dscp;  ///< that the program has asked for
};

/// In the 32 bytes that an observer has in an answer to a probe: `RBNP`, the program's 12, zeros.
void write_answer(std::span<std::uint8_t, kRttPayloadBytes> to, const NotificationAnswer& answer);
/// The program's bytes; empty: there was no program. Anybody's who can forge the peer's address.
std::optional<std::array<std::uint8_t, kNotificationBytes>> read_answer(
    std::span<const std::uint8_t, kRttPayloadBytes> from);

class Notification {
 public:
  /// A probe that has come at `now`.
  void begin(const RttRequest& request, Nanos now);
  doca_pcc_np_dev_request_packet* request() { return &request_; }
  doca_pcc_np_dev_response_packet* response() { return &response_; }
  void set_dscp(std::uint32_t dscp) { dscp_ = static_cast<std::uint8_t>(dscp & 63); }
  /// Whether the program has written beside the probe or the answer.
  bool is_overrun() const;
  NotificationAnswer answer() const;

 private:
  static constexpr std::size_t kProbeBytesMax = 256;  // frame, addresses and header are 150 at most
  // What the program may write to, each between guards.
  struct Room {
    std::uint64_t before = 0;
    std::array<std::uint8_t, kProbeBytesMax> probe{};
    std::uint64_t between = 0;
    std::array<std::uint8_t, kNotificationBytes> answer{};
    std::uint32_t behind = 0;
    std::uint64_t after = 0;
  };
  Room room_;
  doca_pcc_np_dev_request_packet request_{};
  doca_pcc_np_dev_response_packet response_{};
  std::optional<std::uint8_t> dscp_;
};

}  // namespace rocebox::nic_model::pcc
