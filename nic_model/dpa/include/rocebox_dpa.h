/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device API stands on here: functions of the emulator that programs find when they are loaded. Programs do
 * not call these; they include the headers beside this one. */
#ifndef ROCEBOX_DPA_H
#define ROCEBOX_DPA_H

#include <stdint.h>

#if defined(__riscv)
#error "rocebox runs device programs as code of this machine: compile them with its own compiler, not for RISC-V"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that the host names: handlers of events, and of calls. */
#ifndef __dpa_global__
#define __dpa_global__ __attribute__((visibility("default"), used))
#endif
#ifndef __dpa_rpc__
#define __dpa_rpc__ __attribute__((visibility("default"), used))
#endif

/* The owner bit of a CQE. The thread gives way when the NIC has not written that CQE yet. */
uint8_t rocebox_dpa_cqe_owner(const volatile void* cqe);
/* The thread may give way; `space` and `operations`, those before the fence, are of dpaintrin.h. */
void rocebox_dpa_fence(int space, int operations);
uint64_t rocebox_dpa_cycles(void);
uint64_t rocebox_dpa_instructions(void);
uint64_t rocebox_dpa_nanoseconds(void);
/* The lock is taken: gives way until it is free. */
void rocebox_dpa_wait_for_lock(volatile uint32_t* locked);
/* A lock that was tried is taken. Returns 1, after others had their turn. */
uint32_t rocebox_dpa_lock_is_taken(void);
/* The outbox. */
void rocebox_dpa_ring_send_doorbell(uint16_t producer, uint32_t queue);
void rocebox_dpa_arm_cq(uint32_t consumer, uint32_t cq);
void rocebox_dpa_zero_cqe(uint32_t cq);
/* Windows; `entity` is 0 or 1. 0, or 1 where it cannot be. */
int rocebox_dpa_window_config(int entity, uint16_t window, uint32_t mkey);
int rocebox_dpa_window_mkey(int entity, uint32_t mkey);
int rocebox_dpa_window_pointer(int entity, uint64_t host_address, uint64_t* device_address);
int rocebox_dpa_window_copy(int entity, uint64_t host_address, void* device, uint32_t bytes, int to_host);

#ifdef __cplusplus
}
#endif
#endif
