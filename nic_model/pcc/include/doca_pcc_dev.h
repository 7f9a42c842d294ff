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

#ifdef __cplusplus
}
#endif
#endif
