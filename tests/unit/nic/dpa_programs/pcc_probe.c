/* SPDX-License-Identifier: BSD-3-Clause */
/* pcc_probe: a program of congestion control that counts what it is told, answers what its parameters say, and does what no
 * program should. */
#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>

enum { kRate, kProbes, kMischief, kFixed, kPort, kParameters };
enum {
  kKinds = 0, /* to 6: events of each kind */
  kUnits = 7, /* of 32 bytes */
  kPackets,
  kProbesSent,
  kRtt,
  kNackKind,
  kWrongContexts,
  kRank,
  kGlobal,
  kSpeed,
  kPortCalls,
  kReceived,
  kSent,
  kMicroseconds,
  kRequestToThere,
  kSerial,
  kLastPort,
  kCounters
};

static uint32_t global, port_calls, sampled[2];
static volatile uint64_t sink;

static __attribute__((noinline)) uint64_t deeper(volatile uint64_t* from, uint64_t depth) {
  volatile uint64_t room[64];
  room[depth & 63] = from ? from[0] : 0;
  if (depth == UINT64_MAX) return 0;
  return deeper(room, depth + 1) + room[(depth + 1) & 63];
}

static __attribute__((noinline)) void misbehave(uint32_t how, uint32_t* context, uint32_t* param, uint32_t* counter) {
  static uint32_t unknown = 0x1000031, *nowhere;
  switch (how) {
    case 1:
      *(volatile uint32_t*)0 = 1;
      break;
    case 2:
      ((volatile uint32_t*)context)[12] = 1;
      break;
    case 3:
      ((volatile uint32_t*)context)[-1] = 1;
      break;
    case 4:
      for (;;) sink++;
    case 5:
      sink = deeper(0, 0);
      break;
    case 6:
      ((volatile uint32_t*)counter)[kCounters] = 1;
      break;
    case 7:
      ((volatile uint32_t*)param)[kParameters] = 1;
      break;
    case 8:
      __builtin_trap();
    case 9:
      doca_pcc_dev_nic_counters_config(&unknown, 1, nowhere);
      break;
    default:
      break;
  }
}

/* What no handler but that of events can do. */
doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) {
  (void)request, (void)request_size, (void)max_response_size, (void)response;
  doca_pcc_dev_results_t results;
  doca_pcc_dev_default_internal_algo(0, 0, 0, &results);
  *response_size = 0;
  return DOCA_PCC_DEV_STATUS_OK;
}

static void count(doca_pcc_dev_event_t* event, uint32_t* counter) {
  const doca_pcc_dev_event_general_attr_t about = doca_pcc_dev_get_ev_attr(event);
  counter[kKinds + about.ev_type]++;
  counter[kSerial] = doca_pcc_dev_get_sn(event);
  counter[kRank] = doca_pcc_dev_thread_rank();
  counter[kGlobal] = ++global;
  counter[kSpeed] = doca_pcc_dev_get_port_speed(about.port_num);
  counter[kPortCalls] = port_calls;
  counter[kMicroseconds] = doca_pcc_dev_get_timer_lo();
  counter[kLastPort] = rocebox_pcc_udp_source_port();
  doca_pcc_dev_nic_counters_sample();
  counter[kReceived] = sampled[0];
  counter[kSent] = sampled[1];
  if (about.ev_type == DOCA_PCC_DEV_EVNT_ROCE_TX) {
    counter[kUnits] += doca_pcc_dev_get_roce_tx_cntrs(event).sent_32bytes;
    counter[kPackets] += doca_pcc_dev_get_roce_tx_cntrs(event).sent_pkts;
    counter[kProbesSent] += (about.flags & DOCA_PCC_DEV_TX_FLAG_RTT_REQ_SENT) != 0;
  }
  if (about.ev_type == DOCA_PCC_DEV_EVNT_RTT) {
    counter[kRtt] = doca_pcc_dev_get_timestamp(event) - doca_pcc_dev_get_rtt_req_send_timestamp(event);
    counter[kRequestToThere] =
        doca_pcc_dev_get_rtt_req_recv_timestamp(event) - doca_pcc_dev_get_rtt_req_send_timestamp(event);
  }
  if (about.ev_type == DOCA_PCC_DEV_EVNT_ROCE_NACK) counter[kNackKind] = about.ev_subtype;
}

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  const uint32_t slot = attr->algo_slot;
  uint32_t *param = doca_pcc_dev_get_algo_params(0, slot), *counter = doca_pcc_dev_get_counters(0, slot);
  if (!param) {
    doca_pcc_dev_default_internal_algo(algo_ctxt, event, attr, results);
    return;
  }
  count(event, counter);
  /* Zeros at first; then what was left there. */
  for (int i = 0; i < 12; i++) counter[kWrongContexts] += algo_ctxt->data[i] != algo_ctxt->data[0];
  for (int i = 0; i < 12; i++) algo_ctxt->data[i]++;
  if (doca_pcc_dev_get_sn(event) != algo_ctxt->data[0]) counter[kWrongContexts]++;
  misbehave(param[kMischief], algo_ctxt->data, param, counter);
  if (param[kPort]) rocebox_pcc_set_udp_source_port((uint16_t)param[kPort]);
  results->rate = param[kRate];
  results->rtt_req = param[kProbes] && doca_pcc_dev_get_ev_attr(event).ev_type != DOCA_PCC_DEV_EVNT_ROCE_TX;
  if (doca_pcc_dev_get_sn(event) == 1) results->rtt_req = param[kProbes];
}

