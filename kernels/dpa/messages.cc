// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dpa/messages.h"

#include "runtime/roce/psn.h"

namespace rocebox::dpa_observer {

Flow* Messages::find(Packet packet) {
  const FlowKey key = {roce::addresses(packet), roce::qpn_and_psn(packet).destination_qp,
                       static_cast<std::uint32_t>(roce::opcode_info(packet).service)};
  const std::uint64_t hash = table_.hash(key);
  std::uint32_t index = table_.find(key, hash);
  if (index != kNone) return &flows_[index];
  index = table_.insert(key, hash);
  if (index == kNone) return nullptr;
  flows_[index] = {};
  flows_[index].thread = static_cast<std::uint16_t>(next_thread_);
  next_thread_ = (next_thread_ + 1) % threads_;
  return &flows_[index];
}

bool Messages::takes(Flow& flow, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (info.service == roce::Service::kUd) return true;
  const std::uint32_t psn = roce::qpn_and_psn(packet).psn;
  const bool taken = info.service == roce::Service::kRc ? takes_rc(flow, info, psn) : takes_uc(flow, info, psn);
  if (!taken) return false;
  flow.stray = 0;
  flow.expected = roce::psn_add(psn, 1);
  flow.is_synced = true;
  // Requests without a beginning, a middle and an end are those that READ or are atomic.
  const bool is_message = info.has(roce::kIsSend | roce::kIsWrite);
  flow.may_skip = !is_message;
  if (!is_message) return flow.is_open = false;
  if (info.has(roce::kStartsMessage)) flow.is_open = true;
  if (!flow.is_open) counters_.unfinished.add();
  return flow.is_open;
}

// As go-back-N responders do: what is not next is not taken.
bool Messages::takes_rc(Flow& flow, const roce::OpcodeInfo& info, std::uint32_t psn) {
  const bool begins = info.has(roce::kStartsMessage) || !info.has(roce::kIsSend | roce::kIsWrite);
  if (!flow.is_synced) {
    if (!begins) counters_.unfinished.add();
    return begins;
  }
  const std::int32_t ahead = roce::psn_distance(psn, flow.expected);
  if (ahead == 0 || (ahead > 0 && flow.may_skip && begins)) return true;
  if (begins && flow.stray >= kStrayPacketsMax) return true;  // another connection, or the capture has a hole
  flow.stray++;
  (ahead < 0 ? counters_.duplicate_request : counters_.out_of_sequence).add();
  return false;
}

// UC waits for the next beginning of a message where a PSN is missing (IB specification, 9.8.2.2).
bool Messages::takes_uc(Flow& flow, const roce::OpcodeInfo& info, std::uint32_t psn) {
  if (info.has(roce::kStartsMessage)) {
    if (flow.is_open) counters_.unfinished.add();
    return true;
  }
  if (flow.is_open && psn == flow.expected) return true;
  flow.is_open = false;
  counters_.unfinished.add();
  return false;
}

}  // namespace rocebox::dpa_observer
