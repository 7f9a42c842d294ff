// SPDX-License-Identifier: BSD-3-Clause
// Events as programs for DOCA PCC have them, made of what a NIC or an observer saw.
#pragma once
#include <cstdint>
#include <cstring>

#include "nic_model/pcc/include/doca_pcc_dev_data_structures.h"
#include "nic_model/rate/observer.h"
#include "runtime/roce/headers.h"

namespace rocebox::nic_model::pcc {

/// Of that kind, at that time, of that flow; `serial` numbers the flow's events.
inline doca_pcc_dev_event_t event_of(doca_pcc_dev_event_type_enum kind, Nanos now, std::uint32_t qpn,
                                     std::uint32_t serial) {
  doca_pcc_dev_event_t event{};
  event.time = event.first_time = static_cast<std::uint32_t>(now);
  event.general.ev_type = static_cast<unsigned>(kind) & 0xFF;
  event.answers.num_coalesced = 1;
  event.tag = event.qpn = qpn;
  event.serial = event.first_serial = serial;
  return event;
}

/// Of TX: one packet of so many bytes on the wire.
inline void set_sent(doca_pcc_dev_event_t& event, std::uint32_t bytes) { event.sent = {(bytes + 31) / 32 & 0xFFFF, 1}; }

inline void set_nack(doca_pcc_dev_event_t& event, std::uint8_t syndrome) {
  const NackKind kind = nack_kind(syndrome);
  const unsigned theirs = kind == NackKind::kRnr        ? DOCA_PCC_DEV_NACK_EVNT_RNR
                          : kind == NackKind::kSequence ? DOCA_PCC_DEV_NACK_EVNT_OOS
                                                        : DOCA_PCC_DEV_NACK_EVNT_NULL;
  event.general.ev_subtype = theirs & 0xFF;
}

/// Of RTT: when the probe left, came to the peer, and when its answer left there; the event's own time is the fourth.
inline void set_rtt(doca_pcc_dev_event_t& event, Nanos request_sent, Nanos request_received, Nanos response_sent) {
  const Nanos times[] = {request_sent, request_received, response_sent};
  for (unsigned i = 0; i < 3; i++) {
    roce::Be32 word;
    word = static_cast<std::uint32_t>(times[i]);
    std::memcpy(event.answer + 4 * i, &word, sizeof word);
  }
}

}  // namespace rocebox::nic_model::pcc
