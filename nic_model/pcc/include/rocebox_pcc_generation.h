/* SPDX-License-Identifier: BSD-3-Clause */
/* Which generation of DPAs a program is compiled for: before any other header of PCC looks. */
#ifndef ROCEBOX_PCC_GENERATION_H
#define ROCEBOX_PCC_GENERATION_H

/* Generations of the DPA: the compiler's names, as NVIDIA's public headers compare them. Their order counts; the values
 * are ours. A program is compiled for BlueField-3 unless -D__NV_DPA=... says another. */
#ifndef __NV_DPA_BF3
#define __NV_DPA_BF3 20000
#endif
#ifndef __NV_DPA_CX8
#define __NV_DPA_CX8 21000
#endif
#ifndef __NV_DPA_CX9
#define __NV_DPA_CX9 22000
#endif
#ifndef __NV_DPA
#define __NV_DPA __NV_DPA_BF3
#endif

#endif
