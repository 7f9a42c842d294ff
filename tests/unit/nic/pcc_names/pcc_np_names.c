/* SPDX-License-Identifier: BSD-3-Clause */
/* The same of the notification point: each of its names, used. Its answer is what the functions say of the probe. */
#include <doca_pcc_np_dev.h>

#define SAME_TYPE(what, ...) \
  _Static_assert(__builtin_types_compatible_p(__typeof__(what), __typeof__(__VA_ARGS__)), #what)
typedef struct doca_pcc_np_dev_request_packet* request_p;
typedef const struct doca_pcc_np_dev_request_packet* const_request_p;
typedef struct doca_pcc_np_dev_response_packet* response_p;

SAME_TYPE(doca_pcc_dev_np_user_packet_handler, doca_pcc_dev_error_t(request_p, response_p));
SAME_TYPE(doca_pcc_np_dev_get_raw_packet, uint8_t*(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_raw_packet_size, size_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_l4_header, uint8_t*(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_l4_size, size_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_payload, uint8_t*(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_payload_size, size_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_l3_ttl, uint8_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_port_num, uint8_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_plane_num, uint8_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_packet_probe_type_slot, uint8_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_t2_ns, uint32_t(const_request_p));
SAME_TYPE(doca_pcc_np_dev_get_vlan_tci, void(const_request_p, uint8_t*, uint16_t*));
SAME_TYPE(doca_pcc_np_dev_get_max_response_size, size_t(response_p));
SAME_TYPE(doca_pcc_np_dev_set_response_prio, void(response_p, uint32_t));

static uint8_t dscp; /* by mailbox; then what is to go wrong */
static uint8_t mischief;
static uint32_t ports;

doca_pcc_dev_error_t doca_pcc_dev_np_user_packet_handler(struct doca_pcc_np_dev_request_packet* in,
                                                         struct doca_pcc_np_dev_response_packet* out) {
  uint8_t is_tagged = 1;
  uint16_t tag = 1;
  doca_pcc_np_dev_get_vlan_tci(in, &is_tagged, &tag);
  const uint8_t* udp = doca_pcc_np_dev_get_l4_header(in);
  uint8_t bytes[12] = {
      doca_pcc_np_dev_get_payload(in)[0],
      doca_pcc_np_dev_get_payload(in)[1],
      doca_pcc_np_dev_get_payload(in)[2],
      doca_pcc_np_dev_get_payload(in)[3],
      (uint8_t)doca_pcc_np_dev_get_raw_packet_size(in),
      (uint8_t)doca_pcc_np_dev_get_l4_size(in),
      (uint8_t)doca_pcc_np_dev_get_payload_size(in),
      doca_pcc_np_dev_get_l3_ttl(in),
      udp[2], /* destination port, 49791 */
      udp[3],
      doca_pcc_np_dev_get_raw_packet(in)[12], /* EtherType */
      (uint8_t)(doca_pcc_np_dev_get_port_num(in) + doca_pcc_np_dev_get_plane_num(in) +
                doca_pcc_np_dev_get_packet_probe_type_slot(in) + is_tagged + tag + ports + (out->in == in))};
  if (dscp) doca_pcc_np_dev_set_response_prio(out, dscp);
  __builtin_memcpy(out->data, bytes, doca_pcc_np_dev_get_max_response_size(out));
  if (doca_pcc_np_dev_get_t2_ns(in) >> 30) return DOCA_PCC_DEV_STATUS_FAIL;
  switch (mischief) {
    case 1:
      return DOCA_PCC_DEV_STATUS_FAIL;
    case 2:
      out->data[doca_pcc_np_dev_get_max_response_size(out)] = 1;
      break;
    case 3:
      *(volatile uint32_t*)0 = 1;
      break;
    default:
      break;
  }
  return DOCA_PCC_DEV_STATUS_OK;
}

void doca_pcc_dev_user_port_info_changed(uint32_t portid) { ports += portid + 1; }

/* Two bytes: dscp and mischief; what they were before is the response. */
doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) {
  const uint8_t before[2] = {dscp, mischief};
  if (request_size == 3) *response_size = max_response_size + 1;
  if (request_size == 4) ((volatile uint8_t*)response)[max_response_size] = 1;
  if (request_size == 5) *(volatile uint32_t*)0 = 1;
  if (request_size != 2) return request_size < 6 ? DOCA_PCC_DEV_STATUS_OK : DOCA_PCC_DEV_STATUS_FAIL;
  dscp = ((uint8_t*)request)[0];
  mischief = ((uint8_t*)request)[1];
  __builtin_memcpy(response, before, 2);
  *response_size = 2;
  return DOCA_PCC_DEV_STATUS_OK;
}
