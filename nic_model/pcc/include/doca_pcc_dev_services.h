/* SPDX-License-Identifier: BSD-3-Clause */
/* Text for people, and which thread it is. */
#ifndef ROCEBOX_DOCA_PCC_DEV_SERVICES_H
#define ROCEBOX_DOCA_PCC_DEV_SERVICES_H

#include <doca_pcc_dev_common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lines stand in the run's report; the first ones are kept. */
void doca_pcc_dev_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* A line of numbers: what a format is called by, and five more. */
void doca_pcc_dev_trace_5(int format_id, uint64_t arg1, uint64_t arg2, uint64_t arg3, uint64_t arg4, uint64_t arg5);
void doca_pcc_dev_trace_flush(void);

/* From 0 on. All events of one flow come to one thread. */
unsigned int doca_pcc_dev_thread_rank(void);

#ifdef __cplusplus
}
#endif
#endif
