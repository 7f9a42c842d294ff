/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host and the receive workers on its DPA share, in the device's memory. Plain C, for both sides. Numbers are in
 * host order, addresses the device's unless they say otherwise. */
#ifndef ROCEBOX_ALLGATHER_DPA_WORKER_H
#define ROCEBOX_ALLGATHER_DPA_WORKER_H

#include <stdint.h>

enum { ALLGATHER_OPERATIONS_MAX = 16 };

/* The workers of one collective: the last one that has all of its part tells the host. */
struct allgather_team {
  uint32_t workers, finished;
  uint32_t window, key; /* of the host's memory */
  uint64_t host_flag;   /* there: the collective's sequence number, and 1, when all is there */
  uint64_t value;       /* what is written to it */
};

/* A rank as a sender: its queue pair, and the last four bytes of its address as they stand in a GRH. */
struct allgather_sender {
  uint32_t qpn, address;
};

/* A collective, as far as one subgroup has a part of it. */
struct allgather_operation {
  uint32_t active, tag; /* tag: the immediate's bits above the chunk */
  uint32_t blocks, chunks_per_block, chunk_bytes;
  uint32_t first, length; /* of each block: this subgroup's chunks */
  int32_t root;           /* of a Broadcast; -1: block b is rank b's */
  uint64_t block_bytes;
  uint64_t address; /* of the user's buffer, the host's */
  uint32_t key;
  uint32_t reserved;
  uint64_t bitmap; /* uint64_t[]: which chunks have come */
  uint64_t landed; /* uint32_t[blocks]: how many lie in the user's buffer */
  uint64_t left;   /* chunks that do not yet */
  uint64_t team;
};

/* A copy under way. */
struct allgather_copy {
  uint32_t operation, block, entry;
};

/* One subgroup's worker. */
struct allgather_worker {
  uint64_t cq_ring, cq_doorbell;
  uint64_t receive_ring, receive_doorbell;
  uint64_t loopback_ring;
  uint32_t cq_number, log_cq_entries;
  uint32_t log_receives, loopback_number;
  uint64_t staging; /* entry i of the receive ring has the i-th slot */
  uint32_t slot_bytes, staging_key;
  uint64_t finished;       /* uint8_t[receives]: slots that may be posted again, in their turn */
  uint64_t copies;         /* struct allgather_copy[receives], in order */
  uint64_t senders;        /* struct allgather_sender[ranks] */
  uint32_t address_offset; /* of a sender's last four address bytes in a GRH */
  uint32_t chunk_bits, operations;
  /* The worker's own. */
  uint32_t cq_index, taken, returned, copies_begun, copies_done;
  uint64_t chunks, duplicates, stale, out_of_range, other_subgroup, strangers, wrong_length, no_immediate, errors;
  struct allgather_operation operation[ALLGATHER_OPERATIONS_MAX];
};

#endif
