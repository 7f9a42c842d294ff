// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the report. Rows keep the order in which flows were first seen.
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/inspect/inspector.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::inspect {
namespace {

// "RC RDMA WRITE First" -> "rc_rdma_write_first".
std::string as_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c == ' ')
      c = '_';
    else if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

std::string hex(std::uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%06x", number);
  return text;
}

std::int64_t signed_count(std::uint64_t n) { return static_cast<std::int64_t>(n); }

double bits_per_second(std::uint64_t bytes, Nanos span) {
  return span > 0 ? static_cast<double>(bytes) * 8.0 * 1e9 / static_cast<double>(span) : 0;
}

void report_stream(Report& r, const PsnStream& stream, const PsnTracker& tracker, Nanos span) {
  constexpr std::int64_t kBits = 24;
  r.count("first_psn", stream.first & roce::kPsnMask);
  r.count("last_psn", stream.high & roce::kPsnMask);
  r.flag("wrapped", stream.first >> kBits != stream.high >> kBits);
  r.count("unique", signed_count(stream.unique_total()));
  r.count("missing", signed_count(tracker.missing(stream)));
  r.count("lost", signed_count(stream.lost()));
  r.count("duplicates", signed_count(stream.duplicates));
  r.count("retransmissions", signed_count(stream.retransmissions));
  r.count("out_of_order", signed_count(stream.out_of_order));
  r.count("reorder_degree_max", signed_count(stream.degree_max));
  r.real("reorder_degree_mean",
         stream.out_of_order ? static_cast<double>(stream.degree_sum) / static_cast<double>(stream.out_of_order) : 0);
  r.count("beyond_window", signed_count(stream.beyond_window));
  r.count("psn_resets", signed_count(stream.resets));
  r.count("goodput_bytes", signed_count(stream.unique_payload));
  r.real("goodput_bits_per_second", bits_per_second(stream.unique_payload, span));
}

void report_rtt(Report& r, const Histogram& rtt) {
  r.count("count", signed_count(rtt.count()));
  r.duration("min", rtt.min());
  r.duration("mean", static_cast<std::int64_t>(rtt.count() ? (rtt.sum() + rtt.count() / 2) / rtt.count() : 0));
  r.duration("p50", rtt.percentile(50));
  r.duration("p99", rtt.percentile(99));
  r.duration("max", rtt.max());
}

std::string_view source_word(roce::PairSource source) {
  constexpr std::string_view kWords[] = {"none", "learned", "cm", "config"};
  return kWords[static_cast<unsigned>(source)];
}

}  // namespace

// The requests as they are when an open READ gets its PSNs, which the datapath does at the next
// request.
PsnStream Inspector::settled_requests(const Flow& flow) const {
  PsnStream stream = flow.requests;
  const std::uint32_t pmtu = flow.open_read_bytes ? known_pmtu(flow) : 0;
  if (!pmtu) return stream;
  const std::uint32_t more = (flow.open_read_bytes - 1) / pmtu;
  stream.high += more;
  stream.unique += more;
  return stream;
}

void Inspector::report(Report& report) const {
  report.object("totals", [&](Report& totals) { report_totals(totals); });
  report.table("flows", table_.size(),
               [&](Report& row, std::size_t index) { report_flow(row, static_cast<std::uint32_t>(index)); });
  report_connections(report);
}

