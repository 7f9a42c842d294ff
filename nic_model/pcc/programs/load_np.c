/* SPDX-License-Identifier: BSD-3-Clause */
/* load_np: a notification point. It answers each probe with the load of the receiver's port: what came in the last
 * period, beside what is allowed, which is 95% of the port unless the host's message of 4 bytes says otherwise, in
 * Mbit/s. The answer: the time of the probe as it came, so that round-trip times are had by those who know nothing of
 * this; the load with 16 bits of fraction; when it was measured, in us. Written against DOCA PCC's device side alone.
 */
#include <doca_pcc_np_dev.h>

#define PERIOD_US 64

static uint32_t received; /* of the port, in bytes: sampled */
static uint32_t allowed;  /* Mbit/s; 0: not said yet */
static struct {
  uint32_t time, bytes; /* of the last sample */
  uint32_t load;
} measured;

void doca_pcc_dev_user_port_info_changed(uint32_t portid) {
  static uint32_t id;
  id = DOCA_PCC_DEV_GET_PORT_COUNTER_ID(portid, DOCA_PCC_DEV_NIC_COUNTER_TYPE_RX_BYTES, 0);
  doca_pcc_dev_nic_counters_config(&id, 1, &received);
  if (allowed == 0) allowed = doca_pcc_dev_get_port_speed(portid) * 950;
}

static void measure(void) {
  const uint32_t now = doca_pcc_dev_get_timer_lo(), passed = now - measured.time;
  if (passed < PERIOD_US) return;
  doca_pcc_dev_nic_counters_sample();
  const uint64_t bits = (uint64_t)(uint32_t)(received - measured.bytes) * 8;
  const uint64_t load = (bits << 16) / ((uint64_t)passed * allowed);
  measured.load = load > UINT32_MAX ? UINT32_MAX : (uint32_t)load;
  measured.time = now;
  measured.bytes = received;
}

doca_pcc_dev_error_t doca_pcc_dev_np_user_packet_handler(struct doca_pcc_np_dev_request_packet* in,
                                                         struct doca_pcc_np_dev_response_packet* out) {
  if (doca_pcc_np_dev_get_max_response_size(out) < 12 || doca_pcc_np_dev_get_payload_size(in) < 4)
    return DOCA_PCC_DEV_STATUS_FAIL;
  measure();
  const uint32_t words[2] = {measured.load, measured.time};
  __builtin_memcpy(out->data, doca_pcc_np_dev_get_payload(in), 4);
  __builtin_memcpy(out->data + 4, words, sizeof words);
  return DOCA_PCC_DEV_STATUS_OK;
}

doca_pcc_dev_error_t doca_pcc_dev_user_mailbox_handle(void* request, uint32_t request_size, uint32_t max_response_size,
                                                      void* response, uint32_t* response_size) {
  uint32_t rate;
  if (request_size != sizeof rate || max_response_size < sizeof rate) return DOCA_PCC_DEV_STATUS_FAIL;
  __builtin_memcpy(&rate, request, sizeof rate);
  if (rate == 0 || rate > doca_pcc_dev_get_port_speed(0) * 1000) return DOCA_PCC_DEV_STATUS_FAIL;
  allowed = rate;
  __builtin_memcpy(response, &measured.load, sizeof measured.load);
  *response_size = sizeof measured.load;
  return DOCA_PCC_DEV_STATUS_OK;
}
