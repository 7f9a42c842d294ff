/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls as from SDK 24.10 on: no context, windows have entities. */
#define ROCEBOX_DPA_PROGRAM
#include <libflexio/flexio_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_VER(25, 7, 0)
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
  failed += flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, (uint16_t)e->window, e->window_key);
  failed += flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address, &window);
  failed += flexio_dev_window_mkey_config(FLEXIO_DEV_WINDOW_ENTITY_1, e->window_key);
  failed += flexio_dev_window_copy_to_host(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address + 8, &value, 8);
  failed += flexio_dev_window_copy_from_host(FLEXIO_DEV_WINDOW_ENTITY_1, &back, e->host_address + 8, 8);
  flexio_dev_cq_arm(e->cq_index, e->cq_number);
  flexio_dev_qp_sq_ring_db(0, e->qp_number);
  flexio_dev_zcqe_gen(e->cq_number);
  flexio_dev_msix_send(e->cq_number);
  *(uint64_t *)window = value;
  write_wqes((union flexio_dev_sqe_seg *)e->send_ring, e->qp_number);
  the_rest(0);
  e->messages = read_cqe(cq.cqe);
  return failed + (back == value ? 0 : 10) + (drain(&cq, (1u << e->log_cq_entries) - 1, 100) == 2 ? 0 : 100);
}
