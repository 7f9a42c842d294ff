/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that later versions of DOCA have for doca_pcc_dev_data_structures.h. */
#ifndef ROCEBOX_DOCA_PCC_DEV_TYPES_H
#define ROCEBOX_DOCA_PCC_DEV_TYPES_H
#include <doca_pcc_dev_data_structures.h>
#endif
