// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/recovered_packets.h"

#include <algorithm>

#include "runtime/roce/icrc.h"

namespace rocebox::lowar {

void RecoveredPackets::add(Packet rebuilt, Nanos now, Nanos patience) {
  unreliable_ = roce::opcode_info(rebuilt).service == roce::Service::kUc;
  const Nanos until = now + (unreliable_ ? kHoldMax : patience);
  records_[next_++ % kRecoveredKept] = {psn_of(rebuilt), roce::icrc_stored(rebuilt),
                                        static_cast<std::uint32_t>(until / kMicrosecond)};
}

bool RecoveredPackets::take(Packet packet, Nanos now) {
  if (!roce::icrc_held(packet)) return false;
  const std::uint32_t psn = psn_of(packet), icrc = roce::icrc_stored(packet);
  const auto found = std::find_if(records_.begin(), records_.end(), [&](const Record& record) {
    return record.psn == psn && record.icrc == icrc && !record.expired(now);
  });
  if (found == records_.end()) return false;
  found->psn = kNoPsn;
  return true;
}

void RecoveredPackets::sequence_jumps(std::int32_t ahead, std::uint32_t reorder) {
  const bool sent_again = !unreliable_ || ahead > kWindowPsns || ahead < -static_cast<std::int32_t>(reorder);
  if (sent_again) records_ = {};
}

void RecoveredPackets::expire(Nanos now) {
  at_any_psn_ = std::any_of(records_.begin(), records_.end(),
                            [&](const Record& record) { return record.psn != kNoPsn && !record.expired(now); });
}

}  // namespace rocebox::lowar
