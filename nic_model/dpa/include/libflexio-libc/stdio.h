/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's C library: what it has of <stdio.h>. All of it goes to the print stream. */
#ifndef ROCEBOX_FLEXIO_LIBC_STDIO_H
#define ROCEBOX_FLEXIO_LIBC_STDIO_H

#include <libflexio-dev/flexio_dev.h>

#ifdef __cplusplus
extern "C" {
#endif
int rocebox_dpa_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
int rocebox_dpa_puts(const char* text);
int rocebox_dpa_putchar(int character);
#ifdef __cplusplus
}
#endif

#undef printf
#undef puts
#undef putchar
#define printf rocebox_dpa_print
#define puts rocebox_dpa_puts
#define putchar rocebox_dpa_putchar

#endif
