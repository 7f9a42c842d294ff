// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/notification.h"

#include <algorithm>

#include "nic_model/pcc/tables.h"

namespace rocebox::nic_model::pcc {
namespace {

constexpr std::array<std::uint8_t, 4> kAnswerMagic = {'R', 'B', 'N', 'P'};
constexpr std::uint64_t kRoomGuard = std::uint64_t{kGuard} << 32 | kGuard;

}  // namespace

void write_answer(std::span<std::uint8_t, kRttPayloadBytes> to, const NotificationAnswer& answer) {
  std::ranges::fill(to, 0);
  std::ranges::copy(kAnswerMagic, to.begin());
  std::ranges::copy(answer.data, to.begin() + kAnswerMagic.size());
}

std::optional<std::array<std::uint8_t, kNotificationBytes>> read_answer(
    std::span<const std::uint8_t, kRttPayloadBytes> from) {
  if (!std::ranges::equal(from.first<4>(), kAnswerMagic)) return {};
  std::array<std::uint8_t, kNotificationBytes> data;
  std::ranges::copy(from.subspan<4, kNotificationBytes>(), data.begin());
  return data;
}

void Notification::begin(const RttRequest& request, Nanos now) {
  room_ = {};
  room_.before = room_.between = room_.after = kRoomGuard;
  room_.behind = kGuard;
  const std::size_t bytes = std::min(request.packet.size(), kProbeBytesMax);
  std::ranges::copy(request.packet.first(bytes), room_.probe.begin());
  request_ = {};
  request_.bytes = room_.probe.data();
  request_.size = static_cast<std::uint32_t>(bytes);
  request_.udp = static_cast<std::uint32_t>(request.udp_offset);
  request_.payload = static_cast<std::uint32_t>(request.sent_offset + 4);  // the lower half of the time
  request_.received = static_cast<std::uint32_t>(now) & 0x3FFFFFFF;
  request_.hop_limit = request.hop_limit;
  response_ = {kNotificationBytes, room_.answer.data(), &request_};
  dscp_.reset();
}

bool Notification::is_overrun() const {
  return room_.before != kRoomGuard || room_.between != kRoomGuard || room_.after != kRoomGuard ||
         room_.behind != kGuard;
}

NotificationAnswer Notification::answer() const { return {room_.answer, dscp_}; }

}  // namespace rocebox::nic_model::pcc
