// SPDX-License-Identifier: BSD-3-Clause
// The headers as C++ reads them, and all that is new in them.
#include "pcc_new_names.h"

extern "C" void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  *disable_event_bitmask = pcc_new_names_at_first();
}
extern "C" void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                                       const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  doca_pcc_dev_default_internal_algo(algo_ctxt, event, attr, results);
  results->rtt_req = pcc_new_names_of(algo_ctxt, event);
}
