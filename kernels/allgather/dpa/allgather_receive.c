/* SPDX-License-Identifier: BSD-3-Clause */
/* allgather_receive: the receive datapath of multicast collectives, one worker a subgroup. allgather_ud_handler takes
 * datagrams from staging to the user's buffer by WRITEs through a loopback queue pair; allgather_uc_handler counts what
 * the NIC has written where it belongs. */
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

#include "worker.h"

/* What a CQE is of (mlx5's opcodes). */
enum { CQE_REQUESTER = 0, CQE_WRITE_IMM = 1, CQE_SEND = 2, CQE_SEND_IMM = 3 };
enum { GRH_BYTES = 40 };

flexio_dev_event_handler_t allgather_ud_handler, allgather_uc_handler;

static struct flexio_dev_cqe64* next_cqe(const struct allgather_worker* w) {
  return (struct flexio_dev_cqe64*)w->cq_ring + (w->cq_index & ((1u << w->log_cq_entries) - 1));
}
static int has_cqe(const struct allgather_worker* w) {
  return flexio_dev_cqe_get_owner(next_cqe(w)) == ((w->cq_index >> w->log_cq_entries) & 1);
}
static void step_cq(struct allgather_worker* w) {
  w->cq_index++;
  flexio_dev_dbr_cq_set_ci((uint32_t*)w->cq_doorbell, w->cq_index);
}
static uint32_t entry_mask(const struct allgather_worker* w) { return (1u << w->log_receives) - 1; }

/* mlx5's flags_rqpn, which FlexIO gives no name. */
static uint32_t source_qp(const struct flexio_dev_cqe64* cqe) { return be32_to_cpu(cqe->rsvd24[0]) & 0xffffff; }

/* Slots are posted again in the order in which they were taken. */
static void give_back(struct allgather_worker* w, uint32_t entry) {
  uint8_t* finished = (uint8_t*)w->finished;
  finished[entry] = 1;
  while (w->returned != w->taken && finished[w->returned & entry_mask(w)]) {
    finished[w->returned++ & entry_mask(w)] = 0;
    flexio_dev_dbr_rq_inc_pi((uint32_t*)w->receive_doorbell);
  }
}

/* A chunk lies in the user's buffer. The last worker whose part is whole tells the host. */
static void land(struct flexio_dev_thread_ctx* context, struct allgather_operation* o, uint32_t block) {
  struct allgather_team* team = (struct allgather_team*)o->team;
  flexio_uintptr_t flag = 0;
  (void)context;
  ((uint32_t*)o->landed)[block]++;
  if (--o->left != 0) return;
  if (__atomic_add_fetch(&team->finished, 1, __ATOMIC_RELAXED) != team->workers) return;
  if (flexio_dev_window_config(context, (uint16_t)team->window, team->key) != FLEXIO_DEV_STATUS_SUCCESS ||
      flexio_dev_window_ptr_acquire(context, team->host_flag, &flag) != FLEXIO_DEV_STATUS_SUCCESS) {
    flexio_dev_print("no window to the host's flag\n");
    return;
  }
  *(volatile uint64_t*)flag = team->value;
  __dpa_thread_window_writeback();
}

/* The collective of a chunk that has come and is new, and where it belongs; null: none, and why is counted. `grh` is
 * null where there is none. */
static struct allgather_operation* accept(struct allgather_worker* w, struct flexio_dev_cqe64* cqe, const uint8_t* grh,
                                          uint32_t* block, uint32_t* index) {
  const uint32_t immediate = be32_to_cpu(cqe->imm_inval_pkey);
  const uint32_t tag = (uint32_t)((uint64_t)immediate >> w->chunk_bits);
  const uint32_t chunk = immediate & (uint32_t)((1ull << w->chunk_bits) - 1);
  struct allgather_operation* o = w->operation;
  uint32_t place, bytes;
  uint64_t bit, *word;
  while (o < w->operation + w->operations && !(o->active && o->tag == tag)) o++;
  if (o == w->operation + w->operations) return w->stale++, (void*)0;
  *block = chunk / o->chunks_per_block;
  if (*block >= o->blocks) return w->out_of_range++, (void*)0;
  *index = chunk % o->chunks_per_block;
  if (grh) {
    const struct allgather_sender* sender =
        (struct allgather_sender*)w->senders + (o->root >= 0 ? (uint32_t)o->root : *block);
    uint32_t address;
    __builtin_memcpy(&address, grh + w->address_offset, sizeof address);
    if (source_qp(cqe) != sender->qpn || address != sender->address) return w->strangers++, (void*)0;
  }
  bytes = *index + 1 == o->chunks_per_block ? (uint32_t)(o->block_bytes - (uint64_t)*index * o->chunk_bytes)
                                            : o->chunk_bytes;
  if (flexio_dev_cqe_get_byte_cnt(cqe) != bytes + (grh ? GRH_BYTES : 0)) return w->wrong_length++, (void*)0;
  place = *index - o->first;
  if (place >= o->length) return w->other_subgroup++, (void*)0;
  bit = (uint64_t)*block * o->length + place;
  word = (uint64_t*)o->bitmap + bit / 64;
  if (*word >> (bit % 64) & 1) return w->duplicates++, (void*)0;
  *word |= 1ull << (bit % 64);
  w->chunks++;
  return o;
}

