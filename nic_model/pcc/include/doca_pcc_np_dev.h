/* SPDX-License-Identifier: BSD-3-Clause */
/* Programmable congestion control, the notification point: a program at the responder sees each probe of the round-trip
 * time and writes what its answer carries, which the reaction point reads by doca_pcc_dev_get_rtt_raw_data(). Written
 * from NVIDIA's public documentation of DOCA PCC's device side. ../README.md says what each does here. */
#ifndef ROCEBOX_DOCA_PCC_NP_DEV_H
#define ROCEBOX_DOCA_PCC_NP_DEV_H

#include <doca_pcc_dev_common.h>
#include <doca_pcc_dev_services.h>
#include <doca_pcc_dev_utils.h>
#include <rocebox_pcc_np.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program's: handles one probe. Not DOCA_PCC_DEV_STATUS_OK: it is not answered. */
doca_pcc_dev_error_t doca_pcc_dev_np_user_packet_handler(struct doca_pcc_np_dev_request_packet* in,
                                                         struct doca_pcc_np_dev_response_packet* out);

/* The packet from its Ethernet header, from its UDP header, and what stands behind the probe's own header: first the
 * time at which the probe left, in ns, the low 32 bits. All in network order. */
FORCE_INLINE uint8_t* doca_pcc_np_dev_get_raw_packet(const struct doca_pcc_np_dev_request_packet* input) {
  return input->bytes;
}
FORCE_INLINE size_t doca_pcc_np_dev_get_raw_packet_size(const struct doca_pcc_np_dev_request_packet* input) {
  return input->size;
}
FORCE_INLINE uint8_t* doca_pcc_np_dev_get_l4_header(const struct doca_pcc_np_dev_request_packet* input) {
  return input->bytes + input->udp;
}
FORCE_INLINE size_t doca_pcc_np_dev_get_l4_size(const struct doca_pcc_np_dev_request_packet* input) {
  return input->size - input->udp;
}
FORCE_INLINE uint8_t* doca_pcc_np_dev_get_payload(const struct doca_pcc_np_dev_request_packet* input) {
  return input->bytes + input->payload;
}
FORCE_INLINE size_t doca_pcc_np_dev_get_payload_size(const struct doca_pcc_np_dev_request_packet* input) {
  return input->size - input->payload;
}

/* TTL of IPv4, hop limit of IPv6. */
FORCE_INLINE uint8_t doca_pcc_np_dev_get_l3_ttl(const struct doca_pcc_np_dev_request_packet* input) {
  return input->hop_limit;
}
/* When the probe came, in ns, the low 30 bits. */
FORCE_INLINE uint32_t doca_pcc_np_dev_get_t2_ns(const struct doca_pcc_np_dev_request_packet* input) {
  return input->received;
}
/* There is one port of one plane, one kind of probe, and no tag of a VLAN. */
FORCE_INLINE uint8_t doca_pcc_np_dev_get_port_num(const struct doca_pcc_np_dev_request_packet* input) {
  return ((void)input, 0);
}
FORCE_INLINE uint8_t doca_pcc_np_dev_get_plane_num(const struct doca_pcc_np_dev_request_packet* input) {
  return ((void)input, 0);
}
FORCE_INLINE uint8_t doca_pcc_np_dev_get_packet_probe_type_slot(const struct doca_pcc_np_dev_request_packet* input) {
  return ((void)input, 0);
}
FORCE_INLINE void doca_pcc_np_dev_get_vlan_tci(const struct doca_pcc_np_dev_request_packet* input,
                                               uint8_t* vlan_present, uint16_t* vlan_tci) {
  (void)input;
  *vlan_present = 0;
  *vlan_tci = 0;
}

FORCE_INLINE size_t doca_pcc_np_dev_get_max_response_size(struct doca_pcc_np_dev_response_packet* out) {
  return out->size;
}
/* The answer's DSCP, 0 to 63, in place of the queue pair's. */
void doca_pcc_np_dev_set_response_prio(struct doca_pcc_np_dev_response_packet* out, uint32_t prio);

#ifdef __cplusplus
}
#endif
#endif
