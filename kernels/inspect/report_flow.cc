// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the report on one flow.
#include <string>

#include "kernels/inspect/inspector.h"
#include "kernels/inspect/report_text.h"
#include "runtime/roce/address.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::inspect {
namespace {

void report_times(Report& r, const Histogram& times) {
  r.count("count", signed_count(times.count()));
  r.duration("min", times.min());
  r.duration("mean", static_cast<std::int64_t>(times.count() ? (times.sum() + times.count() / 2) / times.count() : 0));
  r.duration("p50", times.percentile(50));
  r.duration("p99", times.percentile(99));
  r.duration("max", times.max());
}

void report_sizes(Report& r, const Sizes& sizes) {
  r.count("count", signed_count(sizes.count));
  r.count("min", signed_count(sizes.min));
  r.real("mean", sizes.count ? static_cast<double>(sizes.sum) / static_cast<double>(sizes.count) : 0);
  r.count("max", signed_count(sizes.max));
}

std::string opcode_key(std::uint8_t opcode) {
  return roce::opcode_info(opcode).has(roce::kIsKnown) ? as_name(roce::opcode_name(opcode))
                                                       : "opcode_" + hex(opcode, 2);
}

}  // namespace

void Inspector::report_flow(Report& r, std::uint32_t index) const {
  const FlowKey& key = table_.key(index);
  const Flow& flow = flows_[index];
  r.text("source", roce::address_text(key.addresses.source));
  r.text("destination", roce::address_text(key.addresses.destination));
  r.text("qpn", hex(key.qpn()));
  r.count("qpn_number", key.qpn());
  if (const std::uint32_t partner = partner_qpn(flow)) {
    r.text("partner_qpn", hex(partner));
    r.count("partner_qpn_number", partner);
  }
  r.text("service", roce::service_name(key.service()));
  report_counts(r, index);
  r.object("opcodes", [&](Report& o) {
    const unsigned first = roce::first_opcode(key.service());
    for (unsigned slot = 0; slot < kCnpSlot; slot++)
      if (flow.opcodes[slot])
        o.count(opcode_key(static_cast<std::uint8_t>(first | slot)), signed_count(flow.opcodes[slot]));
    if (flow.opcodes[kCnpSlot]) o.count("cnp", signed_count(flow.opcodes[kCnpSlot]));
  });
  r.object("naks", [&](Report& n) {
    for (unsigned code = 0; code < kNakSlots; code++)
      if (flow.naks[code]) n.count(as_name(roce::nak_code_name(code)), signed_count(flow.naks[code]));
  });
  r.object("ecn", [&](Report& e) {
    e.count("not_ect", signed_count(flow.ecn[roce::kEcnNotEct]));
    e.count("ect0", signed_count(flow.ecn[roce::kEcnEct0]));
    e.count("ect1", signed_count(flow.ecn[roce::kEcnEct1]));
    e.count("ce", signed_count(flow.ecn[roce::kEcnCe]));
    e.count("fecn", signed_count(flow.fecn));
    e.count("becn", signed_count(flow.becn));
  });
  report_streams(r, index);
  r.table("events", flow.log.size, [&](Report& row, std::size_t event) {
    report_event(row, events_[std::size_t{index} * events_max_ + event]);
  });
}

void Inspector::report_counts(Report& r, std::uint32_t index) const {
  const FlowKey& key = table_.key(index);
  const Flow& flow = flows_[index];
  r.count("packets", signed_count(flow.packets));
  r.count("bytes", signed_count(flow.bytes));
  r.count("payload_bytes", signed_count(flow.payload_bytes));
  r.count("messages", signed_count(messages_of(key, flow)));
  if (key.service() == roce::Service::kUc) r.count("messages_discarded", signed_count(flow.uc.discarded));
  r.duration("time", flow.last_time - flow.first_time);
  r.count("acks", signed_count(flow.acks));
  r.count("rnr_naks", signed_count(flow.rnr_naks));
  if (flow.rnr_naks) {
    r.duration("rnr_timer_min", flow.rnr_timer_min);
    r.duration("rnr_timer_max", flow.rnr_timer_max);
  }
  r.count("cnps", signed_count(flow.cnps));
  r.count("trimmed", signed_count(flow.trimmed));
  r.count("icrc_failures", signed_count(flow.icrc_failures));
  r.count("icrc_unverified", signed_count(flow.icrc_unverified));
  r.count("aeth_unknown", signed_count(flow.aeth_unknown));
  r.count("reth_unknown", signed_count(flow.reth_unknown));
  r.count("deth_unknown", signed_count(flow.deth_unknown));
  r.count("pmtu", mtu_ ? mtu_ : flow.pmtu);
  r.count("events_not_listed", signed_count(flow.log.unlisted));
}

