/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls as before SDK 24.10: the context comes first. */
#define ROCEBOX_DPA_PROGRAM
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(24, 7, 0)
#include "forms.h"

/* How many of its calls failed; 100 more where the CQEs that it made did not come. */
flexio_dev_rpc_handler_t forms;
__dpa_rpc__ uint64_t forms(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  struct flexio_dev_thread_ctx *context;
  flexio_uintptr_t window = 0;
  uint64_t value = 0x0102030405060708, back = 0, failed = 0;
  cq_context cq = {(void *)e->cq_ring, (void *)e->cq_ring, 0, 1, (uint32_t *)e->cq_doorbell};

  flexio_dev_get_thread_ctx(&context);
  failed += flexio_dev_window_config(context, (uint16_t)e->window, e->window_key);
  failed += flexio_dev_window_ptr_acquire(context, e->host_address, &window);
  failed += flexio_dev_window_mkey_config(context, e->window_key);
  failed += flexio_dev_window_copy_to_host(context, e->host_address + 8, &value, 8);
  failed += flexio_dev_window_copy_from_host(context, &back, e->host_address + 8, 8);
  failed += flexio_dev_cq_arm(context, e->cq_index, e->cq_number);
  failed += flexio_dev_qp_sq_ring_db(context, 0, e->qp_number);
  failed += flexio_dev_zcqe_gen(context, e->cq_number);
  flexio_dev_msix_send(context, e->cq_number);
  *(uint64_t *)window = value;
  write_wqes((union flexio_dev_sqe_seg *)e->send_ring, e->qp_number);
  the_rest(0);
  e->messages = read_cqe(cq.cqe);
  return failed + (back == value ? 0 : 10) + (drain(&cq, (1u << e->log_cq_entries) - 1, 100) == 2 ? 0 : 100);
}
