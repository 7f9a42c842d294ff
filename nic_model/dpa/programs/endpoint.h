/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host tells these programs of a thread's queues, and the steps that all of them take. Plain C, for both
 * sides. */
#ifndef ROCEBOX_PROGRAMS_ENDPOINT_H
#define ROCEBOX_PROGRAMS_ENDPOINT_H

#include <stdint.h>

/* In the device's memory; a handler is told its address. Addresses are the device's, numbers in host order. */
struct endpoint {
  uint64_t cq_ring, cq_doorbell;
  uint64_t send_ring, receive_ring, qp_doorbell;
  uint64_t buffers;      /* of receives, one behind the other: entry i of the ring has the i-th */
  uint64_t host_address; /* the host's memory that the window shows */
  uint64_t host_bytes;
  uint32_t cq_number, log_cq_entries;
  uint32_t qp_number, log_send_blocks, log_receives;
  uint32_t buffer_bytes, key; /* of the device's memory */
  uint32_t window, window_key;
  uint32_t role, count; /* of ping_pong: 1 begins; how often */
  /* The program's own, from one activation to the next. */
  uint32_t cq_index, send_index;
  uint64_t messages, bytes, errors;
};

#ifdef ROCEBOX_DPA_PROGRAM
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

/* What a CQE is of (mlx5's opcodes). */
enum {
  CQE_REQUESTER = 0,
  CQE_WRITE_IMM = 1,
  CQE_SEND = 2,
  CQE_SEND_IMM = 3,
  CQE_REQUESTER_ERROR = 13,
  CQE_RESPONDER_ERROR = 14
};

static inline struct flexio_dev_cqe64* next_cqe(const struct endpoint* e) {
  return (struct flexio_dev_cqe64*)e->cq_ring + (e->cq_index & ((1u << e->log_cq_entries) - 1));
}
/* The NIC writes 0 into the owner's bit when it goes through the ring for the first time, then 1, then 0. */
static inline int has_cqe(const struct endpoint* e) {
  return flexio_dev_cqe_get_owner(next_cqe(e)) == ((e->cq_index >> e->log_cq_entries) & 1);
}
static inline int has_failed(struct flexio_dev_cqe64* cqe) {
  const uint8_t opcode = flexio_dev_cqe_get_opcode(cqe);
  return opcode == CQE_REQUESTER_ERROR || opcode == CQE_RESPONDER_ERROR;
}
/* Counts what is not what the program works on; but not work requests that the end of a connection gives back. */
static inline void count_error(struct endpoint* e, struct flexio_dev_cqe64* cqe) {
  enum { SYNDROME_FLUSHED = 5 };
  if (!has_failed(cqe) || flexio_dev_cqe_get_err_synd(cqe) != SYNDROME_FLUSHED) e->errors++;
}
static inline void step_cq(struct endpoint* e) {
  e->cq_index++;
  flexio_dev_dbr_cq_set_ci((uint32_t*)e->cq_doorbell, e->cq_index);
}
/* The buffer that a message was received into; the NIC may use it again after return_buffer(). */
static inline uint8_t* buffer_of(const struct endpoint* e, struct flexio_dev_cqe64* cqe) {
  const uint32_t entry = flexio_dev_cqe_get_wqe_counter(cqe) & ((1u << e->log_receives) - 1);
  return flexio_dev_rwqe_get_addr((struct flexio_dev_wqe_rcv_data_seg*)e->receive_ring + entry);
}
static inline void return_buffer(const struct endpoint* e) { flexio_dev_dbr_rq_inc_pi((uint32_t*)e->qp_doorbell); }
/* Sends bytes of the device's memory, without a CQE unless it fails. */
static inline void send(struct flexio_dev_thread_ctx* context, struct endpoint* e, const void* bytes, uint32_t count) {
  union flexio_dev_sqe_seg* wqe = (union flexio_dev_sqe_seg*)e->send_ring +
                                  ((e->send_index & ((1u << e->log_send_blocks) - 1)) << LOG_SQE_NUM_SEGS);
  flexio_dev_swqe_seg_ctrl_set(&wqe[0], e->send_index, e->qp_number, MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR,
                               FLEXIO_CTRL_SEG_SEND_RC);
  flexio_dev_swqe_seg_mem_ptr_data_set(&wqe[1], count, e->key, (uint64_t)(uintptr_t)bytes);
  e->send_index++;
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
#if defined(FLEXIO_DEV_VER_USED) && FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
  (void)context;
  flexio_dev_qp_sq_ring_db((uint16_t)e->send_index, e->qp_number);
#else
  flexio_dev_qp_sq_ring_db(context, (uint16_t)e->send_index, e->qp_number);
#endif
}
#endif

#endif
