/* SPDX-License-Identifier: BSD-3-Clause */
/* sdr_receive: SDR's receive worker (3.4.2). Each completion of a WRITE with immediate sets a bit of its message's packet
 * bitmap in the device's memory; whoever sets the last one of a chunk sets the chunk's byte in the host's. */
#include "sdr_device.h"

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

enum { CQE_WRITE_IMM = 1 };
#define RELAXED __ATOMIC_RELAXED
#define ACQ_REL __ATOMIC_ACQ_REL

/* The window that the thread has open now. */
struct view {
  const struct sdr_table *table;
  flexio_uintptr_t host; /* the host's memory from the table's host_area on; 0: none */
};

static struct flexio_dev_cqe64 *next_cqe(const struct sdr_worker *w) {
  return (struct flexio_dev_cqe64 *)w->cq_ring + (w->cq_index & ((1u << w->log_cq_entries) - 1));
}
static int has_cqe(const struct sdr_worker *w) {
  return flexio_dev_cqe_get_owner(next_cqe(w)) == ((w->cq_index >> w->log_cq_entries) & 1);
}

static void open_view(struct flexio_dev_thread_ctx *context, struct view *view, const struct sdr_table *table) {
  if (view->table == table) return;
  view->table = table;
  view->host = 0;
  if (flexio_dev_window_config(context, (uint16_t)table->window, table->window_key) != FLEXIO_DEV_STATUS_SUCCESS ||
      flexio_dev_window_ptr_acquire(context, table->host_area, &view->host) != FLEXIO_DEV_STATUS_SUCCESS)
    view->host = 0;
}

/* The first copy of a fragment counts. */
static void take_fragment(const struct sdr_table *t, struct sdr_slot *slot, uint32_t offset, uint32_t fragment) {
  const uint32_t index = offset % (32 / t->fragment_bits);
  if (__atomic_load_n(&slot->fragments, RELAXED) >> index & 1) return;
  __atomic_fetch_or(&slot->user, fragment << (index * t->fragment_bits), RELAXED);
  __atomic_fetch_or(&slot->fragments, 1u << index, __ATOMIC_RELEASE);
}

/* Whether the packet's bit was the last one of its chunk; `before` is the word without it. */
static int ends_chunk(const struct sdr_table *t, uint32_t message, uint32_t chunk, uint64_t before, uint64_t bit) {
  if (t->words_left == 0) {
    const uint32_t size = 1u << t->chunk_shift;
    const uint64_t whole = size == 64 ? ~0ull : ((1ull << size) - 1) << ((chunk << t->chunk_shift) % 64);
    return ((before | bit) & whole) == whole;
  }
  if ((before | bit) != ~0ull) return 0;
  uint32_t *left = (uint32_t *)t->words_left + (uint64_t)message * t->chunks + chunk;
  return __atomic_fetch_sub(left, 1, ACQ_REL) == 1;
}

static uint32_t set_packet(const struct sdr_table *t, struct sdr_slot *slot, const struct view *view, uint32_t message,
                           uint32_t packet) {
  uint64_t *word = (uint64_t *)t->bitmap + (uint64_t)message * t->words + packet / 64;
  const uint64_t bit = 1ull << (packet % 64);
  const uint64_t before = __atomic_fetch_or(word, bit, ACQ_REL);
  const uint32_t chunk = packet >> t->chunk_shift;
  if (before & bit) return SDR_DUPLICATE;
  if (!ends_chunk(t, message, chunk, before, bit)) return SDR_PACKET;
  if (view->host)
    __atomic_store_n((uint8_t *)(view->host + (slot->chunks - t->host_area)) + chunk, 1, __ATOMIC_RELEASE);
  __dpa_thread_window_writeback();
  return __atomic_fetch_sub(&slot->chunks_left, 1, ACQ_REL) == 1 ? SDR_MESSAGE : SDR_CHUNK;
}

static uint32_t arrive(const struct sdr_table *t, const struct view *view, uint32_t generation, uint32_t immediate,
                       uint32_t bytes) {
  const uint32_t message = immediate >> (t->offset_bits + t->fragment_bits);
  const uint32_t packet = immediate >> t->fragment_bits & ((1u << t->offset_bits) - 1);
  if (message >= t->messages) return SDR_NO_MESSAGE;
  struct sdr_slot *slot = (struct sdr_slot *)t->slots + message;
  const uint32_t posted = __atomic_load_n(&slot->generation, __ATOMIC_ACQUIRE);
  if (posted != generation) return posted == SDR_FREE ? SDR_NO_MESSAGE : SDR_LATE_GENERATION;
  if (bytes != 0 && packet >= slot->packets) return SDR_OUTSIDE;
  if (bytes == 0 && (t->fragment_bits == 0 || packet >= 32 / t->fragment_bits)) return SDR_OUTSIDE;
  if (t->fragment_bits != 0) take_fragment(t, slot, packet, immediate & ((1u << t->fragment_bits) - 1));
  return bytes == 0 ? SDR_FRAGMENT : set_packet(t, slot, view, message, packet);
}

flexio_dev_event_handler_t sdr_receive_handler;
__dpa_global__ void sdr_receive_handler(uint64_t argument) {
  struct sdr_worker *w = (struct sdr_worker *)argument;
  struct flexio_dev_thread_ctx *context;
  struct view view = {0, 0};

  flexio_dev_get_thread_ctx(&context);
  while (has_cqe(w)) {
    struct flexio_dev_cqe64 *cqe = next_cqe(w);
    __dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
    const uint32_t number = flexio_dev_cqe_get_qpn(cqe) - w->first_qpn;
    const struct sdr_route *route = number < w->routes_count ? (struct sdr_route *)w->routes + number : 0;
    if (flexio_dev_cqe_get_opcode(cqe) == CQE_WRITE_IMM && route && route->table) {
      struct sdr_table *t = (struct sdr_table *)route->table;
      open_view(context, &view, t);
      const uint32_t what = arrive(t, &view, route->generation, be32_to_cpu(cqe->imm_inval_pkey),
                                   flexio_dev_cqe_get_byte_cnt(cqe));
      __atomic_fetch_add(&t->arrivals[what], 1, RELAXED);
      flexio_dev_dbr_rq_inc_pi((uint32_t *)route->receive_doorbell);
    } else {
      w->errors++;
    }
    w->cq_index++;
    flexio_dev_dbr_cq_set_ci((uint32_t *)w->cq_doorbell, w->cq_index);
  }
  flexio_dev_cq_arm(context, w->cq_index, w->cq_number);
  flexio_dev_thread_reschedule();
}
