/* SPDX-License-Identifier: BSD-3-Clause */
/* Programmable congestion control, the reaction point: a program has the functions that are called
 * doca_pcc_dev_user_..., and calls the others. Written from NVIDIA's public documentation of DOCA PCC's device side, so
 * that programs for it are compiled here as they are. ../README.md says what each does here. */
#ifndef ROCEBOX_DOCA_PCC_DEV_H
#define ROCEBOX_DOCA_PCC_DEV_H

#include <doca_pcc_dev_common.h>
#include <doca_pcc_dev_data_structures.h>
#include <doca_pcc_dev_services.h>
#include <doca_pcc_dev_utils.h>

#define DOCA_PCC_DEV_ACK_NACK_TX_EVENT_DISABLED_SUPPORTED (__NV_DPA >= __NV_DPA_CX8)

#ifdef __cplusplus
extern "C" {
#endif

/* The internal algorithm, DCQCN, for the flow whose event this is. */
void doca_pcc_dev_default_internal_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                                        const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results);

/* The program's: handles one event. */
void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results);
/* The program's: called once, when it is loaded. It declares algorithms and puts them into slots; events whose bit it
 * sets are not brought. */
void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask);
/* The program's: parameters from param_id_base on are to have new values, which are in their ranges. Not
 * DOCA_PCC_DEV_STATUS_OK: they stay as they are. */
doca_pcc_dev_error_t doca_pcc_dev_user_set_algo_params(uint32_t port_num, uint32_t algo_slot, uint32_t param_id_base,
                                                       uint32_t param_num, const uint32_t* new_param_values,
                                                       uint32_t* params);

/* What the probes of the flow carry besides, in words of 32 bits. DOCA_PCC_DEV_STATUS_FAIL: probes have one form here.
 */
doca_pcc_dev_error_t doca_pcc_dev_custom_header_set(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                                                    uint32_t* header, uint32_t header_size, uint32_t wait_completed);

/* DSCP of the flow's packets, 0 to 63; 0 where packets are replayed. */
FORCE_INLINE uint32_t doca_pcc_dev_get_dscp(doca_pcc_dev_event_t* event) { return event->dscp; }

/* Hints of the host about a flow: nobody gives any here. The program's own, which would fill 64 bytes, is not called;
 * the others say 0, and null. */
void doca_pcc_dev_user_cc_hint_init_caps(uint8_t* caps) __attribute__((weak));
FORCE_INLINE uint32_t doca_pcc_dev_get_cc_hint_id(doca_pcc_dev_event_t* event) { return ((void)event, 0); }
FORCE_INLINE uint16_t doca_pcc_dev_get_cc_hint_usn(doca_pcc_dev_event_t* event, uint32_t hint_id) {
  return ((void)event, (void)hint_id, 0);
}
FORCE_INLINE const uint8_t* doca_pcc_dev_get_cc_hint(doca_pcc_dev_event_t* event, uint32_t hint_id) {
  (void)event, (void)hint_id;
  return NULL;
}

/* The program's, if it wants to say what it needs: called before doca_pcc_dev_user_init. Where it declares anything,
 * that binds: an algorithm has no more parameters and counters than were declared, and stands in no other slots. */
void doca_pcc_dev_user_declare_memory(void) __attribute__((weak));
/* In place of an algorithm's number: none. */
#define DOCA_PCC_DEV_SLOT_UNASSIGNED 0x10
/* In that alone; elsewhere, and where a number is out of range: DOCA_PCC_DEV_STATUS_FAIL. */
doca_pcc_dev_error_t doca_pcc_dev_declare_slot_algo(uint32_t port_num, uint32_t algo_slot, uint8_t algo_idx);
doca_pcc_dev_error_t doca_pcc_dev_declare_algo(uint32_t algo_idx, uint32_t param_num, uint32_t counter_num);
/* DOCA_PCC_DEV_STATUS_FAIL: each slot has counters of its own here, and there are no groups. */
doca_pcc_dev_error_t doca_pcc_dev_declare_num_counter_groups(uint32_t num_counter_groups);

#ifdef __cplusplus
}
#endif
#endif
