/* SPDX-License-Identifier: BSD-3-Clause */
/* All names of the device API that do not differ between versions, as programs use them. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev_debug.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <libflexio-libc/stdio.h>
#include <libflexio-libc/string.h>
#include <libflexio-os/flexio_os.h>
#include <libflexio-os/flexio_os_mb.h>
#include <libflexio-os/flexio_os_syscall.h>
#include <stddef.h>

#include "endpoint.h"

_Static_assert(sizeof(struct flexio_dev_cqe64) == 64 && sizeof(union flexio_dev_sqe_seg) == 16, "sizes");
_Static_assert(offsetof(struct flexio_dev_cqe64, rsvd36) == 36, "the immediate's old name");
_Static_assert(offsetof(struct flexio_dev_cqe64, imm_inval_pkey) == 36, "the immediate");
_Static_assert(offsetof(struct flexio_dev_cqe64, byte_cnt) == 44 && offsetof(struct flexio_dev_cqe64, qpn) == 56,
               "CQE");
_Static_assert(offsetof(struct flexio_dev_cqe64, wqe_counter) == 60, "CQE");
_Static_assert(offsetof(struct flexio_dev_cqe64, op_own) == 63, "CQE");
_Static_assert(sizeof(struct flexio_dev_wqe_rcv_data_seg) == 16 && sizeof(struct flexio_dev_eqe) == 64, "sizes");
_Static_assert(sizeof(flexio_uintptr_t) == 8 && MLX5_CTRL_SEG_CE_CQE_ALWAYS == 2, "types");

typedef struct {
  struct flexio_dev_cqe64 *cq_ring, *cqe;
  uint32_t cq_idx;
  uint8_t cq_hw_owner_bit;
  uint32_t* cq_dbr;
} cq_context;

/* The loop of public programs: the owner's bit that means "the NIC's" begins with 1. */
static inline uint32_t drain(cq_context* cq, uint32_t mask, uint32_t most) {
  uint32_t seen = 0;
  while (flexio_dev_cqe_get_owner(cq->cqe) != cq->cq_hw_owner_bit && seen < most) {
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    seen++;
    cq->cq_idx++;
    cq->cqe = &cq->cq_ring[cq->cq_idx & mask];
    if (!(cq->cq_idx & mask)) cq->cq_hw_owner_bit = !cq->cq_hw_owner_bit;
    flexio_dev_dbr_cq_set_ci(cq->cq_dbr, cq->cq_idx);
  }
  return seen;
}

/* One WQE of each kind, 64 bytes apart; what is in them the test knows. */
static inline void write_wqes(union flexio_dev_sqe_seg* at, uint32_t qpn) {
  uint32_t words[3] = {1, 2, 3};
  uint8_t headers[2] = {0xaa, 0xbb};
  flexio_dev_swqe_seg_ctrl_set(&at[0], 5, qpn, MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_SEND_RC);
  flexio_dev_swqe_seg_mem_ptr_data_set(&at[1], 100, 0x1234, 0x1122334455667788);
  flexio_dev_swqe_seg_ctrl_set(&at[4], 0x10006, qpn, MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR, FLEXIO_CTRL_SEG_RDMA_WRITE_IMM);
  at[4].ctrl.general_id = cpu_to_be32(77);
  flexio_dev_swqe_seg_rdma_set(&at[5], 0x5678, 0x8877665544332211);
  flexio_dev_swqe_seg_inline_data_set(&at[6], 12, words);
  flexio_dev_swqe_seg_ctrl_set(&at[8], 7, qpn, MLX5_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR,
                               FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP);
  flexio_dev_swqe_seg_rdma_set(&at[9], 1, 2);
  flexio_dev_swqe_seg_atomic_set(&at[10], 3, 4);
  flexio_dev_swqe_seg_mem_ptr_data_set(&at[11], 8, 9, 10);
  flexio_dev_swqe_seg_ctrl_set(&at[12], 8, qpn, MLX5_CTRL_SEG_CE_CQE_AND_EQE, FLEXIO_CTRL_SEG_SEND_EN);
  flexio_dev_swqe_seg_eth_set(&at[13], FLEXIO_ETH_SEG_L3CS, 1000, 2, headers);
  flexio_dev_swqe_seg_mem_ptr_data_set(&at[14], 1, 2, 3);
  flexio_dev_swqe_seg_ctrl_set(&at[16], 9, qpn, MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_RDMA_WRITE);
  flexio_dev_swqe_seg_ctrl_set(&at[20], 10, qpn, MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_RDMA_READ);
  flexio_dev_swqe_seg_ctrl_set(&at[24], 11, qpn, MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD);
  flexio_dev_swqe_seg_ctrl_set(&at[28], 12, qpn, MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_NOP);
}

