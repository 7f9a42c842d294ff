/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of DOCA PCC's reaction point that its public documentation lists and programs use, as C sees them: what is
 * missing or has another form is no program. Functions have the types that they are documented with; names of later
 * versions are in pcc_new_names.h, which C++ reads, too. */
#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>
#include "pcc_new_names.h"
#include "utils.h"

#if !defined(likely) || !defined(unlikely)
#error "utils.h has the hints for branches that public programs use"
#endif

#define SAME_TYPE(what, ...) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(what), __typeof__(__VA_ARGS__)), #what)
typedef doca_pcc_dev_event_t* event_p;

SAME_TYPE(doca_pcc_dev_user_init, void(uint32_t*));
SAME_TYPE(doca_pcc_dev_user_algo,
          void(doca_pcc_dev_algo_ctxt_t*, event_p, const doca_pcc_dev_attr_t*, doca_pcc_dev_results_t*));
SAME_TYPE(doca_pcc_dev_default_internal_algo,
          void(doca_pcc_dev_algo_ctxt_t*, event_p, const doca_pcc_dev_attr_t*, doca_pcc_dev_results_t*));
SAME_TYPE(doca_pcc_dev_user_set_algo_params,
          doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t, uint32_t, const uint32_t*, uint32_t*));
SAME_TYPE(doca_pcc_dev_user_port_info_changed, void(uint32_t));
SAME_TYPE(doca_pcc_dev_user_mailbox_handle, doca_pcc_dev_error_t(void*, uint32_t, uint32_t, void*, uint32_t*));
SAME_TYPE(doca_pcc_dev_algo_init_metadata,
          doca_pcc_dev_error_t(uint32_t, const struct doca_pcc_dev_algo_meta_data*, uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_algo_init_param,
          doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t));
SAME_TYPE(doca_pcc_dev_algo_init_counter,
          doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t));
