/* SPDX-License-Identifier: BSD-3-Clause */
/* swift_control, whose algorithm runs so many times in one event as a message of the host says: all but the first without
 * the interface around it, so that its own time can be told from the interface's. */
#define doca_pcc_dev_user_algo swift_control_algo
#include "nic_model/pcc/programs/swift_control.c"
#undef doca_pcc_dev_user_algo

static uint32_t times = 1;

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  const doca_pcc_dev_results_t before = *results;
  for (uint32_t i = 0; i < times; i++) {
    *results = before;
    swift_control_algo(algo_ctxt, event, attr, results);
  }
}

doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) {
  (void)max_response_size, (void)response, (void)response_size;
  if (request_size != sizeof times) return DOCA_PCC_DEV_STATUS_FAIL;
  __builtin_memcpy(&times, request, sizeof times);
  return DOCA_PCC_DEV_STATUS_OK;
}
