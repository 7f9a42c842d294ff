/* SPDX-License-Identifier: BSD-3-Clause */
/* ping_pong: two threads on two NICs send each other one message in turn, `count` times. Each stays in its handler and
 * spins on the owner's bit, as handlers do that are to answer soon. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>

#include "endpoint.h"

static void play(struct flexio_dev_thread_ctx *context, struct endpoint *e) {
  if (e->role == 1 && e->send_index == 0) send(context, e, (void *)e->buffers, e->buffer_bytes);
  while (e->messages < e->count) {
    struct flexio_dev_cqe64 *cqe = next_cqe(e);
    uint8_t *ball;
    uint32_t bytes;
    while (!has_cqe(e));
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    if (flexio_dev_cqe_get_opcode(cqe) != CQE_SEND) {
      e->errors++;
      flexio_dev_print("thread %u: a CQE of kind %u\n", flexio_dev_get_thread_id(context),
                       flexio_dev_cqe_get_opcode(cqe));
      return;
    }
    ball = buffer_of(e, cqe);
    bytes = flexio_dev_cqe_get_byte_cnt(cqe);
    e->messages++;
    e->bytes += bytes;
    step_cq(e);
    return_buffer(e);
    /* Who began has the last one. */
    if (e->role != 1 || e->messages < e->count) send(context, e, ball, bytes);
  }
  flexio_dev_print("played %lu\n", (unsigned long)e->messages);
}

/* The host lets who begins play by a call, as nothing comes to it before. */
flexio_dev_rpc_handler_t ping_pong_begin;
__dpa_rpc__ uint64_t ping_pong_begin(uint64_t argument) {
  struct flexio_dev_thread_ctx *context;
  flexio_dev_get_thread_ctx(&context);
  play(context, (struct endpoint *)argument);
  return ((struct endpoint *)argument)->messages;
}

flexio_dev_event_handler_t ping_pong_handler;
__dpa_global__ void ping_pong_handler(uint64_t argument) {
  struct flexio_dev_thread_ctx *context;
  flexio_dev_get_thread_ctx(&context);
  play(context, (struct endpoint *)argument);
  flexio_dev_thread_finish();
}