/* Copies a chunk from its slot to the user's buffer. */
static void copy(struct flexio_dev_thread_ctx* context, struct allgather_worker* w, struct allgather_operation* o,
                 uint32_t block, uint32_t index, uint32_t entry, uint32_t bytes) {
  union flexio_dev_sqe_seg* wqe =
      (union flexio_dev_sqe_seg*)w->loopback_ring + ((w->copies_begun & entry_mask(w)) << LOG_SQE_NUM_SEGS);
  struct allgather_copy* record = (struct allgather_copy*)w->copies + (w->copies_begun & entry_mask(w));
  (void)context;
  record->operation = (uint32_t)(o - w->operation);
  record->block = block;
  record->entry = entry;
  flexio_dev_swqe_seg_ctrl_set(&wqe[0], w->copies_begun, w->loopback_number, MLX5_CTRL_SEG_CE_CQE_ALWAYS,
                               FLEXIO_CTRL_SEG_RDMA_WRITE);
  flexio_dev_swqe_seg_rdma_set(&wqe[1], o->key, o->address + block * o->block_bytes + (uint64_t)index * o->chunk_bytes);
  flexio_dev_swqe_seg_mem_ptr_data_set(&wqe[2], bytes, w->staging_key,
                                       w->staging + (uint64_t)entry * w->slot_bytes + GRH_BYTES);
  w->copies_begun++;
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
  flexio_dev_qp_sq_ring_db(context, (uint16_t)w->copies_begun, w->loopback_number);
}

static void receive(struct flexio_dev_thread_ctx* context, struct allgather_worker* w, struct flexio_dev_cqe64* cqe) {
  const uint32_t entry = w->taken++ & entry_mask(w);
  const uint8_t* slot = (const uint8_t*)w->staging + (uint64_t)entry * w->slot_bytes;
  uint32_t block = 0, index = 0;
  struct allgather_operation* o = 0;
  if (flexio_dev_cqe_get_opcode(cqe) == CQE_SEND_IMM)
    o = accept(w, cqe, slot, &block, &index);
  else
    w->no_immediate++;
  if (o)
    copy(context, w, o, block, index, entry, flexio_dev_cqe_get_byte_cnt(cqe) - GRH_BYTES);
  else
    give_back(w, entry);
}

__dpa_global__ void allgather_ud_handler(uint64_t argument) {
  struct allgather_worker* w = (struct allgather_worker*)argument;
  struct flexio_dev_thread_ctx* context;
  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(w)) {
    struct flexio_dev_cqe64* cqe = next_cqe(w);
    const uint8_t opcode = flexio_dev_cqe_get_opcode(cqe);
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    if (opcode == CQE_SEND_IMM || opcode == CQE_SEND) {
      receive(context, w, cqe);
    } else if (opcode == CQE_REQUESTER) {
      const struct allgather_copy* done = (struct allgather_copy*)w->copies + (w->copies_done++ & entry_mask(w));
      land(context, &w->operation[done->operation], done->block);
      give_back(w, done->entry);
    } else {
      w->errors++;
    }
    step_cq(w);
  }
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
  flexio_dev_cq_arm(context, w->cq_index, w->cq_number);
  flexio_dev_thread_reschedule();
}

__dpa_global__ void allgather_uc_handler(uint64_t argument) {
  struct allgather_worker* w = (struct allgather_worker*)argument;
  struct flexio_dev_thread_ctx* context;
  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(w)) {
    struct flexio_dev_cqe64* cqe = next_cqe(w);
    uint32_t block = 0, index = 0;
    struct allgather_operation* o;
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    if (flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM) {
      w->taken++;
      if ((o = accept(w, cqe, 0, &block, &index))) land(context, o, block);
      w->returned++;
      flexio_dev_dbr_rq_inc_pi((uint32_t*)w->receive_doorbell);
    } else {
      w->errors++;
    }
    step_cq(w);
  }
  __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
  flexio_dev_cq_arm(context, w->cq_index, w->cq_number);
  flexio_dev_thread_reschedule();
}
