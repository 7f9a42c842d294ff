/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues: reading CQEs, writing WQEs, doorbells and doorbell records. */
#ifndef ROCEBOX_FLEXIO_DEV_QUEUE_ACCESS_H
#define ROCEBOX_FLEXIO_DEV_QUEUE_ACCESS_H

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_dpa_arch.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_types.h>
#include <stdint.h>

/* The outbox. Before 24.10 the first argument is the thread's context. */

FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t rocebox_dpa_sq_ring(uint16_t pi, uint32_t queue) {
  rocebox_dpa_ring_send_doorbell(pi, queue);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t rocebox_dpa_cq_event(uint32_t ci, uint32_t queue) {
  rocebox_dpa_arm_cq(ci, queue);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t rocebox_dpa_zero(uint32_t cq) {
  rocebox_dpa_zero_cqe(cq);
  return FLEXIO_DEV_STATUS_SUCCESS;
}

#if defined(ROCEBOX_DPA_NEW)
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_qp_sq_ring_db(uint16_t pi, uint32_t qnum) {
  rocebox_dpa_ring_send_doorbell(pi, qnum);
}
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_cq_arm(uint32_t ci, uint32_t qnum) { rocebox_dpa_arm_cq(ci, qnum); }
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_zcqe_gen(uint32_t cqn) { rocebox_dpa_zero_cqe(cqn); }
#define flexio_dev_msix_send(cqn) flexio_dev_zcqe_gen(cqn)
#elif defined(ROCEBOX_DPA_OLD)
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_qp_sq_ring_db(struct flexio_dev_thread_ctx* context,
                                                                      uint16_t pi, uint32_t qnum) {
  (void)context;
  return rocebox_dpa_sq_ring(pi, qnum);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_cq_arm(struct flexio_dev_thread_ctx* context, uint32_t ci,
                                                               uint32_t qnum) {
  (void)context;
  return rocebox_dpa_cq_event(ci, qnum);
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_zcqe_gen(struct flexio_dev_thread_ctx* context, uint32_t cqn) {
  (void)context;
  return rocebox_dpa_zero(cqn);
}
#define flexio_dev_msix_send(context, cqn) flexio_dev_zcqe_gen(context, cqn)
#else
/* Which form it is, the number of arguments says. */
#define ROCEBOX_DPA_THIRD(one, two, three, four, ...) four
#define ROCEBOX_DPA_RING_3(context, pi, qnum) ((void)(context), rocebox_dpa_sq_ring((uint16_t)(pi), qnum))
#define ROCEBOX_DPA_RING_2(pi, qnum) rocebox_dpa_sq_ring((uint16_t)(pi), qnum)
#define flexio_dev_qp_sq_ring_db(...) \
  ROCEBOX_DPA_THIRD(__VA_ARGS__, ROCEBOX_DPA_RING_3, ROCEBOX_DPA_RING_2, 0, 0)(__VA_ARGS__)
#define ROCEBOX_DPA_ARM_3(context, ci, qnum) ((void)(context), rocebox_dpa_cq_event(ci, qnum))
#define ROCEBOX_DPA_ARM_2(ci, qnum) rocebox_dpa_cq_event(ci, qnum)
#define flexio_dev_cq_arm(...) ROCEBOX_DPA_THIRD(__VA_ARGS__, ROCEBOX_DPA_ARM_3, ROCEBOX_DPA_ARM_2, 0, 0)(__VA_ARGS__)
#define ROCEBOX_DPA_ZERO_2(context, cqn) ((void)(context), rocebox_dpa_zero(cqn))
#define ROCEBOX_DPA_ZERO_1(cqn) rocebox_dpa_zero(cqn)
#define ROCEBOX_DPA_SECOND(one, two, three, ...) three
#define flexio_dev_zcqe_gen(...) ROCEBOX_DPA_SECOND(__VA_ARGS__, ROCEBOX_DPA_ZERO_2, ROCEBOX_DPA_ZERO_1, 0)(__VA_ARGS__)
#define flexio_dev_msix_send(...) flexio_dev_zcqe_gen(__VA_ARGS__)
#endif

/* CQEs. */

FLEXIO_DEV_ALWAYS_INLINE uint8_t flexio_dev_cqe_get_owner(struct flexio_dev_cqe64* cqe) {
  return rocebox_dpa_cqe_owner(cqe);
}
FLEXIO_DEV_ALWAYS_INLINE uint8_t flexio_dev_cqe_get_opcode(struct flexio_dev_cqe64* cqe) {
  return (uint8_t)(cqe->op_own >> 4);
}
FLEXIO_DEV_ALWAYS_INLINE uint8_t flexio_dev_cqe_get_type(struct flexio_dev_cqe64* cqe) {
  return (cqe->op_own >> 2) & 3;
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_qpn(struct flexio_dev_cqe64* cqe) {
  return be32_to_cpu(cqe->qpn) & 0xffffff;
}
FLEXIO_DEV_ALWAYS_INLINE uint16_t flexio_dev_cqe_get_wqe_counter(struct flexio_dev_cqe64* cqe) {
  return be16_to_cpu(cqe->wqe_counter);
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_byte_cnt(struct flexio_dev_cqe64* cqe) {
  return be32_to_cpu(cqe->byte_cnt);
}
FLEXIO_DEV_ALWAYS_INLINE uint16_t flexio_dev_cqe_get_csum_ok(struct flexio_dev_cqe64* cqe) {
  return be16_to_cpu(cqe->csum_ok);
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_user_index(struct flexio_dev_cqe64* cqe) {
  return be32_to_cpu(cqe->srqn_uidx) & 0xffffff;
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_err_synd(struct flexio_dev_cqe64* cqe) { return cqe->syndrome; }
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_hw_err_synd(struct flexio_dev_cqe64* cqe) {
  return cqe->hw_err_syndrome;
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_cqe_get_vendor_err_synd(struct flexio_dev_cqe64* cqe) {
  return cqe->vendor_err_synd;
}

/* EQEs, of which this NIC writes none: a thread is activated by its queue itself. */

FLEXIO_DEV_ALWAYS_INLINE uint8_t flexio_dev_eqe_get_owner(struct flexio_dev_eqe* eqe) {
  return *(volatile uint8_t*)&eqe->owner & 1;
}
FLEXIO_DEV_ALWAYS_INLINE uint32_t flexio_dev_eqe_get_cqn(struct flexio_dev_eqe* eqe) {
  return be32_to_cpu(eqe->event_data.cqn) & 0xffffff;
}

/* Receive WQEs. */

FLEXIO_DEV_ALWAYS_INLINE void* flexio_dev_rwqe_get_addr(struct flexio_dev_wqe_rcv_data_seg* rwqe) {
  return (void*)(uintptr_t)be64_to_cpu(rwqe->addr);
}

/* Send WQEs. */

enum flexio_ctrl_seg {
  FLEXIO_CTRL_SEG_SEND_EN = 0, /* of Ethernet */
  FLEXIO_CTRL_SEG_SEND_RC = 1,
  FLEXIO_CTRL_SEG_SEND_UC = 1,
  FLEXIO_CTRL_SEG_SEND_UD = 2,
  FLEXIO_CTRL_SEG_LDMA = 3,
  FLEXIO_CTRL_SEG_RDMA_WRITE = 4,
  FLEXIO_CTRL_SEG_RDMA_READ = 5,
  FLEXIO_CTRL_SEG_LSO = 6,
  FLEXIO_CTRL_SEG_NOP = 7,
  FLEXIO_CTRL_SEG_RDMA_WRITE_IMM = 8,
  FLEXIO_CTRL_SEG_TRANSPOSE = 9,
  FLEXIO_CTRL_SEG_WAIT_ON_DATA = 10,
  FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP = 11,
  FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD = 12
};
typedef enum flexio_ctrl_seg flexio_ctrl_seg_t;

enum {
  MLX5_CTRL_SEG_OPCODE_NOP = 0x00,
  MLX5_CTRL_SEG_OPCODE_SND_INV = 0x01,
  MLX5_CTRL_SEG_OPCODE_RDMA_WRITE = 0x08,
  MLX5_CTRL_SEG_OPCODE_RDMA_WRITE_WITH_IMMEDIATE = 0x09,
  MLX5_CTRL_SEG_OPCODE_SEND = 0x0a,
  MLX5_CTRL_SEG_OPCODE_SEND_WITH_IMMEDIATE = 0x0b,
  MLX5_CTRL_SEG_OPCODE_LSO = 0x0e,
  MLX5_CTRL_SEG_OPCODE_WAIT = 0x0f,
  MLX5_CTRL_SEG_OPCODE_RDMA_READ = 0x10,
  MLX5_CTRL_SEG_OPCODE_ATOMIC_COMPARE_AND_SWAP = 0x11,
  MLX5_CTRL_SEG_OPCODE_ATOMIC_FETCH_AND_ADD = 0x12,
  MLX5_CTRL_SEG_OPCODE_LOCAL_MMO = 0x32
};

/* Opcode in the low byte, what modifies it in the second, segments of the whole WQE above. */
FLEXIO_DEV_ALWAYS_INLINE uint32_t rocebox_dpa_wqe_shape(enum flexio_ctrl_seg type) {
  switch (type) {
    case FLEXIO_CTRL_SEG_SEND_RC:
      return 2u << 16 | MLX5_CTRL_SEG_OPCODE_SEND;
    case FLEXIO_CTRL_SEG_SEND_EN:
    case FLEXIO_CTRL_SEG_SEND_UD:
      return 3u << 16 | MLX5_CTRL_SEG_OPCODE_SEND;
    case FLEXIO_CTRL_SEG_RDMA_WRITE:
      return 3u << 16 | MLX5_CTRL_SEG_OPCODE_RDMA_WRITE;
    case FLEXIO_CTRL_SEG_RDMA_WRITE_IMM:
      return 3u << 16 | MLX5_CTRL_SEG_OPCODE_RDMA_WRITE_WITH_IMMEDIATE;
    case FLEXIO_CTRL_SEG_RDMA_READ:
      return 3u << 16 | MLX5_CTRL_SEG_OPCODE_RDMA_READ;
    case FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP:
      return 4u << 16 | MLX5_CTRL_SEG_OPCODE_ATOMIC_COMPARE_AND_SWAP;
    case FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD:
      return 4u << 16 | MLX5_CTRL_SEG_OPCODE_ATOMIC_FETCH_AND_ADD;
    case FLEXIO_CTRL_SEG_LSO:
      return 4u << 16 | MLX5_CTRL_SEG_OPCODE_LSO;
    case FLEXIO_CTRL_SEG_LDMA:
      return 4u << 16 | 1u << 8 | MLX5_CTRL_SEG_OPCODE_LOCAL_MMO;
    case FLEXIO_CTRL_SEG_TRANSPOSE:
      return 4u << 16 | MLX5_CTRL_SEG_OPCODE_LOCAL_MMO;
    case FLEXIO_CTRL_SEG_WAIT_ON_DATA:
      return 3u << 16 | 1u << 8 | MLX5_CTRL_SEG_OPCODE_WAIT;
    case FLEXIO_CTRL_SEG_NOP:
      break;
  }
  return 1u << 16 | MLX5_CTRL_SEG_OPCODE_NOP;
}

/* Begins a WQE. Immediate data goes to `ctrl.general_id` after this. */
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_ctrl_set(union flexio_dev_sqe_seg* swqe,
                                                                          uint32_t sq_pi, uint32_t sq_number,
                                                                          uint32_t ce,
                                                                          enum flexio_ctrl_seg ctrl_seg_type) {
  const uint32_t shape = rocebox_dpa_wqe_shape(ctrl_seg_type);
  swqe->ctrl.idx_opcode = cpu_to_be32((shape & 0xff00) << 16 | (sq_pi & 0xffff) << 8 | (shape & 0xff));
  swqe->ctrl.qpn_ds = cpu_to_be32(sq_number << 8 | shape >> 16);
  swqe->ctrl.signature_fm_ce_se = cpu_to_be32(ce << 2);
  swqe->ctrl.general_id = 0;
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_eth_set(union flexio_dev_sqe_seg* swqe,
                                                                         uint16_t cs_swp_flags, uint16_t mss,
                                                                         uint16_t inline_hdr_bsz,
                                                                         uint8_t inline_hdrs[2]) {
  swqe->eth.rsvd0 = swqe->eth.rsvd2 = 0;
  swqe->eth.cs_swp_flags = cpu_to_be16(cs_swp_flags);
  swqe->eth.mss = cpu_to_be16(mss);
  swqe->eth.inline_hdr_bsz = cpu_to_be16(inline_hdr_bsz);
  for (int i = 0; inline_hdrs && i < 2; i++) swqe->eth.inline_hdrs[i] = inline_hdrs[i];
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_rdma_set(union flexio_dev_sqe_seg* swqe, uint32_t rkey,
                                                                          uint64_t raddr) {
  swqe->rdma.raddr = cpu_to_be64(raddr);
  swqe->rdma.rkey = cpu_to_be32(rkey);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_mem_ptr_data_set(union flexio_dev_sqe_seg* swqe,
                                                                                  uint32_t data_sz, uint32_t lkey,
                                                                                  uint64_t data_addr) {
  swqe->mem_ptr_send_data.byte_count = cpu_to_be32(data_sz);
  swqe->mem_ptr_send_data.lkey = cpu_to_be32(lkey);
  swqe->mem_ptr_send_data.addr = cpu_to_be64(data_addr);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
/* At most 12 bytes; `data` has three words. */
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_inline_data_set(union flexio_dev_sqe_seg* swqe,
                                                                                 uint32_t data_sz, uint32_t* data) {
  swqe->inline_send_data.byte_count = cpu_to_be32(0x80000000u | data_sz);
  for (int i = 0; i < 3; i++) swqe->inline_send_data.data_and_padding[i] = data[i];
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_atomic_set(union flexio_dev_sqe_seg* swqe,
                                                                            uint64_t swap_or_add_data,
                                                                            uint64_t compare_data) {
  swqe->atomic.swap_or_add_data = cpu_to_be64(swap_or_add_data);
  swqe->atomic.compare_data = cpu_to_be64(compare_data);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_swqe_seg_shared_receive_set(union flexio_dev_sqe_seg* swqe,
                                                                                    uint16_t next_wqe_index,
                                                                                    uint8_t signature) {
  swqe->shared_receive.next_wqe_index = cpu_to_be16(next_wqe_index);
  swqe->shared_receive.signature = signature;
  return FLEXIO_DEV_STATUS_SUCCESS;
}

/* A datagram's address: its three segments. */
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_swqe_seg_av1_set(union flexio_dev_sqe_seg* swqe, uint32_t qkey, uint32_t dqp,
                                                          uint8_t ext, uint8_t stat_rate_sl, uint8_t fl_mlid,
                                                          uint16_t rlid) {
  swqe->adres_vector.s1.key.qkey.qkey = cpu_to_be32(qkey);
  swqe->adres_vector.s1.key.qkey.reserved = 0;
  swqe->adres_vector.s1.ext_dqp_dct = cpu_to_be32((uint32_t)ext << 31 | dqp);
  swqe->adres_vector.s1.stat_rate_sl = stat_rate_sl;
  swqe->adres_vector.s1.fl_mlid = fl_mlid;
  swqe->adres_vector.s1.rlid = cpu_to_be16(rlid);
}
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_swqe_seg_av2_set(union flexio_dev_sqe_seg* swqe, uint8_t* rmac, uint8_t tclass,
                                                          uint8_t hop_limit, uint32_t grh_gid_fl) {
  for (int i = 0; i < 6; i++) swqe->adres_vector.s2.rmac[i] = rmac[i];
  swqe->adres_vector.s2.tclass = tclass;
  swqe->adres_vector.s2.hop_limit = hop_limit;
  swqe->adres_vector.s2.grh_gid_fl = cpu_to_be32(grh_gid_fl);
}
FLEXIO_DEV_ALWAYS_INLINE void flexio_dev_swqe_seg_av3_set(union flexio_dev_sqe_seg* swqe, uint8_t* rgid) {
  for (int i = 0; i < 16; i++) swqe->adres_vector.s3.rgid[i] = rgid[i];
}

/* Doorbell records. */

FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_dbr_cq_set_ci(uint32_t* cq_dbr, uint32_t ci) {
  *(volatile uint32_t*)cq_dbr = cpu_to_be32(ci & 0xffffff);
  return FLEXIO_DEV_STATUS_SUCCESS;
}
FLEXIO_DEV_ALWAYS_INLINE flexio_dev_status_t flexio_dev_dbr_rq_inc_pi(uint32_t* rq_dbr) {
  *(volatile uint32_t*)rq_dbr = cpu_to_be32((be32_to_cpu(*rq_dbr) + 1) & 0xffff);
  return FLEXIO_DEV_STATUS_SUCCESS;
}

#endif