void Inspector::report_totals(Report& r) const {
  Flow sum;
  std::uint64_t unique = 0, missing = 0, lost = 0, messages = 0;
  for (std::uint32_t index = 0; index < table_.size(); index++) {
    const Flow& flow = flows_[index];
    sum.packets += flow.packets;
    sum.bytes += flow.bytes;
    sum.payload_bytes += flow.payload_bytes;
    const PsnStream requests = settled_requests(flow);
    messages += requests.messages;
    unique += requests.unique_total() + flow.responses.unique_total();
    missing += requests_.missing(requests) + responses_.missing(flow.responses);
    lost += requests.lost() + flow.responses.lost();
  }
  r.count("flows", table_.size());
  r.count("packets", signed_count(sum.packets));
  r.count("bytes", signed_count(sum.bytes));
  r.count("payload_bytes", signed_count(sum.payload_bytes));
  r.count("messages", signed_count(messages));
  r.count("unique", signed_count(unique));
  r.count("missing", signed_count(missing));
  r.count("lost", signed_count(lost));
  r.count("duplicates", signed_count(counters_.duplicates.read()));
  r.count("retransmissions", signed_count(counters_.retransmissions.read()));
  r.count("out_of_order", signed_count(counters_.out_of_order.read()));
  r.count("acks", signed_count(counters_.acks.read()));
  r.count("naks", signed_count(counters_.naks.read()));
  r.count("rnr_naks", signed_count(counters_.rnr_naks.read()));
  r.count("cnps", signed_count(counters_.cnps.read()));
  r.count("icrc_errors", signed_count(counters_.icrc_errors.read()));
  r.count("icrc_unverified", signed_count(counters_.icrc_unverified.read()));
  r.object("pairing", [&](Report& p) {
    const roce::Pairing::Counts& counts = pairing_.counts();
    p.count("learned", signed_count(counts.learned));
    p.count("confirmed", signed_count(counts.confirmed));
    p.count("undone", signed_count(counts.undone));
    p.count("ambiguous", signed_count(counts.ambiguous));
    p.count("crowded", signed_count(counts.crowded));
    p.count("refused", signed_count(counts.refused));
  });
}

void Inspector::report_flow(Report& r, std::uint32_t index) const {
  const FlowKey& key = table_.key(index);
  const Flow& flow = flows_[index];
  r.text("source", address_text(key.addresses.source));
  r.text("destination", address_text(key.addresses.destination));
  r.text("qpn", hex(key.qpn()));
  r.count("qpn_number", key.qpn());
  r.text("service", roce::service_name(key.service()));
  r.count("packets", signed_count(flow.packets));
  r.count("bytes", signed_count(flow.bytes));
  r.count("payload_bytes", signed_count(flow.payload_bytes));
  r.count("messages", signed_count(flow.requests.messages));
  r.duration("time", flow.last_time - flow.first_time);
  r.count("acks", signed_count(flow.acks));
  r.count("rnr_naks", signed_count(flow.rnr_naks));
  r.count("cnps", signed_count(flow.cnps));
  r.count("icrc_failures", signed_count(flow.icrc_failures));
  r.count("icrc_unverified", signed_count(flow.icrc_unverified));
  r.count("pmtu", mtu_ ? mtu_ : flow.pmtu);
  r.object("opcodes", [&](Report& o) {
    const auto service = static_cast<unsigned>(key.service());
    // The service's three bits of the opcode: RC 0, UC 1, UD 3 (table 38).
    const unsigned base = service == static_cast<unsigned>(roce::Service::kUd) ? 0x60 : service << 5;
    for (unsigned slot = 0; slot < kCnpSlot; slot++)
      if (flow.opcodes[slot])
        o.count(as_name(roce::opcode_name(static_cast<std::uint8_t>(base | slot))), signed_count(flow.opcodes[slot]));
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
  report_streams(r, flow);
}

void Inspector::report_streams(Report& r, const Flow& flow) const {
  const Nanos span = flow.last_time - flow.first_time;
  if (flow.requests.used)
    r.object("requests", [&](Report& s) { report_stream(s, settled_requests(flow), requests_, span); });
  if (flow.responses.used)
    r.object("read_responses", [&](Report& s) { report_stream(s, flow.responses, responses_, span); });
  if (flow.rtt.count()) r.object("rtt", [&](Report& t) { report_rtt(t, flow.rtt); });
}

void Inspector::report_connections(Report& report) const {
  // The first-seen half of each pair whose halves were both seen.
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t index = 0; index < table_.size(); index++) {
    const Flow* other = partner_of(flows_[index]);
    if (other && other > &flows_[index]) firsts.push_back(index);
  }
  report.table("connections", firsts.size(), [&](Report& r, std::size_t row) {
    const Flow& flow = flows_[firsts[row]];
    const FlowKey& forth = table_.key(firsts[row]);
    const std::uint32_t back_qpn = pairing_.key(pairing_.partner(flow.half)).destination_qp;
    r.text("a", address_text(forth.addresses.source));
    r.text("a_qpn", hex(back_qpn));
    r.count("a_qpn_number", back_qpn);
    r.text("b", address_text(forth.addresses.destination));
    r.text("b_qpn", hex(forth.qpn()));
    r.count("b_qpn_number", forth.qpn());
    r.text("found", source_word(pairing_.source(flow.half)));
    r.flag("confirmed", pairing_.confirmed(flow.half));
  });
}

}  // namespace rocebox::inspect