SAME_TYPE(doca_pcc_dev_init_algo_slot, doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_get_counters_num, uint32_t(uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_get_counters, uint32_t*(uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_get_algo_params_num, uint32_t(uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_get_algo_params, uint32_t*(uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_get_algo_index, uint32_t(uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_nic_counters_config, void(uint32_t*, uint32_t, uint32_t*));
SAME_TYPE(doca_pcc_dev_nic_counters_sample, void(void));
SAME_TYPE(doca_pcc_dev_get_logical_ports, uint32_t(void));
SAME_TYPE(doca_pcc_dev_get_port_planes, uint32_t(uint32_t));
SAME_TYPE(doca_pcc_dev_get_port_speed, uint32_t(uint32_t));
SAME_TYPE(doca_pcc_dev_thread_rank, unsigned(void));
SAME_TYPE(doca_pcc_dev_printf, void(const char*, ...));
SAME_TYPE(doca_pcc_dev_trace_5, void(int, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
SAME_TYPE(doca_pcc_dev_trace_flush, void(void));
SAME_TYPE(doca_pcc_dev_custom_header_set,
          doca_pcc_dev_error_t(doca_pcc_dev_algo_ctxt_t*, event_p, uint32_t*, uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_user_declare_memory, void(void));
SAME_TYPE(doca_pcc_dev_declare_slot_algo, doca_pcc_dev_error_t(uint32_t, uint32_t, uint8_t));
SAME_TYPE(doca_pcc_dev_declare_algo, doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_declare_num_counter_groups, doca_pcc_dev_error_t(uint32_t));
SAME_TYPE(doca_pcc_dev_user_cc_hint_init_caps, void(uint8_t*));
SAME_TYPE(doca_pcc_dev_get_cc_hint_id, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_cc_hint_usn, uint16_t(event_p, uint32_t));
SAME_TYPE(doca_pcc_dev_get_cc_hint, const uint8_t*(event_p, uint32_t));
SAME_TYPE(doca_pcc_dev_get_dscp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_sack_tx_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_trimm_nack_tx_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_sack_ecn_mark, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_set_slot_counter_group, doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t));
SAME_TYPE(doca_pcc_dev_histogram_init,
          doca_pcc_dev_error_t(uint32_t, uint32_t, uint32_t, uint32_t, const uint32_t*, uint32_t,
                               doca_pcc_dev_histogram_mode_t, const char*, doca_pcc_dev_histogram_t*));
/* Getters of events. */
SAME_TYPE(doca_pcc_dev_get_ev_attr, doca_pcc_dev_event_general_attr_t(event_p));
SAME_TYPE(doca_pcc_dev_get_flowtag, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_sn, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_flow_qpn, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_ttl_hoplimit, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_fw_settings, uint32_t(event_p, int));
SAME_TYPE(doca_pcc_dev_get_roce_first_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_roce_tx_cntrs, doca_pcc_dev_roce_tx_cntrs_t(event_p));
SAME_TYPE(doca_pcc_dev_get_roce_ack_first_sn, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_ack_nack_cnp_extra, doca_pcc_dev_ack_nack_cnp_extra_t(event_p));
SAME_TYPE(doca_pcc_dev_get_rtt_req_send_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_rtt_req_recv_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_rtt_resp_send_timestamp, uint32_t(event_p));
SAME_TYPE(doca_pcc_dev_get_rtt_raw_data, unsigned char*(event_p));
SAME_TYPE(doca_pcc_dev_get_rtt_raw_data_size, size_t(event_p));

#define FIELD(type, name) (void)sizeof(((type*)0)->name)
_Static_assert(sizeof(doca_pcc_dev_algo_ctxt_t) == 48, "12 words of a flow");
_Static_assert(DOCA_PCC_DEV_MAX_RATE == 1u << 20 && DOCA_PCC_DEV_LOG_MAX_RATE == 20, "a fraction of 20 bits");
_Static_assert(DOCA_PCC_DEV_DEFAULT_RATE == 4096, "a 256th of the port");
_Static_assert(DOCA_PCC_DEV_EVNT_NULL == 0 && DOCA_PCC_DEV_EVNT_FW == 1 && DOCA_PCC_DEV_EVNT_ROCE_CNP == 2 &&
                   DOCA_PCC_DEV_EVNT_ROCE_TX == 3 && DOCA_PCC_DEV_EVNT_ROCE_ACK == 4 &&
                   DOCA_PCC_DEV_EVNT_ROCE_NACK == 5 && DOCA_PCC_DEV_EVNT_RTT == 6 &&
                   DOCA_PCC_DEV_EVNT_ROCE_TX_FOR_ACK_NACK == 31,
               "kinds of events");
_Static_assert(DOCA_PCC_DEV_NACK_EVNT_NULL == 0 && DOCA_PCC_DEV_NACK_EVNT_RNR == 1 && DOCA_PCC_DEV_NACK_EVNT_OOS == 2 &&
                   DOCA_PCC_DEV_NACK_EVNT_DUP_READ == 3,
               "kinds of NACKs");
_Static_assert(DOCA_PCC_DEV_TX_FLAG_ACK_EXPECTED == 1 && DOCA_PCC_DEV_TX_FLAG_OVERLOADED == 2 &&
                   DOCA_PCC_DEV_TX_FLAG_RTT_REQ_SENT == 4 && DOCA_PCC_DEV_TX_FLAG_IS_REQUESTOR == 32,
               "flags of TX");
_Static_assert(DOCA_PCC_DEV_ALGO_SLOT_INTERNAL == 15 && DOCA_PCC_DEV_ALGO_INDEX_INTERNAL == 15 &&
                   DOCA_PCC_DEV_MAX_NUM_USER_SLOTS == 8 && DOCA_PCC_DEV_MAX_NUM_ALGOS == 8 &&
                   DOCA_PCC_DEV_MAX_NUM_PARAMS_PER_ALGO == 44 && DOCA_PCC_DEV_MAX_NUM_COUNTERS_PER_ALGO >= 15,
               "tables");
_Static_assert(DOCA_PCC_DEV_STATUS_OK == 0 && DOCA_PCC_DEV_STATUS_FAIL == 1, "status");
_Static_assert(DOCA_PCC_DEV_NIC_COUNTER_PORT0_RX_BYTES == 0x10 && DOCA_PCC_DEV_NIC_COUNTER_PORT3_TX_BYTES == 0x23,
               "counters");
#if __NV_DPA < __NV_DPA_BF3 || (__NV_DPA >= __NV_DPA_CX8) != DOCA_PCC_DEV_ACK_NACK_TX_EVENT_DISABLED_SUPPORTED
#error "a generation of DPAs decides what can be switched off"
#endif
_Static_assert(DOCA_PCC_DEV_MAX_NUM_PORTS == (__NV_DPA >= __NV_DPA_CX8 ? 8 : 4), "ports of a generation");

static uint32_t ids[1], sampled[1];

void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  static const char text[] = "names";
  const struct doca_pcc_dev_algo_meta_data about = {.algo_id = 1,
                                                    .algo_major_version = 1,
                                                    .algo_desc_size = sizeof text,
                                                    .algo_desc_addr = (uint64_t)(uintptr_t)text};
  doca_pcc_dev_algo_init_metadata(0, &about, 1, 1);
  doca_pcc_dev_algo_init_param(0, 0, 1, 2, 0, 1, sizeof text, (uint64_t)(uintptr_t)text);
  doca_pcc_dev_algo_init_counter(0, 0, UINT32_MAX, 0, sizeof text, (uint64_t)(uintptr_t)text);
  doca_pcc_dev_init_algo_slot(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_RP, 0), 0, 1);
  ids[0] = DOCA_PCC_DEV_GET_PORT_COUNTER_ID(0, DOCA_PCC_DEV_NIC_COUNTER_TYPE_TX_BYTES, 0);
  doca_pcc_dev_nic_counters_config(ids, 1, sampled);
  if (pcc_new_names_at_first() != 0) doca_pcc_dev_printf("what is not here was taken\n");
  *disable_event_bitmask = 1u << DOCA_PCC_DEV_EVNT_ROCE_ACK;
}

/* Fixed point, fences and time are macros: they are used. */
static uint32_t arithmetic(uint32_t a) {
  doca_pcc_dev_fence_all();
  doca_pcc_dev_fence_memory();
  doca_pcc_dev_fence_io();
  doca_pcc_dev_fence_w_r();
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_R);
  __dpa_thread_memory_fence(__DPA_RW, __DPA_RW);
  return (uint32_t)(doca_pcc_dev_mult(a, 2) + doca_pcc_dev_fxp_mult(a, 1 << 16) + doca_pcc_dev_fxp_recip(a | 1) +
                    doca_pcc_dev_fxp_power2(a & 0xFFFF) + doca_pcc_dev_fxp_log2(a | 1) + doca_pcc_dev_fls(a) +
                    doca_pcc_dev_get_timer() + doca_pcc_dev_get_timer_lo() + __dpa_thread_cycles() +
                    __dpa_thread_time());
}

FORCE_INLINE uint32_t fields_of(doca_pcc_dev_event_t* event, const doca_pcc_dev_attr_t* attr) {
  const doca_pcc_dev_event_general_attr_t about = doca_pcc_dev_get_ev_attr(event);
  const doca_pcc_dev_roce_tx_cntrs_t sent = doca_pcc_dev_get_roce_tx_cntrs(event);
  const doca_pcc_dev_ack_nack_cnp_extra_t extra = doca_pcc_dev_get_ack_nack_cnp_extra(event);
  return about.ev_type + about.ev_subtype + about.port_num + about.flags + sent.sent_32bytes + sent.sent_pkts +
         extra.num_coalesced + attr->algo_slot + attr->overload;
}

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  FIELD(doca_pcc_dev_results_t, probe_req);
  FIELD(doca_pcc_dev_results_t, probe_type_slot);
  results->credits += pcc_new_names_of(algo_ctxt, event);
  doca_pcc_dev_nic_counters_sample();
  doca_pcc_dev_trace_5(1, doca_pcc_dev_get_logical_ports(), doca_pcc_dev_get_port_planes(0),
                       doca_pcc_dev_get_port_speed(0), sampled[0], doca_pcc_dev_thread_rank());
  doca_pcc_dev_trace_flush();
  doca_pcc_dev_get_counters(0, 0)[0] += doca_pcc_dev_get_counters_num(0, 0) + doca_pcc_dev_get_algo_index(0, 0);
  doca_pcc_dev_default_internal_algo(algo_ctxt, event, attr, results);
  algo_ctxt->data[0] += arithmetic(fields_of(event, attr)) + doca_pcc_dev_get_algo_params(0, 0)[0] +
                        doca_pcc_dev_get_algo_params_num(0, 0) + doca_pcc_dev_get_roce_first_timestamp(event) +
                        doca_pcc_dev_get_roce_ack_first_sn(event) + doca_pcc_dev_get_fw_settings(event, 2) +
                        doca_pcc_dev_get_rtt_resp_send_timestamp(event) + doca_pcc_dev_get_flowtag(event);
  results->rtt_req = doca_pcc_dev_get_rtt_raw_data(event)[doca_pcc_dev_get_rtt_raw_data_size(event) - 1];
}

doca_pcc_dev_error_t doca_pcc_dev_user_set_algo_params(uint32_t port_num, uint32_t algo_slot, uint32_t param_id_base,
                                                       uint32_t param_num, const uint32_t* new_param_values,
                                                       uint32_t* params) {
  (void)port_num, (void)algo_slot, (void)param_id_base, (void)param_num, (void)new_param_values, (void)params;
  return DOCA_PCC_DEV_STATUS_OK;
}
void doca_pcc_dev_user_port_info_changed(uint32_t portid) { doca_pcc_dev_printf("port %u\n", portid); }
doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) {
  *response_size = request_size < max_response_size ? request_size : max_response_size;
  __builtin_memcpy(response, request, *response_size);
  return DOCA_PCC_DEV_STATUS_OK;
}
