/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's registers. There are none to write to here: the outbox is a function (rocebox_dpa.h). */
#ifndef ROCEBOX_FLEXIO_DEV_DPA_ARCH_H
#define ROCEBOX_FLEXIO_DEV_DPA_ARCH_H

#include "../dpaintrin.h"

#endif
