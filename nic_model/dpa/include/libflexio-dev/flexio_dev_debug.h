/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the simulator's log, which is the print stream here. `length` is how many digits at most, 0: all. */
#ifndef ROCEBOX_FLEXIO_DEV_DEBUG_H
#define ROCEBOX_FLEXIO_DEV_DEBUG_H

#include <stdint.h>

#include "../rocebox_dpa.h"

#ifdef __cplusplus
extern "C" {
#endif
void print_sim_str(const char* text, int length);
void print_sim_hex(uint64_t value, int length);
void print_sim_int(int64_t value, int length);
void print_sim_putc(char character);
#ifdef __cplusplus
}
#endif
#endif
