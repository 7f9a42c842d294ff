/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions of the device API. A program that wants the signatures of one defines FLEXIO_DEV_VER_USED before it includes
 * flexio_dev.h; for one that does not, calls of either form compile. */
#ifndef ROCEBOX_FLEXIO_DEV_VER_H
#define ROCEBOX_FLEXIO_DEV_VER_H

#define FLEXIO_DEV_VER(major, minor, patch) (((major)*10000) + ((minor)*100) + (patch))
#define FLEXIO_DEV_VER_LATEST 0x7FFFFFFF

#endif
