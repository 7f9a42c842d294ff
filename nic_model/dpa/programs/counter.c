/* SPDX-License-Identifier: BSD-3-Clause */
/* counter: counts messages and their bytes, and says how many there were when the host asks. */
#define ROCEBOX_DPA_PROGRAM
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(25, 7, 0)
#include <libflexio-dev/flexio_dev.h>
#include <dpaintrin.h>

#include "endpoint.h"

static uint64_t messages, bytes;

flexio_dev_rpc_handler_t counter_messages;
__dpa_rpc__ uint64_t counter_messages(uint64_t unused) {
  (void)unused;
  return __atomic_load_n(&messages, __ATOMIC_RELAXED);
}

flexio_dev_rpc_handler_t counter_bytes;
__dpa_rpc__ uint64_t counter_bytes(uint64_t unused) {
  (void)unused;
  return __atomic_load_n(&bytes, __ATOMIC_RELAXED);
}

flexio_dev_event_handler_t counter_handler;
__dpa_global__ void counter_handler(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  while (has_cqe(e)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(e);
    if (flexio_dev_cqe_get_opcode(cqe) == CQE_SEND || flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM) {
      __atomic_fetch_add(&messages, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&bytes, flexio_dev_cqe_get_byte_cnt(cqe), __ATOMIC_RELAXED);
      e->messages++;
      e->bytes += flexio_dev_cqe_get_byte_cnt(cqe);
    } else {
      count_error(e, cqe);
    }
    step_cq(e);
    return_buffer(e);
  }
  __dpa_thread_memory_writeback();
  flexio_dev_cq_arm(e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
