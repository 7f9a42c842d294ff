/* SPDX-License-Identifier: BSD-3-Clause */
/* What SDR's host side and its receive workers on the DPA agree upon: memory of the device that the host fills when it
 * posts, and that workers read and write for each packet (3.4.2). Plain C, for both sides. */
#ifndef ROCEBOX_SDR_DEVICE_H
#define ROCEBOX_SDR_DEVICE_H

#include <stdint.h>

/* Of a slot: nothing is posted in it. */
#define SDR_FREE 0xFFFFFFFFu

/* What a packet's completion came to; `enum class Arrival` in messages/message_table.h has the same. */
enum {
  SDR_PACKET,
  SDR_CHUNK,
  SDR_MESSAGE,
  SDR_FRAGMENT,
  SDR_DUPLICATE,
  SDR_LATE_GENERATION,
  SDR_NO_MESSAGE,
  SDR_OUTSIDE,
  SDR_ARRIVALS
};

/* A message ID: one cache line, all that an arrival reads beside its bitmap word. `generation` is compared first. */
struct __attribute__((aligned(64))) sdr_slot {
  uint32_t generation, packets;
  uint32_t fragments, user; /* which of the user's immediate have come; what they make up */
  uint32_t chunks_left, reserved;
  uint64_t chunks; /* its chunk bytes: an address of the host's */
};

/* A queue pair of SDR. */
struct sdr_table {
  uint64_t slots;      /* struct sdr_slot[messages] */
  uint64_t bitmap;     /* uint64_t[messages][words]: one bit a packet */
  uint64_t words_left; /* uint32_t[messages][chunks]: of chunks of more than 64 packets; else 0 */
  uint32_t messages, words, chunks, chunk_shift;
  uint32_t offset_bits, fragment_bits; /* of the immediate; the message ID has the rest */
  uint32_t window, window_key;         /* to the chunk bytes of all slots */
  uint64_t host_area;                  /* where these begin, an address of the host's */
  uint64_t arrivals[SDR_ARRIVALS];     /* by what they came to */
};

/* A queue pair of the NIC, by its number: what its completions belong to. */
struct sdr_route {
  uint64_t table;            /* struct sdr_table; 0: none */
  uint64_t receive_doorbell; /* its receive request is given back there */
  uint32_t generation, reserved;
};

/* A worker: one thread, one completion queue, one channel of each queue pair. */
struct sdr_worker {
  uint64_t cq_ring, cq_doorbell;
  uint64_t routes; /* struct sdr_route[routes_count], from queue pair `first_qpn` on */
  uint32_t cq_number, log_cq_entries;
  uint32_t first_qpn, routes_count;
  uint32_t cq_index; /* the worker's own */
  uint32_t errors;   /* completions of no packet of ours */
};

/* A batch of Writes that a transmit worker is to post, all of one message and one queue pair of the NIC. The numbers of
 * packets follow one another, and so do their bytes in memory; those behind `bytes` only carry a fragment. */
struct sdr_order {
  uint64_t send_ring; /* of the queue pair */
  uint64_t address;   /* of the first packet's bytes */
  uint64_t remote_address;
  uint32_t qp_number, log_blocks, first_wqe; /* WQEs before it */
  uint32_t packets, first_packet;            /* packets 0: nothing any more */
  uint32_t bytes, mtu, key, remote_key;
  uint32_t immediate; /* the message ID in its place */
  uint32_t fragment_bits, has_user, user;
  uint32_t padding[13]; /* two cache lines */
};

/* A transmit worker: one thread that has the channels of its number, modulo the workers. For each order the host writes
 * it into the ring and then a CQE of nothing into the worker's queue. */
struct sdr_sender {
  uint64_t cq_ring, cq_doorbell;
  uint64_t orders; /* struct sdr_order[orders_count], a power of two */
  uint32_t cq_number, log_cq_entries, orders_count;
  uint32_t cq_index, done; /* the worker's own: orders that it is done with */
  uint32_t reserved;
  uint64_t activations, batches, packets;
};

#endif
