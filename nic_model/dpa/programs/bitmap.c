/* SPDX-License-Identifier: BSD-3-Clause */
/* bitmap: sets a bit in memory of the host for each WRITE with immediate; the immediate is the bit's number. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>

#include "endpoint.h"

flexio_dev_event_handler_t bitmap_handler;
__dpa_global__ void bitmap_handler(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  struct flexio_dev_thread_ctx *context;
  flexio_uintptr_t bitmap = 0;

  flexio_dev_get_thread_ctx(&context);
  if (flexio_dev_window_config(context, (uint16_t)e->window, e->window_key) != FLEXIO_DEV_STATUS_SUCCESS ||
      flexio_dev_window_ptr_acquire(context, e->host_address, &bitmap) != FLEXIO_DEV_STATUS_SUCCESS) {
    flexio_dev_print("no window to the bitmap\n");
    flexio_dev_thread_finish();
  }
  while (has_cqe(e)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(e);
    const uint32_t bit = be32_to_cpu(cqe->imm_inval_pkey);
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    if (flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM && bit / 8 < e->host_bytes) {
      ((uint8_t *)bitmap)[bit / 8] |= (uint8_t)(1u << (bit % 8));
      e->messages++;
      e->bytes += flexio_dev_cqe_get_byte_cnt(cqe);
    } else {
      count_error(e, cqe);
    }
    step_cq(e);
    return_buffer(e);
  }
  __dpa_thread_window_writeback();
  flexio_dev_cq_arm(context, e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
