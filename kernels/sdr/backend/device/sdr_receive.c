/* SPDX-License-Identifier: BSD-3-Clause */
/* sdr_receive: SDR's receive worker (3.4.2). Each completion of a WRITE with immediate sets a bit of its message's packet
 * bitmap in the device's memory; whoever sets the last one of a chunk sets the chunk's byte in the host's. */
#include "sdr_bitmaps.h"

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

enum { CQE_WRITE_IMM = 1, CQE_ERROR = 14, FLUSHED = 5 };

/* The window that the thread has open now. */
struct view {
  const struct sdr_table *table;
  struct sdr_reach host; /* to its chunk bytes */
};

static struct flexio_dev_cqe64 *next_cqe(const struct sdr_worker *w) {
  return (struct flexio_dev_cqe64 *)w->cq_ring + (w->cq_index & ((1u << w->log_cq_entries) - 1));
}
static int has_cqe(const struct sdr_worker *w) {
  return flexio_dev_cqe_get_owner(next_cqe(w)) == ((w->cq_index >> w->log_cq_entries) & 1);
}

/* A queue pair that has failed gives up all of its receive requests; whatever else is completed has taken one. What nobody
 * of ours sends (a SEND) takes one too, and would leave none to our packets. */
static int took_receive(struct flexio_dev_cqe64 *cqe) {
  return flexio_dev_cqe_get_opcode(cqe) != CQE_ERROR || flexio_dev_cqe_get_err_synd(cqe) != FLUSHED;
}

static void open_view(struct flexio_dev_thread_ctx *context, struct view *view, const struct sdr_table *table) {
  flexio_uintptr_t area = 0;
  if (view->table == table) return;
  view->table = table;
  view->host.can_write =
      flexio_dev_window_config(context, (uint16_t)table->window, table->window_key) == FLEXIO_DEV_STATUS_SUCCESS &&
      flexio_dev_window_ptr_acquire(context, table->host_area, &area) == FLEXIO_DEV_STATUS_SUCCESS;
  view->host.added = area - table->host_area;
}

flexio_dev_event_handler_t sdr_receive_handler;
__dpa_global__ void sdr_receive_handler(uint64_t argument) {
  struct sdr_worker *w = (struct sdr_worker *)argument;
  struct flexio_dev_thread_ctx *context;
  struct view view = {0, {0, 0}};

  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(w)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(w);
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    const uint32_t number = flexio_dev_cqe_get_qpn(cqe) - w->first_qpn;
    const struct sdr_route *route = number < w->routes_count ? (struct sdr_route *)w->routes + number : 0;
    struct sdr_table *t = route ? (struct sdr_table *)route->table : 0;
    if (t && flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM) {
      open_view(context, &view, t);
      const uint32_t what = sdr_arrive(t, view.host, route->generation, be32_to_cpu(cqe->imm_inval_pkey),
                                       flexio_dev_cqe_get_byte_cnt(cqe));
      if (what == SDR_CHUNK || what == SDR_MESSAGE) __dpa_thread_window_writeback();
      __atomic_fetch_add(&t->arrivals[what], 1, __ATOMIC_RELAXED);
    } else {
      w->errors++;
    }
    const int gives_back = t && took_receive(cqe);
    flexio_dev_dbr_cq_set_ci((uint32_t *)w->cq_doorbell, w->cq_index + 1);
    if (gives_back) {
      /* The CQ has a place for each receive request: the CQE's must be free before the NIC may use its request again. */
      __dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
      flexio_dev_dbr_rq_inc_pi((uint32_t *)route->receive_doorbell);
    }
    w->cq_index++; /* the completion's queue pair may now be another one's */
  }
  flexio_dev_cq_arm(context, w->cq_index, w->cq_number);
  flexio_dev_thread_reschedule();
}
