/* SPDX-License-Identifier: BSD-3-Clause */
/* bad: handlers that do what none should: each one thing, or what the first byte of the message says. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>

#include "endpoint.h"

static volatile uint64_t sink;

static __attribute__((noinline)) uint64_t deeper(volatile uint64_t *from, uint64_t depth) {
  volatile uint64_t room[64];
  room[depth & 63] = from ? from[0] : 0;
  if (depth == UINT64_MAX) return 0;
  return deeper(room, depth + 1) + room[(depth + 1) & 63];
}

static __attribute__((noinline)) void crash(const struct endpoint *e, uint8_t how) {
  switch (how) {
    case 'n': /* through a null pointer */
      *(volatile uint64_t *)0 = 1;
      break;
    case 'h': /* behind the heap */
      for (volatile uint8_t *at = (volatile uint8_t *)(e + 1);; at++) *at = 0xee;
    case 'w': /* behind the window */
      for (volatile uint8_t *at = (volatile uint8_t *)e->host_address;; at++) *at = 0xee;
    case 's': /* the stack */
      sink = deeper(0, 0);
      break;
    case 'i': /* what is no instruction */
      __builtin_trap();
    case 'd': /* a division by 0 */
      sink = e->messages * 1000 / sink;
      break;
    case 'p': /* a bad pointer to a call of the API */
      flexio_dev_print("%s\n", (const char *)8);
      break;
    default: /* for ever */
      for (;;) sink++;
  }
}

/* `how` 0: as the message says. */
static void serve(struct endpoint *e, uint8_t how) {
  struct flexio_dev_thread_ctx *context;
  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(e)) {
    e->messages++;
    crash(e, how ? how : *buffer_of(e, next_cqe(e)));
    step_cq(e);
    return_buffer(e);
  }
  flexio_dev_cq_arm(context, e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}

flexio_dev_event_handler_t bad_handler, null_handler, heap_handler, window_handler, loop_handler;
__dpa_global__ void bad_handler(uint64_t argument) { serve((struct endpoint *)argument, 0); }
__dpa_global__ void null_handler(uint64_t argument) { serve((struct endpoint *)argument, 'n'); }
__dpa_global__ void heap_handler(uint64_t argument) { serve((struct endpoint *)argument, 'h'); }
__dpa_global__ void window_handler(uint64_t argument) { serve((struct endpoint *)argument, 'w'); }
__dpa_global__ void loop_handler(uint64_t argument) { serve((struct endpoint *)argument, 'l'); }
