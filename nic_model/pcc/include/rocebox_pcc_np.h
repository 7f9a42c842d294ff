/* SPDX-License-Identifier: BSD-3-Clause */
/* A probe and its answer, as the emulator hands them to a notification point: programs include doca_pcc_np_dev.h. */
#ifndef ROCEBOX_PCC_NP_H
#define ROCEBOX_PCC_NP_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of an answer. */
#define ROCEBOX_PCC_NP_RESPONSE_BYTES 12

/* A probe that has come, a copy. Programs read it by the functions of doca_pcc_np_dev.h: its layout is this emulator's
 * own. */
struct doca_pcc_np_dev_request_packet {
  uint8_t* bytes; /* from the Ethernet header on */
  uint32_t size, udp, payload;
  uint32_t received; /* ns, 30 bits */
  uint8_t hop_limit;
};

/* The answer: `data` is a room of `size` bytes, zeros at first, which the program fills where it is. */
struct doca_pcc_np_dev_response_packet {
  size_t size;
  uint8_t* data;
  struct doca_pcc_np_dev_request_packet* in;
};

#endif
