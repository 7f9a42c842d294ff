// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::dpa_observer {

struct Counters {
  explicit Counters(Stats& s)
      : cqes(s.counter("cqes", "CQEs written: messages that completed")),
        cqes_lost(s.counter("cqes_lost", "CQEs for which a queue had no room: its handler is behind")),
        cqes_stopped(s.counter("cqes_stopped", "CQEs not written since the program had stopped or finished")),
        duplicate_request(s.counter("duplicate_request", "RC requests whose PSN had come before")),
        out_of_sequence(s.counter("out_of_sequence", "RC requests behind a PSN that has not come")),
        unfinished(s.counter("unfinished", "packets of messages whose beginning or middle did not come")),
        rx_icrc_encapsulated(s.counter("rx_icrc_encapsulated", "packets with a wrong ICRC")),
        flows_full(s.counter("flows_full", "packets to queue pairs beyond `flows`")),
        doorbells(s.counter("doorbells", "doorbells of send queues that the program rang: nothing is sent")) {}
  Counter &cqes, &cqes_lost, &cqes_stopped, &duplicate_request, &out_of_sequence, &unfinished, &rx_icrc_encapsulated,
      &flows_full, &doorbells;
};

}  // namespace rocebox::dpa_observer
