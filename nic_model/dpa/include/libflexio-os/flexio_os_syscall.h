/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the device's operating system: all that programs need of it is in flexio_dev.h. */
#ifndef ROCEBOX_FLEXIO_OS_SYSCALL_H
#define ROCEBOX_FLEXIO_OS_SYSCALL_H

#include <libflexio-os/flexio_os.h>

#endif
