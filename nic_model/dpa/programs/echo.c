/* SPDX-License-Identifier: BSD-3-Clause */
/* echo: sends each message back, from the buffer into which it was received. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>

#include "endpoint.h"

flexio_dev_event_handler_t echo_handler;
__dpa_global__ void echo_handler(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  struct flexio_dev_thread_ctx *context;
  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(e)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(e);
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    if (flexio_dev_cqe_get_opcode(cqe) == CQE_SEND) {
      send(context, e, buffer_of(e, cqe), flexio_dev_cqe_get_byte_cnt(cqe));
      e->messages++;
      e->bytes += flexio_dev_cqe_get_byte_cnt(cqe);
    } else {
      count_error(e, cqe);
    }
    step_cq(e);
    return_buffer(e);
  }
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
  flexio_dev_cq_arm(context, e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
