/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte order: queues are big-endian, the device is little-endian. */
#ifndef ROCEBOX_FLEXIO_DEV_ENDIANITY_H
#define ROCEBOX_FLEXIO_DEV_ENDIANITY_H

#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "device programs are little-endian"
#endif

#define cpu_to_be16(value) __builtin_bswap16((uint16_t)(value))
#define cpu_to_be32(value) __builtin_bswap32((uint32_t)(value))
#define cpu_to_be64(value) __builtin_bswap64((uint64_t)(value))
#define be16_to_cpu(value) __builtin_bswap16((uint16_t)(value))
#define be32_to_cpu(value) __builtin_bswap32((uint32_t)(value))
#define be64_to_cpu(value) __builtin_bswap64((uint64_t)(value))

#endif