void Inspector::report_streams(Report& r, std::uint32_t index) const {
  const Flow& flow = flows_[index];
  const bool uc = table_.key(index).service() == roce::Service::kUc;
  const PsnStream requests = settled_requests(index);
  if (requests.used) r.object("requests", [&](Report& s) { report_stream(s, flow, PsnSpace::kRequests, requests); });
  if (flow.responses.used)
    r.object("read_responses", [&](Report& s) { report_stream(s, flow, PsnSpace::kResponses, flow.responses); });
  const Sizes& sizes = uc ? flow.uc.delivered : requests.sizes;
  if (sizes.count) r.object("message_bytes", [&](Report& s) { report_sizes(s, sizes); });
  if (flow.rtt.count()) r.object("rtt", [&](Report& t) { report_times(t, flow.rtt); });
  if (flow.completion.count()) r.object("completion", [&](Report& t) { report_times(t, flow.completion); });
}

void Inspector::report_stream(Report& r, const Flow& flow, PsnSpace space, const PsnStream& stream) const {
  constexpr std::int64_t kBits = 24;
  const bool requests = space == PsnSpace::kRequests, uc = table_.key(index_of(flow)).service() == roce::Service::kUc;
  r.count("first_psn", stream.first & roce::kPsnMask);
  r.count("last_psn", stream.high & roce::kPsnMask);
  r.flag("wrapped", stream.first >> kBits != stream.high >> kBits);
  r.count("unique", signed_count(stream.unique_total()));
  r.count("missing", signed_count((requests ? requests_ : responses_).missing(stream)));
  r.count("lost", signed_count(stream.lost()));
  if (config_.go_back_n_rtt != 0 && !uc) {
    r.count("go_backs", signed_count(stream.go_backs));
    r.count("go_back_n_packets", signed_count(stream.go_back_packets));
  }
  r.count("duplicates", signed_count(stream.duplicates));
  r.count("retransmissions", signed_count(stream.retransmissions));
  r.count("out_of_order", signed_count(stream.out_of_order));
  r.count("undecided", signed_count(stream.undecided));
  r.count("reorder_degree_max", signed_count(stream.degree_max));
  r.real("reorder_degree_mean",
         stream.out_of_order ? static_cast<double>(stream.degree_sum) / static_cast<double>(stream.out_of_order) : 0);
  r.count("beyond_window", signed_count(stream.beyond_window_total()));
  r.count("restarts", signed_count(stream.restarts));
  r.count("trimmed", signed_count(stream.trimmed));
  r.count("only_trimmed", signed_count(stream.only_trimmed));
  if (requests) {
    r.count("out_of_sequence", signed_count(stream.out_of_sequence));
    r.count("duplicate_request", signed_count(stream.duplicate_requests));
    r.count("timeouts_suspected", signed_count(stream.timeouts_suspected));
  } else {
    r.count("gaps", signed_count(stream.gaps));
  }
  const std::uint64_t goodput = uc ? flow.uc.delivered.sum : stream.unique_payload;
  r.count("goodput_bytes", signed_count(goodput));
  r.real("goodput_bits_per_second", bits_per_second(goodput, flow.last_time - flow.first_time));
}

void Inspector::report_event(Report& r, const Event& event) const {
  r.duration("at", event.at);
  r.text("event", event_name(event.kind));
  r.text("of", event.space == PsnSpace::kRequests ? "requests" : "read_responses");
  r.count("psn", event.psn);
  r.count("psns", event.count);
  std::string detail;
  if (event.kind == EventKind::kNak) detail = roce::nak_code_name(event.detail);
  if (event.kind == EventKind::kRnrNak)
    detail = "timer " + std::to_string(roce::rnr_timer_nanos(event.detail) / kMicrosecond) + " us";
  r.text("detail", detail);
}

}  // namespace rocebox::inspect
