/* SPDX-License-Identifier: BSD-3-Clause */
/* DOCA's applications have a header of this name beside them, which public programs include with quotes: hints for
 * branches. */
#ifndef ROCEBOX_PCC_UTILS_H
#define ROCEBOX_PCC_UTILS_H

#include <doca_pcc_dev_utils.h>

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif

#endif
