/* SPDX-License-Identifier: BSD-3-Clause */
/* pcc_declared: says what it needs before it is initialised, and counts what is answered otherwise than it should be.
 */
#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>

#define REFUSED(call) ((call) != DOCA_PCC_DEV_STATUS_FAIL)
#define TAKEN(call) ((call) != DOCA_PCC_DEV_STATUS_OK)

static uint32_t wrong = 100; /* until it was asked */

void doca_pcc_dev_user_declare_memory(void) {
  wrong = 0;
  wrong += TAKEN(doca_pcc_dev_declare_slot_algo(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_RP, 2), 1));
  wrong += TAKEN(doca_pcc_dev_declare_slot_algo(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_NP, 2), 0));
  wrong += TAKEN(doca_pcc_dev_declare_slot_algo(0, 3, 1));
  wrong += TAKEN(doca_pcc_dev_declare_slot_algo(0, 3, DOCA_PCC_DEV_SLOT_UNASSIGNED));
  wrong += REFUSED(doca_pcc_dev_declare_slot_algo(0, 8, 1));
  wrong += REFUSED(doca_pcc_dev_declare_slot_algo(0, 2, 8));
  wrong += REFUSED(doca_pcc_dev_declare_algo(8, 1, 1));
  wrong += REFUSED(doca_pcc_dev_declare_algo(1, 45, 1));
  wrong += TAKEN(doca_pcc_dev_declare_algo(1, 44, 2));
}

void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  static const struct doca_pcc_dev_algo_meta_data about = {.algo_id = 1};
  wrong += REFUSED(doca_pcc_dev_declare_algo(1, 1, 1));
  wrong += REFUSED(doca_pcc_dev_declare_slot_algo(0, 4, 1));
  wrong += REFUSED(doca_pcc_dev_algo_init_metadata(0, &about, 1, 1));
  wrong += REFUSED(doca_pcc_dev_algo_init_metadata(1, &about, 44, 3));
  wrong += TAKEN(doca_pcc_dev_algo_init_metadata(1, &about, 44, 1));
  wrong += REFUSED(doca_pcc_dev_init_algo_slot(0, 3, 1, 1));
  wrong += REFUSED(doca_pcc_dev_init_algo_slot(0, DOCA_PCC_DEV_ALGO_SLOT(2, 2), 1, 1));
  wrong += REFUSED(doca_pcc_dev_init_algo_slot(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_NP, 2), 1, 1));
  wrong += TAKEN(doca_pcc_dev_init_algo_slot(0, 2, 1, 1));
  wrong += doca_pcc_dev_get_algo_params(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_NP, 2)) !=
           doca_pcc_dev_get_algo_params(0, 2);
  wrong += doca_pcc_dev_get_algo_index(0, DOCA_PCC_DEV_ALGO_SLOT(DOCA_PCC_DEV_TARGET_APP_NP, 2)) != 1;
  wrong += doca_pcc_dev_get_algo_params_num(0, 2) != 44;
  wrong += DOCA_PCC_DEV_ALGO_SLOT(1, 0x10002) != 0x10002;
  doca_pcc_dev_printf("%u wrong\n", wrong);
  *disable_event_bitmask = 0;
}

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  (void)algo_ctxt, (void)attr;
  results->rate = 1000 + doca_pcc_dev_get_dscp(event);
}
