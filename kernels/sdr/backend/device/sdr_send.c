/* SPDX-License-Identifier: BSD-3-Clause */
/* sdr_send_handler: SDR's transmit worker (3.4): of each batch that the host orders it writes the Writes with immediate,
 * one a packet, and posts them through the outbox with one doorbell. */
#include "sdr_device.h"

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

static struct flexio_dev_cqe64 *next_cqe(const struct sdr_sender *s) {
  return (struct flexio_dev_cqe64 *)s->cq_ring + (s->cq_index & ((1u << s->log_cq_entries) - 1));
}
static int has_cqe(const struct sdr_sender *s) {
  return flexio_dev_cqe_get_owner(next_cqe(s)) == ((s->cq_index >> s->log_cq_entries) & 1);
}

static void write_packet(const struct sdr_order *o, uint32_t i) {
  const uint32_t index = o->first_wqe + i, packet = o->first_packet + i;
  union flexio_dev_sqe_seg *wqe =
      (union flexio_dev_sqe_seg *)o->send_ring + ((index & ((1u << o->log_blocks) - 1)) << LOG_SQE_NUM_SEGS);
  const uint64_t at = (uint64_t)i * o->mtu;
  const uint32_t bytes = at >= o->bytes ? 0 : o->bytes - at < o->mtu ? (uint32_t)(o->bytes - at) : o->mtu;
  /* A CQE for the last one of a batch; nothing else of it is told but errors. */
  flexio_dev_swqe_seg_ctrl_set(&wqe[0], index, o->qp_number,
                               i + 1 == o->packets ? MLX5_CTRL_SEG_CE_CQE_ALWAYS : MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR,
                               FLEXIO_CTRL_SEG_RDMA_WRITE_IMM);
  uint32_t fragment = 0;
  if (o->has_user)
    fragment = o->user >> (packet % (32 / o->fragment_bits) * o->fragment_bits) & ((1u << o->fragment_bits) - 1);
  wqe[0].ctrl.general_id = cpu_to_be32(o->immediate | packet << o->fragment_bits | fragment);
  flexio_dev_swqe_seg_rdma_set(&wqe[1], o->remote_key, o->remote_address + (bytes ? (uint64_t)packet * o->mtu : 0));
  if (bytes)
    flexio_dev_swqe_seg_mem_ptr_data_set(&wqe[2], bytes, o->key, o->address + at);
  else /* only a fragment: two segments */
    wqe[0].ctrl.qpn_ds = cpu_to_be32(o->qp_number << 8 | 2);
}

flexio_dev_event_handler_t sdr_send_handler;
__dpa_global__ void sdr_send_handler(uint64_t argument) {
  struct sdr_sender *s = (struct sdr_sender *)argument;
  struct flexio_dev_thread_ctx *context;

  flexio_dev_get_thread_ctx(&context);
  s->activations++;
  while (has_cqe(s)) {
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    const struct sdr_order *o = (struct sdr_order *)s->orders + (s->done & (s->orders_count - 1));
    for (uint32_t i = 0; i < o->packets; i++) write_packet(o, i);
    if (o->packets) { /* 0: the host has taken it back */
      __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
      flexio_dev_qp_sq_ring_db(context, (uint16_t)(o->first_wqe + o->packets), o->qp_number);
      s->packets += o->packets;
      s->batches++;
    }
    s->cq_index++;
    flexio_dev_dbr_cq_set_ci((uint32_t *)s->cq_doorbell, s->cq_index);
    __atomic_store_n(&s->done, s->done + 1, __ATOMIC_RELEASE); /* the order's place is free */
  }
  flexio_dev_cq_arm(context, s->cq_index, s->cq_number);
  flexio_dev_thread_reschedule();
}
