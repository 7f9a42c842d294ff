// SPDX-License-Identifier: BSD-3-Clause
// What a gateway counts: encode_ from host to link, decode_ from link to host.
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::lowar {

struct EncodeCounters {
  explicit EncodeCounters(Stats& s)
      : packets(s.counter("encode_packets", "data packets coded")),
        bytes(s.counter("encode_bytes", "their bytes on the wire")),
        blocks(s.counter("encode_blocks",
                         "blocks ended, by their length or by the message, those without a coding unit included")),
        blocks_cut(s.counter("encode_blocks_cut", "of these, ended by a PSN that does not follow: a retransmission")),
        repairs(s.counter("encode_repairs", "repair packets made")),
        repair_bytes(s.counter("encode_repair_bytes", "their bytes on the wire")),
        announcements(s.counter("encode_announcements",
                                "negotiation packets made: where a sequence begins, and with which (r, c)")),
        streams(s.counter("encode_streams", "streams seen: requests or READ responses to one QP")),
        streams_aged(s.counter("encode_streams_aged", "idle streams that gave their place or their coding units")),
        uncoded(s.counter("encode_uncoded", "data packets of streams whose coding is switched off")),
        changes(s.counter("encode_changes", "times that a stream's (r, c) changed, as the far end had asked")),
        requests(s.counter("encode_requests", "requests of the far end for another (r, c)")),
        requests_ignored(s.counter("encode_requests_ignored",
                                   "of these, not heeded: (r, c) is fixed, no such stream, or not of its receiver")),
        requests_refused(s.counter("encode_requests_refused",
                                   "of these, not heeded: an (r, c) that is not allowed here, or too soon")),
        requests_old(s.counter("encode_requests_old", "of these, repeated or overtaken by a newer one")),
        unprotected_streams(s.counter("encode_unprotected_streams", "data packets beyond `streams`")),
        unprotected_units(s.counter("encode_unprotected_units", "data packets without a coding unit: all were bound")),
        unprotected_icrc(
            s.counter("encode_unprotected_icrc", "data packets that came with a wrong ICRC, passed as they are")),
        unprotected_snapped(s.counter("encode_unprotected_snapped", "data packets not held whole")),
        unprotected_size(
            s.counter("encode_unprotected_size",
                      "data packets longer than `roce_mtu` allows, or with over 128 B of IP and UDP headers")),
        link_mtu(s.counter("encode_link_mtu", "repair packets not made: longer than `link_mtu`")),
        pool_dry(s.counter("encode_pool_dry", "repair or negotiation packets not made: no packet to be had")),
        drop_lowar_host(s.counter("drop_lowar_host",
                                  "LoWAR packets from the host's side, where no gateway is: forged, or "
                                  "this gateway stands the wrong way round")),
        units_max(s.peak("encode_units_max", "most coding units bound so far")) {}
  Counter &packets, &bytes, &blocks, &blocks_cut, &repairs, &repair_bytes, &announcements, &streams, &streams_aged;
  Counter &uncoded, &changes, &requests, &requests_ignored, &requests_refused, &requests_old;
  Counter &unprotected_streams, &unprotected_units, &unprotected_icrc, &unprotected_snapped, &unprotected_size;
  Counter &link_mtu, &pool_dry, &drop_lowar_host;
  Peak& units_max;
};

struct DecodeCounters {
  explicit DecodeCounters(Stats& s)
      : packets(s.counter("decode_packets", "data packets that came over the link")),
        recovered(s.counter("decode_recovered", "lost packets rebuilt and handed over in their place")),
        recovered_hops(
            s.counter("decode_recovered_hops", "of these, with TTL and ToS of the repair packet: hops changed them")),
        rebuild_failed(s.counter("decode_rebuild_failed", "rebuilt packets that did not prove right: thrown away")),
        released(s.counter("decode_released", "lost packets given up: those behind them went on")),
        released_timeout(s.counter("decode_released_timeout", "of these, because the time was up")),
        released_full(s.counter("decode_released_full", "of these, because the reordering buffer was full")),
        missed(s.counter("decode_missed",
                         "lost packets that only the far end's count tells of: the next message may begin anywhere")),
        held(s.counter("decode_held", "packets kept back for a lost one before them")),
        held_max(s.peak("decode_held_max", "most packets in the reordering buffer so far")),
        answers_icrc(s.counter("decode_answers_icrc", "ACKs and NAKs with a wrong ICRC that did not wait, but passed")),
        old(s.counter("decode_old", "data packets before the expected one, passed: duplicates, retransmissions")),
        restarts(s.counter("decode_restarts", "sequences taken up anew: a retransmission, or a PSN far ahead")),
        announcements(s.counter("decode_announcements", "beginnings of sequences announced by the far end")),
        streams(s.counter("decode_streams", "streams seen")),
        streams_aged(s.counter("decode_streams_aged", "idle streams that gave their place or their coding units")),
        streams_full(s.counter("decode_streams_full",
                               "data packets beyond `streams`, passed, and negotiation packets, dropped")),
        units_full(s.counter("decode_units_full", "blocks that could not be decoded: all coding units were bound")),
        drop_icrc(s.counter("drop_icrc", "data packets with a wrong ICRC: they count as lost")),
        drop_late(s.counter("drop_late", "originals that came after they had been recovered")),
        drop_repair_used(s.counter("drop_repair_used", "repair packets that recovered a packet")),
        drop_repair_unused(s.counter("drop_repair_unused", "repair packets without a loss to repair")),
        drop_repair_short(s.counter("drop_repair_short",
                                    "repair packets of which more than one packet was lost, or the rest not known")),
        drop_repair_failed(s.counter(
            "drop_repair_failed",
            "repair packets whose rebuilt packet did not prove right, or for which there was none to be had")),
        drop_repair_full(s.counter("drop_repair_full", "repair packets for which the reordering buffer had no room")),
        drop_repair_unknown(
            s.counter("drop_repair_unknown", "repair packets of unknown streams, or far off their PSNs")),
        drop_lowar_icrc(s.counter("drop_lowar_icrc", "LoWAR packets cut or with a wrong ICRC")),
        drop_lowar_malformed(
            s.counter("drop_lowar_malformed", "LoWAR packets with an unknown type or impossible fields")),
        drop_negotiation(s.counter("drop_negotiation", "negotiation packets, taken in")),
        drop_rebuilt(s.counter("drop_rebuilt", "packets made and thrown away: see decode_rebuild_failed")),
        pool_dry(s.counter("decode_pool_dry", "packets not rebuilt, or requests not made: no packet to be had")),
        requests(s.counter("adapt_requests", "requests sent for another (r, c), repeated ones included")),
        changes(s.counter("adapt_changes", "times that another (r, c) was asked for")),
        unheeded(s.counter("adapt_unheeded", "of these, given up: the far end did not heed them")) {}
  Counter &packets, &recovered, &recovered_hops, &rebuild_failed, &released, &released_timeout, &released_full, &missed,
      &held;
  Peak& held_max;
  Counter &answers_icrc, &old, &restarts, &announcements, &streams, &streams_aged, &streams_full, &units_full;
  Counter &drop_icrc, &drop_late, &drop_repair_used, &drop_repair_unused, &drop_repair_short, &drop_repair_failed,
      &drop_repair_full, &drop_repair_unknown, &drop_lowar_icrc, &drop_lowar_malformed, &drop_negotiation,
      &drop_rebuilt, &pool_dry, &requests, &changes, &unheeded;
};

}  // namespace rocebox::lowar
