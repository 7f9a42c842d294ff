/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive handlers of kernels/allgather/dpa, compiled into a program, with the device API as it is on a core: no
 * thread gives way, a window is the host's memory, and a WRITE through the loopback queue pair is done when its
 * doorbell is rung. */
#ifndef ROCEBOX_BENCH_ALLGATHER_HANDLERS_H
#define ROCEBOX_BENCH_ALLGATHER_HANDLERS_H

#include <stdint.h>

#include "kernels/allgather/dpa/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A completion queue as its writer has it, and the ring of the loopback queue pair whose completions go there, too. */
struct handlers_queue {
  uint8_t* cqes;   /* of 64 bytes */
  uint8_t* writes; /* WQEs of 64 bytes; null: there are none */
  uint32_t cqe_mask, write_mask;
  uint32_t produced; /* CQEs */
  uint16_t written;  /* WQEs that are done */
};

/* A CQE of what has come: opcodes are mlx5's. */
void handlers_publish(struct handlers_queue* queue, uint8_t opcode, uint32_t immediate, uint32_t bytes,
                      uint32_t source_qp);
/* An activation: until `queue`, which is the worker's, is empty. */
void handlers_run_ud(struct handlers_queue* queue, struct allgather_worker* worker);
void handlers_run_uc(struct handlers_queue* queue, struct allgather_worker* worker);

#ifdef __cplusplus
}
#endif
#endif
