/* SPDX-License-Identifier: BSD-3-Clause */
/* sdr_example: one message, and what its receiver sees of it while it comes.
 *
 *     SDR_CONFIG=b.yaml sdr_example DEVICE            receives
 *     SDR_CONFIG=a.yaml sdr_example DEVICE ADDRESS    sends to the one whose side channel listens there
 */
#include <sdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side_channel.h"

enum { PORT = 7471, BYTES = 1 << 20 };

static int receive(struct sdr_qp* qp, uint8_t* buffer, uint32_t key) {
  struct sdr_recv_wr wr = {.max_length = BYTES, .lkey = key, .address = (uint64_t)(uintptr_t)buffer};
  struct sdr_recv_handle* handle;
  uint8_t* bitmap;
  uint32_t immediate = 0;
  size_t chunks, here = 0;
  if (sdr_recv_post(qp, &wr, &handle) != SDR_SUCCESS || sdr_recv_bitmap_get(handle, &bitmap, &chunks) != SDR_SUCCESS)
    return 1;
  /* Two seconds: on a line that loses packets not every chunk comes, and nothing here asks for them again. */
  for (const long long end = now_ns() + 2000000000LL; here < chunks && now_ns() < end; usleep(1000))
    for (here = 0; here < chunks && __atomic_load_n(&bitmap[here], __ATOMIC_ACQUIRE);) here++;
  size_t wrong = 0, count = 0;
  for (size_t i = 0; i < chunks; i++) {
    if (!__atomic_load_n(&bitmap[i], __ATOMIC_ACQUIRE)) continue;
    count++;
    for (size_t k = i * (BYTES / chunks); k < (i + 1) * (BYTES / chunks); k++) wrong += buffer[k] != (uint8_t)(k * 31);
  }
  const int has_immediate = sdr_recv_imm_get(handle, &immediate) == SDR_SUCCESS;
  printf("%zu of %zu chunks, %zu wrong bytes, immediate %#x%s\n", count, chunks, wrong, immediate,
         has_immediate ? "" : " (incomplete)");
  return sdr_recv_complete(handle) != SDR_SUCCESS || wrong != 0;
}

static int send_one(struct sdr_qp* qp, uint8_t* buffer, uint32_t key) {
  for (size_t i = 0; i < BYTES; i++) buffer[i] = (uint8_t)(i * 31);
  struct sdr_send_wr wr = {.opcode = SDR_WR_WRITE_WITH_IMM,
                           .imm_value = 0xC0FFEE,
                           .length = BYTES,
                           .lkey = key,
                           .local_addr = (uint64_t)(uintptr_t)buffer};
  struct sdr_send_handle* handle;
  struct sdr_send_status status = {0};
  int completed = 0;
  if (sdr_send_post(qp, &wr, &handle) != SDR_SUCCESS) return 1;
  while (!completed)
    if (sdr_send_poll(handle, &completed, &status) != SDR_SUCCESS) return 1;
  printf("sent%s\n", status.flags & SDR_SEND_FAILED ? ", and failed" : "");
  return status.flags != 0;
}

int main(int count, char** words) {
  if (count < 2 || count > 3) return fprintf(stderr, "usage: %s DEVICE [ADDRESS]\n", words[0]), 2;
  struct sdr_dev_attr device = {.num_channels = 2, .log_max_qps = 0};
  struct sdr_qp_attr attr = {.bitmap_chunk_size_log_bytes = 14,
                             .max_in_flight_log_bytes = 24,
                             .max_log_num_msgs = 4,
                             .mtu = SDR_MTU_1024,
                             .send_enable = 1,
                             .recv_enable = 1};
  struct sdr_context* context = sdr_context_create(words[1], &device);
  const int channel = context ? side_channel(count == 3 ? words[2] : NULL, PORT) : -1;
  struct sdr_qp* qp = channel >= 0 ? sdr_qp_create(context, &attr) : NULL;
  uint8_t* buffer = calloc(1, BYTES);
  struct sdr_mr* memory = qp ? sdr_mr_reg(context, buffer, BYTES, SDR_ACCESS_REMOTE_WRITE) : NULL;
  uint32_t key;
  char done = 0;
  if (!memory || sdr_mr_lkey_get(memory, &key) != SDR_SUCCESS || connect_over(channel, qp) != 0)
    return 1;
  const int failed = (count == 3 ? send_one : receive)(qp, buffer, key);
  exchange(channel, &done, &done, 1); /* the NIC is gone with the process: first the peer must have all */
  sdr_context_destroy(context);
  free(buffer);
  return failed;
}
