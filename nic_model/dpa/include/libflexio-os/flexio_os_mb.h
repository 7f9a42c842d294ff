/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory barriers by other names. */
#ifndef ROCEBOX_FLEXIO_OS_MB_H
#define ROCEBOX_FLEXIO_OS_MB_H

#include "../dpaintrin.h"

#define flexio_os_mb() __dpa_thread_fence(__DPA_SYSTEM, __DPA_RW, __DPA_RW)
#define flexio_os_rmb() __dpa_thread_fence(__DPA_SYSTEM, __DPA_R, __DPA_R)
#define flexio_os_wmb() __dpa_thread_fence(__DPA_SYSTEM, __DPA_W, __DPA_W)

#endif
