/* SPDX-License-Identifier: BSD-3-Clause */
/* The DPA's intrinsics: fences and counters. All threads of one NIC run on one core here, so that a fence orders what
 * the compiler does, and is a place where the thread gives way. */
#ifndef ROCEBOX_DPAINTRIN_H
#define ROCEBOX_DPAINTRIN_H

#include "rocebox/fxp16.h"
#include "rocebox_dpa.h"

/* Spaces of memory. */
#define __DPA_HEAP 1
#define __DPA_MEMORY 2
#define __DPA_MMIO 4
#define __DPA_SYSTEM 7

/* Operations. */
#define __DPA_R 1
#define __DPA_W 2
#define __DPA_RW 3

static inline __attribute__((always_inline)) void rocebox_dpa_ordered(int space, int operations) {
  __atomic_thread_fence(__ATOMIC_ACQ_REL);
  rocebox_dpa_fence(space, operations);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Operations `before` in that space come before operations `after`. */
#define __dpa_thread_fence(space, before, after) ((void)(after), rocebox_dpa_ordered(space, before))
#define __dpa_thread_memory_fence(before, after) __dpa_thread_fence(__DPA_MEMORY, before, after)
#define __dpa_thread_outbox_fence(before, after) __dpa_thread_fence(__DPA_MMIO, before, after)
#define __dpa_thread_window_fence(before, after) __dpa_thread_fence(__DPA_MMIO, before, after)
#define __dpa_thread_system_fence() __dpa_thread_fence(__DPA_SYSTEM, __DPA_RW, __DPA_RW)
/* What is read through a window from here on is what the host has written. */
#define __dpa_thread_window_read_inv() __dpa_thread_fence(__DPA_MMIO, __DPA_R, __DPA_R)
/* What was written is seen by all others before what is written from here on. */
#define __dpa_thread_window_writeback() __dpa_thread_fence(__DPA_MMIO, __DPA_W, __DPA_W)
#define __dpa_thread_memory_writeback() __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W)

/* Of the execution unit, by the timing model; the ticks of the timer are nanoseconds. */
#define __dpa_thread_cycles() rocebox_dpa_cycles()
#define __dpa_thread_inst_ret() rocebox_dpa_instructions()
#define __dpa_thread_time() rocebox_dpa_nanoseconds()

/* Fixed point with 16 bits of fraction. */
#define __dpa_fxp_rcp(a) fxp16_recip(a)
#define __dpa_fxp_pow2(a) fxp16_pow2(a)
#define __dpa_fxp_log2(a) fxp16_log2(a)

/* A hint that the line's old content is of no use. */
#define __dpa_data_ignore(address) ((void)(address))

#endif
