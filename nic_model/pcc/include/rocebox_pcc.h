/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device side of PCC stands on here: functions of the emulator that programs find when they are loaded.
 * Programs include the headers beside this one; what is here goes beyond DOCA's interface, for programs that want it.
 */
#ifndef ROCEBOX_PCC_H
#define ROCEBOX_PCC_H

#include <stdint.h>

#if defined(__riscv)
#error "rocebox runs programs as code of this machine: compile them with its own compiler, not for RISC-V"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The NIC's clock: microseconds, and cycles of a DPA at 1.8 GHz. */
uint64_t rocebox_pcc_microseconds(void);
uint64_t rocebox_pcc_cycles(void);
/* The flow of the event that is handled has this UDP source port, its path, from its next packet on. 0; 1: no such
 * port, or no event is handled. */
int rocebox_pcc_set_udp_source_port(uint16_t port);
/* The UDP source port of that flow's last packet; 0: none has left. */
uint16_t rocebox_pcc_udp_source_port(void);

#ifdef __cplusplus
}
#endif
#endif
