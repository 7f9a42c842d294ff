/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/micro/allgather_handlers.h"

#include <string.h>

/* The emulator's functions of these names belong to its threads. */
#define rocebox_dpa_cqe_owner handlers_cqe_owner
#define rocebox_dpa_fence handlers_fence
#define rocebox_dpa_ring_send_doorbell handlers_ring
#define rocebox_dpa_arm_cq handlers_arm
#define rocebox_dpa_window_config handlers_window_config
#define rocebox_dpa_window_pointer handlers_window_pointer
#define ROCEBOX_DPA_PROGRAM
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

static struct handlers_queue* running;

uint8_t rocebox_dpa_cqe_owner(const volatile void* cqe) { return ((const volatile uint8_t*)cqe)[63] & 1; }
void rocebox_dpa_fence(int space, int operations) { (void)space, (void)operations; }
void rocebox_dpa_arm_cq(uint32_t consumer, uint32_t cq) { (void)consumer, (void)cq; }
int rocebox_dpa_window_config(int entity, uint16_t window, uint32_t mkey) {
  (void)entity, (void)window, (void)mkey;
  return 0;
}
int rocebox_dpa_window_pointer(int entity, uint64_t host_address, uint64_t* device_address) {
  (void)entity;
  *device_address = host_address;
  return 0;
}

void handlers_publish(struct handlers_queue* q, uint8_t opcode, uint32_t immediate, uint32_t bytes,
                      uint32_t source_qp) {
  struct flexio_dev_cqe64* cqe = (struct flexio_dev_cqe64*)q->cqes + (q->produced & q->cqe_mask);
  cqe->rsvd24[0] = cpu_to_be32(source_qp);
  cqe->imm_inval_pkey = cpu_to_be32(immediate);
  cqe->byte_cnt = cpu_to_be32(bytes);
  /* The owner bit is 0 in the first round, and changes in each. */
  cqe->op_own = (uint8_t)(opcode << 4 | (q->produced / (q->cqe_mask + 1) & 1));
  q->produced++;
}

void rocebox_dpa_ring_send_doorbell(uint16_t producer, uint32_t number) {
  (void)number;
  for (; running->written != producer; running->written++) {
    const union flexio_dev_sqe_seg* wqe =
        (const union flexio_dev_sqe_seg*)(running->writes + (size_t)(running->written & running->write_mask) * 64);
    memcpy((void*)(uintptr_t)be64_to_cpu(wqe[1].rdma.raddr),
           (const void*)(uintptr_t)be64_to_cpu(wqe[2].mem_ptr_send_data.addr),
           be32_to_cpu(wqe[2].mem_ptr_send_data.byte_count));
    handlers_publish(running, 0, 0, 0, 0);
  }
}

/* What ends an activation there ends the function here. */
#define flexio_dev_thread_reschedule() return
#define flexio_dev_get_thread_ctx(context) (*(context) = 0)
#undef flexio_dev_print
#define flexio_dev_print(...) ((void)0)
#define allgather_ud_handler handlers_ud
#define allgather_uc_handler handlers_uc
#include "kernels/allgather/dpa/allgather_receive.c"

void handlers_run_ud(struct handlers_queue* queue, struct allgather_worker* worker) {
  running = queue;
  handlers_ud((uintptr_t)worker);
}
void handlers_run_uc(struct handlers_queue* queue, struct allgather_worker* worker) {
  running = queue;
  handlers_uc((uintptr_t)worker);
}
