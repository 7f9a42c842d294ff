/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic in fixed point with 16 bits of fraction, fences, time. */
#ifndef ROCEBOX_DOCA_PCC_DEV_UTILS_H
#define ROCEBOX_DOCA_PCC_DEV_UTILS_H

#include <doca_pcc_dev_common.h>
#include <dpaintrin.h>
#include <rocebox_pcc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PCC's threads have the NIC's clock: microseconds. */
#undef __dpa_thread_time
#define __dpa_thread_time() rocebox_pcc_microseconds()
#undef __dpa_thread_cycles
#define __dpa_thread_cycles() rocebox_pcc_cycles()

#define doca_pcc_dev_mult(a, b) ((uint64_t)(a) * (uint64_t)(b))
#define doca_pcc_dev_fxp_mult(a, b) ((uint32_t)(doca_pcc_dev_mult(a, b) >> 16))
#define doca_pcc_dev_fxp_recip(a_fp) __dpa_fxp_rcp(a_fp)
#define doca_pcc_dev_fxp_power2(a_fp) __dpa_fxp_pow2(a_fp)
#define doca_pcc_dev_fxp_log2(a_fp) __dpa_fxp_log2(a_fp)
/* The place of the highest bit that is set, from 1; of 0: 0. */
#define doca_pcc_dev_fls(a) ((a) ? 32 - __builtin_clz(a) : 0)

#define doca_pcc_dev_fence_all() __dpa_thread_fence(__DPA_SYSTEM, __DPA_RW, __DPA_RW)
#define doca_pcc_dev_fence_memory() __dpa_thread_fence(__DPA_MEMORY, __DPA_RW, __DPA_RW)
#define doca_pcc_dev_fence_io() __dpa_thread_fence(__DPA_MMIO, __DPA_RW, __DPA_RW)
#define doca_pcc_dev_fence_w_r() __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_R)

#define doca_pcc_dev_get_thread_time() __dpa_thread_time()
FORCE_INLINE uint64_t doca_pcc_dev_get_timer(void) { return rocebox_pcc_microseconds(); }
FORCE_INLINE uint32_t doca_pcc_dev_get_timer_lo(void) { return (uint32_t)rocebox_pcc_microseconds(); }

#ifdef __cplusplus
}
#endif
#endif
