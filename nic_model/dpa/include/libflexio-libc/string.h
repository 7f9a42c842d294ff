/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's C library: what it has of <string.h>. */
#ifndef ROCEBOX_FLEXIO_LIBC_STRING_H
#define ROCEBOX_FLEXIO_LIBC_STRING_H

#include <string.h>

#endif
