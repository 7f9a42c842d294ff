/* SPDX-License-Identifier: BSD-3-Clause */
/* What reaction points and notification points share: status, ports, counters of ports. */
#ifndef ROCEBOX_DOCA_PCC_DEV_COMMON_H
#define ROCEBOX_DOCA_PCC_DEV_COMMON_H

#ifndef DOCA_DPA_DEVICE
#define DOCA_DPA_DEVICE
#endif

#include <doca_compat.h>
#include <rocebox_pcc_generation.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ALWAYS_INLINE
#define ALWAYS_INLINE __attribute__((always_inline))
#endif
#ifndef FORCE_INLINE
#define FORCE_INLINE static inline ALWAYS_INLINE
#endif

typedef enum {
  DOCA_PCC_DEV_STATUS_OK = 0,
  DOCA_PCC_DEV_STATUS_FAIL = 1,
} doca_pcc_dev_error_t;

typedef enum {
  DOCA_PCC_DEV_NIC_COUNTER_TYPE_RX_BYTES = 1,
  DOCA_PCC_DEV_NIC_COUNTER_TYPE_TX_BYTES = 2,
} doca_pcc_dev_nic_port_counter_types_t;

/* Names of counters before there were planes. */
typedef enum {
  DOCA_PCC_DEV_NIC_COUNTER_PORT0_RX_BYTES = 0x10,
  DOCA_PCC_DEV_NIC_COUNTER_PORT1_RX_BYTES = 0x11,
  DOCA_PCC_DEV_NIC_COUNTER_PORT2_RX_BYTES = 0x12,
  DOCA_PCC_DEV_NIC_COUNTER_PORT3_RX_BYTES = 0x13,
  DOCA_PCC_DEV_NIC_COUNTER_PORT0_TX_BYTES = 0x20,
  DOCA_PCC_DEV_NIC_COUNTER_PORT1_TX_BYTES = 0x21,
  DOCA_PCC_DEV_NIC_COUNTER_PORT2_TX_BYTES = 0x22,
  DOCA_PCC_DEV_NIC_COUNTER_PORT3_TX_BYTES = 0x23,
} doca_pcc_dev_nic_counter_ids_t;

/* The name of a counter, for doca_pcc_dev_nic_counters_config: bits 0 to 3 the port, 4 to 7 the type, 8 to 11 the
 * plane, and bit 24. */
#define DOCA_PCC_DEV_GET_PORT_COUNTER_ID(port, type, plane) \
  (1u << 24 | ((uint32_t)(plane)&15u) << 8 | ((uint32_t)(type)&15u) << 4 | ((uint32_t)(port)&15u))

/* Ports that tables are made for. A NIC here has one, port 0. */
#define DOCA_PCC_DEV_MAX_NUM_PORTS (__NV_DPA < __NV_DPA_CX8 ? 4 : 8)

/* Which counters doca_pcc_dev_nic_counters_sample() reads, and where to: bytes of the port since the NIC began, their
 * low 32 bits. A wrong name or address stops the program. */
void doca_pcc_dev_nic_counters_config(uint32_t* counter_ids, uint32_t num_counters, uint32_t* values);
void doca_pcc_dev_nic_counters_sample(void);

/* A bit for each port that there is. */
uint32_t doca_pcc_dev_get_logical_ports(void);
uint32_t doca_pcc_dev_get_port_planes(uint32_t portid);
/* In Gbit/s; 0: there is no such port. */
uint32_t doca_pcc_dev_get_port_speed(uint32_t portid);

/* The program's, if it wants to be told: the port has come up or is another one. Called once before the first event. */
void doca_pcc_dev_user_port_info_changed(uint32_t portid) __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif
