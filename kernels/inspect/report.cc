// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the report. Rows keep the order in which flows were first seen.
#include <string>
#include <vector>

#include "kernels/inspect/inspector.h"
#include "kernels/inspect/report_text.h"
#include "runtime/roce/address.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::inspect {
namespace {

std::string_view source_word(flows::PairSource source) {
  constexpr std::string_view kWords[] = {"none", "learned", "cm", "config"};
  return kWords[static_cast<unsigned>(source)];
}

}  // namespace

// The requests as they are when an open READ gets its PSNs, which the datapath does at the next
// request, and when nothing is awaited any more.
PsnStream Inspector::settled_requests(std::uint32_t index) const {
  const Flow& flow = flows_[index];
  PsnStream stream = flow.requests;
  requests_.settle_sizes(stream, ring(index, PsnSpace::kRequests));
  const std::uint32_t pmtu = flow.open_read_bytes ? known_pmtu(flow) : 0;
  if (!pmtu) return stream;
  const std::uint32_t more = (flow.open_read_bytes - 1) / pmtu;
  stream.high += more;
  stream.unique += more;
  return stream;
}

std::uint32_t Inspector::partner_qpn(const Flow& flow) const {
  if (flow.direction == flows::Pairing::kNone) return 0;
  const std::uint32_t direction = pairing_.partner(flow.direction);
  return direction == flows::Pairing::kNone ? 0 : pairing_.key(direction).destination_qp;
}

void Inspector::report(Report& report) const {
  report.object("totals", [&](Report& totals) { report_totals(totals); });
  report.table("summary", table_.size(),
               [&](Report& row, std::size_t index) { report_summary(row, static_cast<std::uint32_t>(index)); });
  report.table("flows", table_.size(),
               [&](Report& row, std::size_t index) { report_flow(row, static_cast<std::uint32_t>(index)); });
  report_senders(report);
  report_connections(report);
}

void Inspector::report_totals(Report& r) const {
  Flow sum;
  std::uint64_t unique = 0, missing = 0, lost = 0, messages = 0, restarts = 0, go_backs = 0, go_back_packets = 0;
  for (std::uint32_t index = 0; index < table_.size(); index++) {
    const Flow& flow = flows_[index];
    sum.packets += flow.packets;
    sum.bytes += flow.bytes;
    sum.payload_bytes += flow.payload_bytes;
    sum.trimmed += flow.trimmed;
    const PsnStream requests = settled_requests(index);
    restarts += requests.restarts;
    messages += messages_of(table_.key(index), flow);
    unique += requests.unique_total() + flow.responses.unique_total();
    missing += requests_.missing(requests) + responses_.missing(flow.responses);
    lost += requests.lost() + flow.responses.lost();
    go_backs += requests.go_backs + flow.responses.go_backs;
    go_back_packets += requests.go_back_packets + flow.responses.go_back_packets;
  }
  r.count("flows", table_.size());
  r.count("packets", signed_count(sum.packets));
  r.count("bytes", signed_count(sum.bytes));
  r.count("payload_bytes", signed_count(sum.payload_bytes));
  r.count("messages", signed_count(messages));
  r.count("unique", signed_count(unique));
  r.count("missing", signed_count(missing));
  r.count("lost", signed_count(lost));
  if (config_.go_back_n_rtt != 0) {
    r.count("go_backs", signed_count(go_backs));
    r.count("go_back_n_packets", signed_count(go_back_packets));
  }
  r.count("duplicates", signed_count(counters_.duplicates.read()));
  r.count("retransmissions", signed_count(counters_.retransmissions.read()));
  r.count("out_of_order", signed_count(counters_.out_of_order.read()));
  r.count("undecided", signed_count(counters_.undecided.read()));
  r.count("trimmed", signed_count(sum.trimmed));
  r.count("restarts", signed_count(restarts));
  r.count("acks", signed_count(counters_.acks.read()));
  r.count("naks", signed_count(counters_.naks.read()));
  r.count("rnr_naks", signed_count(counters_.rnr_naks.read()));
  r.count("cnps", signed_count(counters_.cnps.read()));
  r.count("icrc_errors", signed_count(counters_.icrc_errors.read()));
  r.count("icrc_unverified", signed_count(counters_.icrc_unverified.read()));
  r.object("pairing", [&](Report& p) {
    const flows::Pairing::Counts& counts = pairing_.counts();
    p.count("learned", signed_count(counts.learned));
    p.count("confirmed", signed_count(counts.confirmed));
    p.count("undone", signed_count(counts.undone));
    p.count("ambiguous", signed_count(counts.ambiguous));
    p.count("crowded", signed_count(counts.crowded));
    p.count("refused", signed_count(counts.refused));
  });
}

