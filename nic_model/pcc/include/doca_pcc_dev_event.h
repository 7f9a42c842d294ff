/* SPDX-License-Identifier: BSD-3-Clause */
/* How a program reads an event. Times are in nanoseconds, their low 32 bits. */
#ifndef ROCEBOX_DOCA_PCC_DEV_EVENT_H
#define ROCEBOX_DOCA_PCC_DEV_EVENT_H

#include <doca_pcc_dev.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

FORCE_INLINE uint32_t rocebox_pcc_network_word(const unsigned char* at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* All events: kind, port, flags; which flow; its number among the flow's; when. */
FORCE_INLINE doca_pcc_dev_event_general_attr_t doca_pcc_dev_get_ev_attr(doca_pcc_dev_event_t* event) {
  return event->general;
}
FORCE_INLINE uint32_t doca_pcc_dev_get_flowtag(doca_pcc_dev_event_t* event) { return event->tag; }
FORCE_INLINE uint32_t doca_pcc_dev_get_sn(doca_pcc_dev_event_t* event) { return event->serial; }
FORCE_INLINE uint32_t doca_pcc_dev_get_timestamp(doca_pcc_dev_event_t* event) { return event->time; }
/* The flow's queue pair. */
FORCE_INLINE uint32_t doca_pcc_dev_get_flow_qpn(doca_pcc_dev_event_t* event) { return event->qpn; }
/* Of the packet that came: not told here. */
FORCE_INLINE uint32_t doca_pcc_dev_get_ttl_hoplimit(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
/* Firmware's events, which never come. */
FORCE_INLINE uint32_t doca_pcc_dev_get_fw_settings(doca_pcc_dev_event_t* event, int n) {
  return ((void)event, (void)n, 0);
}

/* TX, ACK, NACK, CNP: when the first of those that have become this one happened. */
FORCE_INLINE uint32_t doca_pcc_dev_get_roce_first_timestamp(doca_pcc_dev_event_t* event) { return event->first_time; }
/* TX. */
FORCE_INLINE doca_pcc_dev_roce_tx_cntrs_t doca_pcc_dev_get_roce_tx_cntrs(doca_pcc_dev_event_t* event) {
  return event->sent;
}
/* ACK, NACK, CNP. */
FORCE_INLINE uint32_t doca_pcc_dev_get_roce_ack_first_sn(doca_pcc_dev_event_t* event) { return event->first_serial; }
FORCE_INLINE doca_pcc_dev_ack_nack_cnp_extra_t doca_pcc_dev_get_ack_nack_cnp_extra(doca_pcc_dev_event_t* event) {
  return event->answers;
}

/* RTT: when the request was sent and came, and the response was sent, each by the clock of the NIC where it happened.
 * The response came at the event's time. */
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_req_send_timestamp(doca_pcc_dev_event_t* event) {
  return rocebox_pcc_network_word(event->answer);
}
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_req_recv_timestamp(doca_pcc_dev_event_t* event) {
  return rocebox_pcc_network_word(event->answer + 4);
}
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_resp_send_timestamp(doca_pcc_dev_event_t* event) {
  return rocebox_pcc_network_word(event->answer + 8);
}
/* RTT: what the peer's program wrote in place of the three times, byte by byte. */
FORCE_INLINE unsigned char* doca_pcc_dev_get_rtt_raw_data(doca_pcc_dev_event_t* event) { return event->answer; }
FORCE_INLINE size_t doca_pcc_dev_get_rtt_raw_data_size(doca_pcc_dev_event_t* event) {
  return ((void)event, sizeof event->answer);
}
/* RTT of ConnectX-8's responses: of version 0 there is nothing more. */
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_resp_version(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_np_rx_byte_counter(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
FORCE_INLINE uint32_t doca_pcc_dev_get_rtt_resp_port_type(doca_pcc_dev_event_t* event) { return ((void)event, 0); }

/* Of SACKs and of NACKs of trimmed packets, which never come. */
FORCE_INLINE uint32_t doca_pcc_dev_get_sack_tx_timestamp(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
FORCE_INLINE uint32_t doca_pcc_dev_get_trimm_nack_tx_timestamp(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
FORCE_INLINE uint32_t doca_pcc_dev_get_sack_ecn_mark(doca_pcc_dev_event_t* event) { return ((void)event, 0); }

#ifdef __cplusplus
}
#endif
#endif
