/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions, as some device programs write them by the host's macro. */
#ifndef ROCEBOX_FLEXIO_VER_H
#define ROCEBOX_FLEXIO_VER_H

#include <libflexio-dev/flexio_dev_ver.h>

#define FLEXIO_VER(major, minor, patch) FLEXIO_DEV_VER(major, minor, patch)
#define FLEXIO_VER_LATEST FLEXIO_DEV_VER_LATEST

#endif