void doca_pcc_dev_user_port_info_changed(uint32_t portid) {
  static uint32_t ids[2];
  ids[0] = DOCA_PCC_DEV_GET_PORT_COUNTER_ID(portid, DOCA_PCC_DEV_NIC_COUNTER_TYPE_RX_BYTES, 0);
  ids[1] = DOCA_PCC_DEV_GET_PORT_COUNTER_ID(portid, DOCA_PCC_DEV_NIC_COUNTER_TYPE_TX_BYTES, 0);
  doca_pcc_dev_nic_counters_config(ids, 2, sampled);
  port_calls++;
  if (doca_pcc_dev_get_algo_params(0, 0)[kMischief] == 19) misbehave(1, ids, ids, ids);
}

void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  static const char text[] = "counts";
  const struct doca_pcc_dev_algo_meta_data about = {7, 1, 0, sizeof text, (uint64_t)(uintptr_t)text};
  uint32_t wrong = 0;
  wrong += doca_pcc_dev_algo_init_metadata(8, &about, 1, 1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_metadata(0, &about, 45, 1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_metadata(0, &about, 1, 64) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_init_algo_slot(0, 0, 0, 1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_metadata(0, &about, kParameters, kCounters) != DOCA_PCC_DEV_STATUS_OK;
  for (uint32_t i = 0; i < kParameters; i++)
    wrong += doca_pcc_dev_algo_init_param(0, i, i == kRate ? DOCA_PCC_DEV_MAX_RATE : 0, i == kMischief ? 20 : UINT32_MAX, 0,
                                          i != kFixed, sizeof text, (uint64_t)(uintptr_t)text) != DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_param(0, kParameters, 0, 1, 0, 1, 0, 0) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_param(0, 0, 5, 1, 0, 1, 0, 0) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_init_counter(0, kCounters, 0, 0, 0, 0) == DOCA_PCC_DEV_STATUS_OK;
  for (uint32_t port = 0; port < DOCA_PCC_DEV_MAX_NUM_PORTS; port++)
    wrong += doca_pcc_dev_init_algo_slot(port, 0, 0, 1) != DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_init_algo_slot(0, 1, 0, 0) != DOCA_PCC_DEV_STATUS_OK; /* there, and off */
  wrong += doca_pcc_dev_init_algo_slot(0, 8, 0, 1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_get_algo_params(0, 2) != 0 || doca_pcc_dev_get_counters_num(0, 0) != kCounters;
  doca_pcc_dev_printf("%u wrong\n", wrong);
  *disable_event_bitmask = 0;
}

doca_pcc_dev_error_t doca_pcc_dev_user_set_algo_params(uint32_t port_num, uint32_t algo_slot, uint32_t param_id_base,
                                                       uint32_t param_num, const uint32_t* new_param_values,
                                                       uint32_t* params) {
  (void)port_num, (void)algo_slot;
  doca_pcc_dev_nic_counters_sample();
  doca_pcc_dev_get_counters(0, 0)[kReceived] = sampled[0];
  doca_pcc_dev_get_counters(0, 0)[kSent] = sampled[1];
  if (param_id_base == kMischief && new_param_values[0] == 20) misbehave(1, params, params, params);
  return param_num == 1 && param_id_base == kRate && new_param_values[0] == 13 ? DOCA_PCC_DEV_STATUS_FAIL
                                                                              : DOCA_PCC_DEV_STATUS_OK;
}
