/* SPDX-License-Identifier: BSD-3-Clause */
/* Text for people, messages of the host, and which thread it is. */
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

/* The program's, if it wants messages of the host, whose form is its own: handles one, and may write a response of up
 * to max_response_size bytes and say its size, which is 0 before. Not DOCA_PCC_DEV_STATUS_OK: the host is told so. */
doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif
