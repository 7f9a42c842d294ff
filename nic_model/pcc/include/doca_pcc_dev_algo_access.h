/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of algorithms: what parameters and counters each has, and which stands in which slot of which port. What is
 * out of range is DOCA_PCC_DEV_STATUS_FAIL. */
#ifndef ROCEBOX_DOCA_PCC_DEV_ALGO_ACCESS_H
#define ROCEBOX_DOCA_PCC_DEV_ALGO_ACCESS_H

#include <doca_pcc_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Slots of reaction points and of notification points; here they are the same. */
#define DOCA_PCC_DEV_TARGET_APP_RP 0
#define DOCA_PCC_DEV_TARGET_APP_NP 1
#define DOCA_PCC_DEV_ALGO_SLOT(target_app, ppcc_algo_slot) ((ppcc_algo_slot)&0xffff)

/* A text is an address and its bytes, the final 0 counted or not. */
struct doca_pcc_dev_algo_meta_data {
  uint32_t algo_id;
  uint32_t algo_major_version;
  uint32_t algo_minor_version;
  uint32_t algo_desc_size;
  uint64_t algo_desc_addr;
};

/* Once for each algorithm, in doca_pcc_dev_user_init; then each parameter and counter; then its slots. */
doca_pcc_dev_error_t doca_pcc_dev_algo_init_metadata(uint32_t algo_idx,
                                                     const struct doca_pcc_dev_algo_meta_data* user_def,
                                                     uint32_t param_num, uint32_t counter_num);
/* `permissions` 1: it can be changed from outside. */
doca_pcc_dev_error_t doca_pcc_dev_algo_init_param(uint32_t algo_idx, uint32_t param_id, uint32_t default_value,
                                                  uint32_t max_value, uint32_t min_value, uint32_t permissions,
                                                  uint32_t param_desc_size, uint64_t param_desc_addr);
doca_pcc_dev_error_t doca_pcc_dev_algo_init_counter(uint32_t algo_idx, uint32_t counter_id, uint32_t max_value,
                                                    uint32_t permissions, uint32_t counter_desc_size,
                                                    uint64_t counter_desc_addr);
/* The port has parameters and counters of its own in that slot, with the defaults. `algo_en` 0: flows of the slot have
 * the internal algorithm. */
doca_pcc_dev_error_t doca_pcc_dev_init_algo_slot(uint32_t portid, uint32_t algo_slot, uint32_t algo_idx,
                                                 uint32_t algo_en);

/* Of a slot without an algorithm: 0, and null. */
uint32_t doca_pcc_dev_get_counters_num(uint32_t port_num, uint32_t algo_slot);
uint32_t* doca_pcc_dev_get_counters(uint32_t port_num, uint32_t algo_slot);
uint32_t doca_pcc_dev_get_algo_params_num(uint32_t port_num, uint32_t algo_slot);
uint32_t* doca_pcc_dev_get_algo_params(uint32_t port_num, uint32_t algo_slot);
/* Of a slot without one: DOCA_PCC_DEV_ALGO_INDEX_INTERNAL. */
uint32_t doca_pcc_dev_get_algo_index(uint32_t port_num, uint32_t algo_slot);

#ifdef __cplusplus
}
#endif
#endif
