// SPDX-License-Identifier: BSD-3-Clause
// What a pipeline tells a trace.
#include <array>

#include "runtime/engine/pipeline.h"
#include "runtime/roce/parse.h"

namespace rocebox {

TraceInfo trace_info(Packet packet) {
  const PacketMeta& meta = packet.meta();
  TraceInfo info{meta.identity, 0, 0, meta.opcode, meta.traced, meta.bth_offset != 0, roce::has_qpn_and_psn(packet),
                 meta.made != 0};
  if (info.has_qpn_and_psn) {
    info.qpn = static_cast<std::uint32_t>(roce::bth(packet).destination_qp);
    info.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  }
  return info;
}

// What a kernel made a trace meets where it first goes on, or where it ends.
void Pipeline::trace_made(Packet packet) const {
  PacketMeta& meta = packet.meta();
  if (meta.status == ParseStatus::kUnparsed) roce::parse(packet);
  if (!meta.traced) meta.traced = trace_->follows(packet);
}

// A reference to each packet that is followed, or may be dropped, keeps its bytes in reach, whatever the kernel does
// with it.
void Pipeline::trace_process(unsigned stage, Port in, Context& context, Batch& batch) {
  std::array<TraceInfo, kBatchMax> infos;
  std::array<Packet, kBatchMax> packets;
  const bool drops = trace_->every_drop;
  for (unsigned i = 0; i < batch.size_; i++) {
    packets[i] = batch.packets_[i];
    infos[i] = trace_info(packets[i]);
    if (!infos[i].traced && !drops) continue;
    rte_mbuf_refcnt_update(packets[i].mbuf(), 1);
    packets[i].meta().watched = 1;
  }
  stages_[stage].kernel->process(context, in, batch);
  for (unsigned i = 0; i < batch.size_; i++) {
    if (!infos[i].traced && !drops) continue;
    if (infos[i].traced || batch.verdicts_[i] == Batch::kDropped) trace_verdict(stage, batch, i, infos[i], packets[i]);
    packets[i].meta().watched = 0;
    rte_pktmbuf_free(packets[i].mbuf());
  }
}

void Pipeline::trace_verdict(unsigned stage, const Batch& batch, unsigned i, const TraceInfo& info, Packet packet) {
  const Port verdict = batch.verdicts_[i];
  TraceEvent event{now_, stages_[stage].name, TraceVerdict::kSend, verdict, nullptr, info, packet};
  if (verdict == Batch::kTaken)
    event.verdict = TraceVerdict::kHold;
  else if (verdict == Batch::kDropped)
    event.verdict = TraceVerdict::kDrop;
  else if (verdict == batch.pass_)
    event.verdict = TraceVerdict::kPass;
  if (verdict == Batch::kDropped) event.reason = batch.reasons_[i];
  trace_->record(event);
}

}  // namespace rocebox
