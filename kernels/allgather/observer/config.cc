// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/observer/config.h"

#include <bit>

#include "kernels/allgather/observer/limits.h"
#include "runtime/kernel/rate_queue.h"

namespace rocebox::allgather {

void ObserverConfig::fields(Fields& f) {
  f.integer("chunk_bits", chunk_bits, {1, 32}, "lowest bits of the immediate that are the chunk's number");
  f.integer("collective_bits", collective_bits, {0, 31},
            "bits above them that are the collective's number; those that are left are its generation");
  if (chunk_bits + collective_bits > 32)
    f.refuse("collective_bits", "and `chunk_bits` are more than the 32 bits of an immediate");
  f.integer("streams", streams, {1, kStreamsMax},
            "streams remembered, each of one source's chunks of one collective in one group");
  f.integer("window", window, {64, kWindowMax}, "chunks of a stream that are told apart, a power of two");
  if (!std::has_single_bit(static_cast<std::uint64_t>(window))) f.refuse("window", "not a power of two");
  if (streams * window > kWindowBitsMax)
    f.refuse("streams", "needs too much memory: `streams` times `window` may be 8589934592");
  f.integer("collectives", collectives, {1, kCollectivesMax}, "collectives remembered");
  f.integer("groups", groups, {1, kGroupsMax}, "multicast groups remembered");
  f.integer("block_chunks", block_chunks, {0, kWindowMax},
            "chunks that each source sends to a group; 0: not known, those from the lowest to the highest that came");
  if (block_chunks > window) f.refuse("block_chunks", "must not exceed `window`");
  f.duration("cutoff", cutoff, {0, 3600 * kSecond},
             "a chunk that comes so long behind its collective's first one is late; 0: none is");
  f.duration("restart_after", restart_after, {1, 86400 * kSecond},
             "a collective or stream that was silent for longer begins anew: its number is used again");
  f.integer("staging_slots", staging_slots, {0, kSlotsMax}, "slots of the staging ring of each group; 0: no model");
  f.bytes("slot_bytes", slot_bytes, {64, 65536}, "bytes of a slot: the header of 40 bytes and a chunk");
  f.rate("copy_rate", copy_rate, {kRateMin, kRateMax}, "rate at which slots are copied to the user's buffer");
  f.duration("copy_latency", copy_latency, {0, kSecond}, "from the end of a copy until its slot is free");
  f.integer("events", events, {0, kEventsMax}, "events listed: the first ones");
  f.boolean("check_icrc", check_icrc, "verify each datagram's ICRC; one with a wrong one does not count as received");
}

}  // namespace rocebox::allgather
