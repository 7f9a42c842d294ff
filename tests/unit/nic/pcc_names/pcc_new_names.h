/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that later versions of DOCA PCC have, used: as C and as C++. What is not here must answer so. */
#ifndef PCC_NEW_NAMES_H
#define PCC_NEW_NAMES_H

#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>
#include <doca_version.h>

#if DOCA_VERSION_MAJOR != 3 || DOCA_VERSION_MINOR != 0 || DOCA_PCC_DEV_SLOT_UNASSIGNED != 0x10
#error "of which version the interface is"
#endif
#ifdef DOCA_PCC_DEV_EVNT_ROCE_ACK_MASK
#error "programs define this name"
#endif

/* Opaque: pointers to them. */
struct pcc_insides {
  doca_pcc_dev_roce_tx_t* tx;
  doca_pcc_dev_ack_nack_cnp_t* answer;
  doca_pcc_dev_rtt_tstamp_t* rtt;
  doca_pcc_dev_fw_data_t* firmware;
  doca_pcc_dev_event_spec_attr_t* any;
#if __NV_DPA >= __NV_DPA_CX8
  doca_pcc_dev_event_general_dword2_t* word;
  doca_pcc_dev_rtt_spec_data0_t* data0;
  doca_pcc_dev_rtt_spec_data1_t* data1;
  doca_pcc_dev_rtt_spec_data2_t* data2;
  doca_pcc_dev_rtt_spec_data3_t* data3;
#endif
};

DOCA_USED static const char* pcc_version(void) {
  return DOCA_VERSION_LTE_CURRENT(2, 9, 3) && !DOCA_VERSION_LTE_CURRENT(3, 1, 0) && DOCA_VERSION_EQ_CURRENT(3, 0, 0) &&
                 DOCA_VERSION_EXACT == DOCA_VERSION_CALC(3, 0, 0)
             ? doca_version()
             : NULL;
}

/* Of what is not here so many answer as if it was. */
DOCA_DEPRECATED static inline uint32_t pcc_new_names_at_first(void) {
  static const uint32_t edges[2] = {0, 1};
  doca_pcc_dev_histogram_t histogram = NULL;
  uint32_t wrong = 0;
  wrong += doca_pcc_dev_declare_num_counter_groups(DOCA_PCC_DEV_DEFAULT_NUM_COUNTER_GROUP) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_set_slot_counter_group(0, 0, DOCA_PCC_DEV_DEFAULT_COUNTER_GROUP_ID) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_declare_threads_per_counter_set(1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_get_max_threads_per_counter_set() != 0;
  wrong += doca_pcc_dev_set_counter_type(0, 0, DOCA_PCC_DEV_COUNTER_TYPE_MAX) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_declare_num_of_histograms(1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_histogram_init(0, DOCA_PCC_DEV_TARGET_APP_RP, 0, 0, edges, 1, DOCA_PCC_DEV_HISTOGRAM_MODE_FREE,
                                       "", &histogram) == DOCA_PCC_DEV_STATUS_OK;
  doca_pcc_dev_histogram_update(histogram, 1);
  wrong += histogram != NULL || doca_pcc_dev_histogram_get_description(histogram) != NULL;
  wrong += doca_pcc_dev_histogram_enable(histogram) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_histogram_disable(histogram) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_histogram_clear(histogram) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_algo_register_hist_ids(0, edges, 1) == DOCA_PCC_DEV_STATUS_OK;
  wrong += doca_pcc_dev_declare_algo(0, 1, 1) == DOCA_PCC_DEV_STATUS_OK; /* it is too late */
  wrong += doca_pcc_dev_declare_slot_algo(0, 0, 0) == DOCA_PCC_DEV_STATUS_OK;
  return wrong + (pcc_version() == NULL);
}

static inline uint32_t pcc_new_names_of(doca_pcc_dev_algo_ctxt_t* flow, doca_pcc_dev_event_t* event) {
  uint32_t header[1] = {0};
  uint32_t sum = doca_pcc_dev_custom_header_set(flow, event, header, 1, 0) == DOCA_PCC_DEV_STATUS_OK;
  sum += doca_pcc_dev_get_sack_tx_timestamp(event) + doca_pcc_dev_get_trimm_nack_tx_timestamp(event) +
         doca_pcc_dev_get_sack_ecn_mark(event) + doca_pcc_dev_get_dscp(event) + doca_pcc_dev_get_cc_hint_id(event) +
         doca_pcc_dev_get_cc_hint_usn(event, 0) + (doca_pcc_dev_get_cc_hint(event, 0) != NULL);
#if __NV_DPA >= __NV_DPA_CX8
  sum += doca_pcc_dev_get_ev_attr(event).plane_num;
#endif
  return sum;
}

#if __NV_DPA >= __NV_DPA_CX9
static inline doca_pcc_dev_results_extra_t* pcc_extra(doca_pcc_dev_results_t* results) {
  return DOCA_PCC_DEV_QP_IS_REQUESTOR == 32 ? results->extra : NULL;
}
#endif

#endif