// At most twelve columns, and one more where something is undecided, so that the text is one line a flow; zeros are
// shown there.
void Inspector::report_summary(Report& r, std::uint32_t index) const {
  const FlowKey& key = table_.key(index);
  const Flow& flow = flows_[index];
  const std::uint32_t partner = partner_qpn(flow);
  std::uint64_t naks = 0;
  for (const std::uint64_t count : flow.naks) naks += count;
  const std::uint64_t goodput = key.service() == roce::Service::kUc
                                    ? flow.uc.delivered.sum
                                    : flow.requests.unique_payload + flow.responses.unique_payload;
  r.text("source", roce::address_text(key.addresses.source));
  r.text("destination", roce::address_text(key.addresses.destination));
  r.text("qpn", hex(key.qpn()));
  r.text("partner_qpn", partner ? hex(partner) : "");
  r.text("service", roce::service_name(key.service()));
  r.count("packets", signed_count(flow.packets));
  r.count("lost", signed_count(flow.requests.lost() + flow.responses.lost()));
  r.count("retransmissions", signed_count(flow.requests.retransmissions + flow.responses.retransmissions));
  r.count("out_of_order", signed_count(flow.requests.out_of_order + flow.responses.out_of_order));
  // Seldom: then a column more.
  if (counters_.undecided.read() != 0)
    r.count("undecided", signed_count(flow.requests.undecided + flow.responses.undecided));
  r.count("naks", signed_count(naks));
  if (flow.rtt.count()) r.duration("rtt_p50", flow.rtt.percentile(50));
  r.real("goodput_bits_per_second", bits_per_second(goodput, flow.last_time - flow.first_time));
}

void Inspector::report_senders(Report& report) const {
  report.table("ud_senders", sender_table_.size(), [&](Report& r, std::size_t row) {
    const SenderKey& key = sender_table_.key(static_cast<std::uint32_t>(row));
    const PsnStream& stream = senders_[row].datagrams;
    r.text("source", roce::address_text(key.source));
    r.text("source_qpn", hex(key.qpn));
    r.count("source_qpn_number", key.qpn);
    r.count("packets", signed_count(senders_[row].packets));
    r.count("first_psn", stream.first & roce::kPsnMask);
    r.count("last_psn", stream.high & roce::kPsnMask);
    r.count("unique", signed_count(stream.unique_total()));
    r.count("missing", signed_count(requests_.missing(stream)));
    r.count("duplicates", signed_count(stream.duplicates));
    r.count("out_of_order", signed_count(stream.out_of_order));
    r.count("beyond_window", signed_count(stream.beyond_window_total()));
    r.count("restarts", signed_count(stream.restarts));
  });
}

void Inspector::report_connections(Report& report) const {
  // The first-seen direction of each pair whose directions were both seen.
  std::vector<std::uint32_t> firsts;
  for (std::uint32_t index = 0; index < table_.size(); index++) {
    const Flow* other = partner_of(flows_[index]);
    if (other && other > &flows_[index]) firsts.push_back(index);
  }
  report.table("connections", firsts.size(), [&](Report& r, std::size_t row) {
    const Flow& flow = flows_[firsts[row]];
    const FlowKey& forth = table_.key(firsts[row]);
    const std::uint32_t back_qpn = pairing_.key(pairing_.partner(flow.direction)).destination_qp;
    r.text("a", roce::address_text(forth.addresses.source));
    r.text("a_qpn", hex(back_qpn));
    r.count("a_qpn_number", back_qpn);
    r.text("b", roce::address_text(forth.addresses.destination));
    r.text("b_qpn", hex(forth.qpn()));
    r.count("b_qpn_number", forth.qpn());
    r.text("found", source_word(pairing_.source(flow.direction)));
    r.flag("confirmed", pairing_.confirmed(flow.direction));
  });
}

}  // namespace rocebox::inspect
