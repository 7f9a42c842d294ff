/* SPDX-License-Identifier: BSD-3-Clause */
/* threads: calls, locks, memory that threads share, and ways to wait, each named by a function of its own. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>
#include <libflexio-libc/stdio.h>
#include <libflexio-libc/string.h>

#include "endpoint.h"

static struct spinlock_s lock;
static volatile uint64_t flag, turns, inside, most_inside, zeros;

/* Calls of the host. */

__dpa_rpc__ uint64_t add(uint64_t a, uint64_t b, uint64_t c) {
  flexio_dev_print("%lu + %lu + %lu\n", (unsigned long)a, (unsigned long)b, (unsigned long)c);
  return a + b + c;
}
__dpa_rpc__ uint64_t set_flag(uint64_t value) {
  flag = value;
  __dpa_thread_memory_writeback();
  return value;
}
__dpa_rpc__ uint64_t get_turns(uint64_t unused) {
  (void)unused;
  return turns;
}
__dpa_rpc__ uint64_t get_most_inside(uint64_t unused) {
  (void)unused;
  return most_inside;
}
__dpa_rpc__ uint64_t get_zeros(uint64_t unused) {
  (void)unused;
  return zeros;
}
__dpa_rpc__ uint64_t say(uint64_t unused) {
  char text[32];
  (void)unused;
  memset(text, 0, sizeof text);
  strcpy(text, "by puts");
  puts(text);
  printf("by printf: %d\n", 7);
  flexio_dev_msg_err(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, "an error\n");
  flexio_dev_msg(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, FLEXIO_MSG_DEV_NO_PRINT, "not said\n");
  return 0;
}
__dpa_rpc__ uint64_t wait_cycles(uint64_t cycles) {
  const uint64_t begin = __dpa_thread_cycles();
  while (__dpa_thread_cycles() - begin < cycles);
  return 1;
}
/* Through a window: copies there and back; what is not all in it is refused. */
__dpa_rpc__ uint64_t windows(uint64_t argument) {
  const struct endpoint *e = (const struct endpoint *)argument;
  uint64_t value = 0x1122334455667788, back = 0;
  flexio_uintptr_t at;
  uint64_t refused = 0;
  flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, (uint16_t)e->window, e->window_key);
  flexio_dev_window_copy_to_host(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address + 8, &value, sizeof value);
  flexio_dev_window_copy_from_host(FLEXIO_DEV_WINDOW_ENTITY_1, &back, e->host_address + 8, sizeof back);
  refused += flexio_dev_window_copy_to_host(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address + e->host_bytes - 4, &value, 8);
  refused += flexio_dev_window_copy_to_host(FLEXIO_DEV_WINDOW_ENTITY_0, e->host_address, &value, 8); /* not configured */
  refused += flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_0, 77, e->window_key);
  refused += flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address + e->host_bytes, &at);
  flexio_dev_window_mkey_config(FLEXIO_DEV_WINDOW_ENTITY_1, e->window_key + 1); /* nobody's */
  refused += flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, e->host_address, &at);
  return back == value ? refused : 100;
}

/* Handlers. */

/* Looks at its queue and at memory, until that says to stop. */
__dpa_global__ void polls_until_flag(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  while (!flag)
    if (has_cqe(e)) {
      e->messages++;
      step_cq(e);
      return_buffer(e);
    }
  turns++;
  flexio_dev_thread_finish();
}
/* Looks at memory alone. */
__dpa_global__ void fences_until_flag(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  e->messages++;
  while (!flag) __dpa_thread_window_read_inv();
  turns++;
  flexio_dev_thread_finish();
}
/* Begins again and again. */
__dpa_global__ void retriggers_until_flag(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  e->messages++;
  if (!flag) flexio_dev_thread_retrigger();
  turns++;
  flexio_dev_thread_finish();
}
/* All are to have the lock once, one at a time; who has it gives way. */
__dpa_global__ void locks(uint64_t argument) {
  (void)argument;
  for (int i = 0; i < 50; i++) {
    spin_lock(&lock);
    inside++;
    if (inside > most_inside) most_inside = inside;
    for (int k = 0; k < 200; k++) __dpa_thread_memory_fence(__DPA_RW, __DPA_RW);
    inside--;
    turns++;
    spin_unlock(&lock);
  }
  flexio_dev_thread_finish();
}
__dpa_global__ void tries_locks(uint64_t argument) {
  (void)argument;
  for (int i = 0; i < 20; i++) {
    while (spin_trylock(&lock));
    inside++;
    if (inside > most_inside) most_inside = inside;
    for (int k = 0; k < 200; k++) __dpa_thread_memory_fence(__DPA_RW, __DPA_RW);
    inside--;
    turns++;
    spin_unlock(&lock);
  }
  flexio_dev_thread_finish();
}
/* Makes the CQE of another's queue: whose number the sender says. */
__dpa_global__ void wakes_another(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  while (has_cqe(e)) {
    const uint32_t other = *(uint32_t *)buffer_of(e, next_cqe(e));
    e->messages++;
    step_cq(e);
    return_buffer(e);
    flexio_dev_zcqe_gen(other);
  }
  flexio_dev_cq_arm(e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
__dpa_global__ void counts_zeros(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  while (has_cqe(e)) {
    zeros++;
    step_cq(e);
  }
  flexio_dev_cq_arm(e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
__dpa_global__ void finishes_process(uint64_t argument) {
  ((struct endpoint *)argument)->messages++;
  flexio_dev_process_finish();
}
/* Whatever the NIC is told by it: doorbells of queues that are not its own, of WQEs that are none, far too many. */
__dpa_global__ void rings_nonsense(uint64_t argument) {
  struct endpoint *e = (struct endpoint *)argument;
  uint32_t word = 1;
  while (has_cqe(e)) {
    e->messages++;
    for (uint32_t i = 0; i < (1u << e->log_send_blocks) * 16; i++)
      ((uint32_t *)e->send_ring)[i] = word = word * 1664525 + 1013904223;
    flexio_dev_qp_sq_ring_db(0xffff, e->qp_number);
    flexio_dev_qp_sq_ring_db(1, e->qp_number + 1);
    flexio_dev_qp_sq_ring_db(1, 0xffffff);
    flexio_dev_cq_arm(5, e->cq_number + 100);
    flexio_dev_zcqe_gen(0xffffff);
    *(uint32_t *)e->qp_doorbell = word;
    step_cq(e);
  }
  *(uint32_t *)e->cq_doorbell = word;
  flexio_dev_cq_arm(e->cq_index, e->cq_number);
  flexio_dev_thread_reschedule();
}
