// SPDX-License-Identifier: BSD-3-Clause
// The kernel's counters over all flows.
#pragma once
#include "runtime/kernel/counter.h"

namespace rocebox::inspect {

struct Counters {
  explicit Counters(Stats& s)
      : packets(s.counter("packets", "packets seen, of any kind")),
        bytes(s.counter("bytes", "their bytes on the wire, without FCS")),
        roce_packets(s.counter("roce_packets", "RoCEv2 packets with a known opcode, whatever their ICRC")),
        not_roce(s.counter("not_roce", "packets that are not RoCEv2")),
        fragments(s.counter("fragments", "IP fragments of UDP datagrams")),
        truncated(s.counter("truncated", "packets whose headers are not all there")),
        malformed(s.counter("malformed", "RoCEv2 packets with impossible headers")),
        snapped(s.counter("snapped", "packets counted by their BTH: an extended header is not held")),
        trimmed(s.counter("trimmed", "packets that a switch cut behind their BTH")),
        unsupported_service(s.counter("unsupported_service", "packets of RD, XRC or a manufacturer's service")),
        lowar(s.counter("lowar_packets", "repair and negotiation packets of LoWAR gateways, whatever their ICRC")),
        requests(s.counter("requests", "request packets")),
        responses(s.counter("responses", "response packets: ACK, NAK, READ response, ATOMIC ACK")),
        duplicates(s.counter("duplicates", "packets that the network doubled")),
        retransmissions(s.counter("retransmissions", "packets that the sender sent again")),
        out_of_order(s.counter("out_of_order", "packets overtaken by a later one")),
        undecided(s.counter("undecided",
                            "old packets of one of these three kinds: too few identifications came to tell which")),
        holes(s.counter("holes", "PSNs skipped when a higher one came")),
        holes_filled_late(s.counter("holes_filled_late", "skipped PSNs whose packet came after all; the rest is lost")),
        beyond_window(s.counter("beyond_window", "packets with a PSN older than the window")),
        restarts(s.counter("restarts", "PSN spaces that began anew: the QP was used again")),
        out_of_sequence(s.counter("out_of_sequence", "RC requests above the PSN that a responder here would expect")),
        duplicate_request(
            s.counter("duplicate_request", "RC requests below the PSN that a responder here would expect")),
        response_gaps(s.counter("read_response_gaps", "times that READ responses skipped a PSN")),
        timeouts_suspected(s.counter("timeouts_suspected", "RC requests sent again after silence and no NAK")),
        acks(s.counter("acks", "positive acknowledgements")),
        naks(s.counter("naks", "negative acknowledgements, RNR not included")),
        nak_codes{&s.counter("packet_seq_err", "NAKs with code 0, PSN sequence error"),
                  &s.counter("naks_invalid_request", "NAKs with code 1"),
                  &s.counter("naks_remote_access_error", "NAKs with code 2"),
                  &s.counter("naks_remote_operational_error", "NAKs with code 3"),
                  &s.counter("naks_invalid_rd_request", "NAKs with code 4"),
                  &s.counter("naks_reserved", "NAKs with a code that is not defined")},
        rnr_naks(s.counter("rnr_nak_retry_err", "receiver-not-ready NAKs")),
        aeth_unknown(s.counter("aeth_unknown", "ACK or NAK packets whose AETH is not held")),
        cnps(s.counter("np_cnp_sent", "congestion notification packets")),
        ecn_ce(s.counter("np_ecn_marked_roce_packets", "packets marked Congestion Experienced")),
        icrc_errors(s.counter("rx_icrc_encapsulated", "packets with a wrong ICRC; counted nowhere else")),
        icrc_unverified(s.counter("icrc_unverified", "packets not held whole, so that their ICRC is unknown")),
        flows(s.counter("flows", "flows remembered")),
        flows_full(s.counter("flows_full", "packets of flows for which there was no room")),
        senders_full(s.counter("ud_senders_full", "datagrams of UD senders for which there was no room")) {}

  Counter &packets, &bytes, &roce_packets, &not_roce, &fragments, &truncated, &malformed, &snapped, &trimmed,
      &unsupported_service, &lowar;
  Counter &requests, &responses;
  Counter &duplicates, &retransmissions, &out_of_order, &undecided, &holes, &holes_filled_late, &beyond_window,
      &restarts;
  Counter &out_of_sequence, &duplicate_request, &response_gaps, &timeouts_suspected;
  Counter &acks, &naks;
  Counter* nak_codes[6];
  Counter &rnr_naks, &aeth_unknown, &cnps, &ecn_ce, &icrc_errors, &icrc_unverified, &flows, &flows_full, &senders_full;
};

}  // namespace rocebox::inspect
