/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's operating system: the thread that runs. */
#ifndef ROCEBOX_FLEXIO_OS_H
#define ROCEBOX_FLEXIO_OS_H

#include "../dpaintrin.h"

struct flexio_os_thread_ctx;

#ifdef __cplusplus
extern "C" {
#endif
struct flexio_os_thread_ctx* flexio_os_get_thread_ctx(void);
#ifdef __cplusplus
}
#endif
#endif
