// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::sdr::observer {

struct Counters {
  explicit Counters(Stats& s)
      : packets(s.counter("packets", "Writes with immediate of SDR")),
        bytes(s.counter("bytes", "their payload")),
        empty(s.counter("empty", "Writes without bytes, which carry a fragment of an immediate")),
        messages(s.counter("messages", "messages of which a packet has come")),
        messages_complete(s.counter("messages_complete", "messages of which every packet has come, their end known")),
        chunks_complete(s.counter("chunks_complete", "chunks of which every packet has come")),
        duplicates(s.counter("duplicates", "packets whose bit was set")),
        late(s.counter("late", "packets of a message whose ID has a newer one: they touch nothing")),
        outside(s.counter("outside", "packets behind the end of their message")),
        beyond(s.counter("beyond", "packets without a bit: their offset, or their ID, is beyond the options")),
        missing(s.counter("missing", "packets that had not come when the ID of their message was used again")),
        rx_icrc_encapsulated(s.counter("rx_icrc_encapsulated", "packets with a wrong ICRC")),
        full(s.counter("full", "packets of queue pairs or connections beyond `qps` and `connections`")),
        messages_not_listed(s.counter("messages_not_listed", "messages that the report has no room for")),
        events_not_listed(s.counter("events_not_listed", "events that the report has no room for")) {}
  Counter &packets, &bytes, &empty, &messages, &messages_complete, &chunks_complete, &duplicates, &late, &outside,
      &beyond, &missing, &rx_icrc_encapsulated, &full, &messages_not_listed, &events_not_listed;
};

}  // namespace rocebox::sdr::observer
