/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's own error: kept with its thread, and reported by the host when the process has stopped. */
#ifndef ROCEBOX_FLEXIO_DEV_ERR_H
#define ROCEBOX_FLEXIO_DEV_ERR_H

#include <stdint.h>

#include "../rocebox_dpa.h"

#ifdef __cplusplus
extern "C" {
#endif
uint64_t flexio_dev_get_errno(void);
void flexio_dev_rst_errno(void);
/* Ends the process with an error of the program's own. */
void flexio_dev_error(uint64_t error);
#ifdef __cplusplus
}
#endif
#endif
