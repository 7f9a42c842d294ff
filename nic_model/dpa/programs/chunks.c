/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks: SDR's receiver in small. Each completion sets its packet's bit in memory of the device; who sets the last one of
 * a chunk (of `count` packets, a power of two up to 64; 0 is 1) sets the chunk's byte in memory of the host. A WRITE's
 * immediate is 10 bits of message, 18 of offset, 4 of the user's; completions without one are numbered as they come, by
 * each queue for itself. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>

#include "chunks.h"
#include "endpoint.h"

#define NUMBERS_OF_QUEUE 2048u

static uint64_t bits[CHUNKS_PACKETS / 64];
static uint64_t chunks;

flexio_dev_rpc_handler_t chunks_complete;
__dpa_rpc__ uint64_t chunks_complete(uint64_t unused) {
  (void)unused;
  return __atomic_load_n(&chunks, __ATOMIC_RELAXED);
}

flexio_dev_event_handler_t chunks_handler;
__dpa_global__ void chunks_handler(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  const uint32_t log_chunk = e->count > 1 ? (uint32_t)__builtin_ctz(e->count) : 0;
  struct flexio_dev_thread_ctx *context;
  flexio_uintptr_t host = 0;

  flexio_dev_get_thread_ctx(&context);
  if (log_chunk > 6 || !e->host_bytes ||
      flexio_dev_window_config(context, (uint16_t)e->window, e->window_key) != FLEXIO_DEV_STATUS_SUCCESS ||
      flexio_dev_window_ptr_acquire(context, e->host_address, &host) != FLEXIO_DEV_STATUS_SUCCESS) {
    flexio_dev_print("chunks of more than 64 packets, or no window to the host's memory\n");
    flexio_dev_thread_finish();
  }
  while (has_cqe(e)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(e);
    if (has_failed(cqe)) {
      count_error(e, cqe);
    } else {
      const uint32_t number = flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM
                                  ? be32_to_cpu(cqe->imm_inval_pkey) >> 4
                                  : e->cq_number * NUMBERS_OF_QUEUE + (uint32_t)e->messages % NUMBERS_OF_QUEUE;
      e->messages++;
      e->bytes += flexio_dev_cqe_get_byte_cnt(cqe);
      if (chunks_take(bits, number, log_chunk)) {
        __atomic_fetch_add(&chunks, 1, __ATOMIC_RELAXED);
        ((volatile uint8_t *)host)[(number >> log_chunk) % e->host_bytes] = 1;
        __dpa_thread_window_writeback();
      }
    }
    step_cq(e);
    return_buffer(e);
  }
  flexio_dev_cq_arm(context, e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