/* Reads all fields of a CQE. */
static inline uint64_t read_cqe(struct flexio_dev_cqe64* cqe) {
  return flexio_dev_cqe_get_opcode(cqe) + flexio_dev_cqe_get_qpn(cqe) + flexio_dev_cqe_get_wqe_counter(cqe) +
         flexio_dev_cqe_get_byte_cnt(cqe) + flexio_dev_cqe_get_csum_ok(cqe) + flexio_dev_cqe_get_user_index(cqe) +
         flexio_dev_cqe_get_err_synd(cqe) + flexio_dev_cqe_get_hw_err_synd(cqe) + flexio_dev_cqe_get_type(cqe) +
         flexio_dev_cqe_get_vendor_err_synd(cqe) + (uint32_t)cqe->rsvd36[0];
}

/* What remains, so that each name is compiled; never called with 1. */
static inline void the_rest(uint64_t really) {
  static struct spinlock_s lock;
  struct flexio_dev_thread_ctx* context;
  uint32_t doorbell = 0, copy = 0;
  flexio_dev_get_thread_ctx(&context);
  spin_init(&lock);
  spin_lock(&lock);
  if (spin_trylock(&lock)) doorbell++;
  spin_unlock(&lock);
  __dpa_thread_memory_writeback();
  __dpa_thread_window_writeback();
  __dpa_thread_window_read_inv();
  __dpa_thread_memory_fence(__DPA_R, __DPA_W);
  __dpa_thread_outbox_fence(__DPA_W, __DPA_RW);
  __dpa_thread_window_fence(__DPA_W, __DPA_RW);
  __dpa_thread_system_fence();
  __dpa_thread_fence(__DPA_HEAP, __DPA_W, __DPA_W);
  __dpa_thread_fence(__DPA_MMIO, __DPA_RW, __DPA_RW);
  flexio_os_mb(), flexio_os_rmb(), flexio_os_wmb();
  (void)__dpa_thread_cycles(), (void)__dpa_thread_inst_ret(), (void)__dpa_thread_time();
  flexio_dev_dbr_rq_inc_pi(&doorbell);
  flexio_dev_memcpy32(&copy, &doorbell, 4);
  flexio_dev_outbox_config(context, 1);
  flexio_dev_msg_dflt(FLEXIO_MSG_DEV_DEBUG, "%s %u\n", flexio_dev_get_current_thread_name(),
                      flexio_dev_get_thread_id(context));
  flexio_dev_puts(context, (char*)"text");
  print_sim_str("text\n", 0), print_sim_hex(255, 0), print_sim_int(-1, 0);
  if (be16_to_cpu(cpu_to_be16(1)) + be64_to_cpu(cpu_to_be64(2)) != 3 || flexio_dev_get_errno()) flexio_dev_error(9);
  struct flexio_dev_wqe_rcv_data_seg receive = {0, 0, cpu_to_be64(0x1122334455667788)};
  const flexio_dev_status_t status = FLEXIO_DEV_STATUS_SUCCESS;
  if ((uint64_t)(uintptr_t)flexio_dev_rwqe_get_addr(&receive) != 0x1122334455667788) flexio_dev_error(10);
  if (be32_to_cpu(cpu_to_be32(3)) != 3 || status == FLEXIO_DEV_STATUS_FAILED) flexio_dev_error(11);
  flexio_dev_print("%d\n", (int)status);
  if (!really) return;
  flexio_dev_event_handler_activate(0);
  flexio_dev_thread_retrigger();
  flexio_dev_process_finish();
}

/* Handlers end in one of these ways, too. */
flexio_dev_event_handler_t forms_handler;
__dpa_global__ void forms_handler(uint64_t argument) {
  if (argument) flexio_dev_thread_reschedule();
  flexio_dev_thread_finish();
}
