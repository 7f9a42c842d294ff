/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of algorithms: what parameters and counters each has, and which stands in which slot of which port. What is
 * out of range is DOCA_PCC_DEV_STATUS_FAIL. */
#ifndef ROCEBOX_DOCA_PCC_DEV_ALGO_ACCESS_H
#define ROCEBOX_DOCA_PCC_DEV_ALGO_ACCESS_H

#include <doca_pcc_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A slot's number may say whose it is, in its upper half: of reaction points and of notification points. Here they are
 * the same slots. */
#define DOCA_PCC_DEV_TARGET_APP_RP 0
#define DOCA_PCC_DEV_TARGET_APP_NP 1
#define DOCA_PCC_DEV_ALGO_SLOT(target_app, ppcc_algo_slot) ((target_app) << 16 | ((ppcc_algo_slot)&0xffff))

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

/* Groups of counters, counters for each thread and histograms are not here: DOCA_PCC_DEV_STATUS_FAIL. At most 0 threads
 * share counters; a histogram's handle is null, has no description, and takes values that nobody keeps. */
doca_pcc_dev_error_t doca_pcc_dev_set_slot_counter_group(uint32_t port_num, uint32_t algo_slot,
                                                         uint32_t counter_group_id);
doca_pcc_dev_error_t doca_pcc_dev_declare_threads_per_counter_set(uint32_t threads_per_counter_set);
uint32_t doca_pcc_dev_get_max_threads_per_counter_set(void);
doca_pcc_dev_error_t doca_pcc_dev_set_counter_type(uint32_t algo_idx, uint32_t counter_id, uint32_t type);
doca_pcc_dev_error_t doca_pcc_dev_declare_num_of_histograms(uint32_t num_histograms);
doca_pcc_dev_error_t doca_pcc_dev_histogram_init(uint32_t port_num, uint32_t target_app, uint32_t counter_group_id,
                                                 uint32_t histogram_id, const uint32_t* edges, uint32_t num_bins,
                                                 doca_pcc_dev_histogram_mode_t mode, const char* description,
                                                 doca_pcc_dev_histogram_t* h);
doca_pcc_dev_error_t doca_pcc_dev_histogram_clear(doca_pcc_dev_histogram_t h);
void doca_pcc_dev_histogram_update(doca_pcc_dev_histogram_t h, uint32_t value);
const char* doca_pcc_dev_histogram_get_description(doca_pcc_dev_histogram_t h);
doca_pcc_dev_error_t doca_pcc_dev_histogram_disable(doca_pcc_dev_histogram_t h);
doca_pcc_dev_error_t doca_pcc_dev_histogram_enable(doca_pcc_dev_histogram_t h);
doca_pcc_dev_error_t doca_pcc_dev_algo_register_hist_ids(uint32_t algo_idx, const uint32_t* hist_ids,
                                                         uint32_t num_hist_ids);

#ifdef __cplusplus
}
#endif
#endif
