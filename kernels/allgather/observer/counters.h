// SPDX-License-Identifier: BSD-3-Clause
// The observer's counters over all groups.
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::allgather {

struct ObserverCounters {
  explicit ObserverCounters(Stats& s)
      : packets(s.counter("packets", "packets seen, of any kind")),
        datagrams(s.counter("datagrams", "datagrams with a chunk for a multicast group, received or not")),
        bytes(s.counter("chunk_bytes", "payload of those received for the first time")),
        chunks(s.counter("chunks", "chunks received, each once")),
        duplicates(s.counter("duplicates", "chunks received again")),
        out_of_order(s.counter("out_of_order", "chunks received behind a later one of their stream")),
        late(s.counter("late", "chunks received for the first time after `cutoff`")),
        beyond_window(s.counter("beyond_window", "chunks too far from others of their stream to be told apart")),
        skipped(s.counter("skipped", "chunks passed over when a later one came; some of them came after all")),
        overruns(s.counter("staging_overruns", "chunks that came while all slots of the staging ring were taken")),
        restarts(s.counter("restarts", "streams that began anew after a silence")),
        missing_at_restart(s.counter("missing_at_restart", "chunks that were missing when a stream began anew")),
        icrc_errors(s.counter("rx_icrc_encapsulated", "datagrams with a wrong ICRC; they are not received")),
        icrc_unverified(s.counter("icrc_unverified", "datagrams not held whole, so that their ICRC is unknown")),
        trimmed(s.counter("trimmed", "datagrams for a group that a switch cut, or that are not held to their chunk")),
        uc_parts(s.counter("uc_parts", "packets of UC messages of several packets for a group: not judged")),
        without_immediate(s.counter("without_immediate", "datagrams for a group that name no chunk")),
        streams_full(s.counter("streams_full", "datagrams of streams for which there was no room")),
        collectives_full(s.counter("collectives_full", "datagrams of collectives for which there was no room")),
        groups_full(s.counter("groups_full", "datagrams of groups for which there was no room")) {}

  Counter &packets, &datagrams, &bytes, &chunks, &duplicates, &out_of_order, &late, &beyond_window, &skipped, &overruns,
      &restarts, &missing_at_restart, &icrc_errors, &icrc_unverified, &trimmed, &uc_parts, &without_immediate,
      &streams_full, &collectives_full, &groups_full;
};

}  // namespace rocebox::allgather
