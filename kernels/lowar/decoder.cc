// SPDX-License-Identifier: BSD-3-Clause
// Decoder: the host's packets. decoder_control.cc has LoWAR's own.
#include "kernels/lowar/decoder.h"

#include <utility>

#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

Decoder::Decoder(const Config& config, Stats& stats, Port host, Port link, Encoder& encoder)
    : config_(config),
      aim_(config.aim()),
      reorder_(static_cast<std::uint32_t>(config.reorder)),
      host_(host),
      link_(link),
      encoder_(encoder),
      count_(stats),
      streams_(static_cast<std::uint32_t>(config.streams), config.idle),
      delivery_(config_, count_, streams_) {}

void Decoder::process(Context& context, Batch& batch) {
  std::array<ClassifiedPacket, kBatchMax> classes;
  classify(batch, streams_, classes);
  Outlet outlet{context, &batch, 0, host_};
  for (; outlet.slot < batch.size(); outlet.slot++) {
    const ClassifiedPacket& kind = classes[outlet.slot];
    if (outlet.slot + 1 < batch.size()) prefetch_transport(batch[outlet.slot + 1]);
    if (kind.is_data())
      data(outlet, kind);
    else if (kind.role == Role::kAcknowledge)
      acknowledge(outlet, batch[outlet.slot]);
    else if (kind.role == Role::kLowar)
      lowar(outlet, batch[outlet.slot]);
  }
}

void Decoder::on_timer(Context& context, Timer& timer) {
  Outlet outlet{context, nullptr, 0, host_};
  delivery_.release(outlet, timer);
}

roce::Ahead Decoder::unit_ahead(Packet packet, const ClassifiedPacket& kind) {
  if (kind.index == streams_.kNone) return {};
  return delivery_.unit_ahead(streams_[kind.index], packet);
}

std::uint32_t Decoder::use_stream(const StreamKey& key, std::uint64_t hash, Nanos now) {
  return streams_.use(key, hash, now, [this](Stream& idle) { return delivery_.retire(idle); });
}

void Decoder::begin(Stream& stream, std::uint32_t psn, bool responses) {
  stream.sequence.begin(psn, responses);
  stream.block.set_next_coding(config_.coding(), 0);
  count_.streams.add();
}

void Decoder::data(Outlet& outlet, const ClassifiedPacket& kind) {
  Packet packet = (*outlet.batch)[outlet.slot];
  const Nanos now = outlet.context.now();
  const roce::IcrcStatus icrc = roce::icrc_check(packet, unit_ahead(packet, kind));
  if (icrc == roce::IcrcStatus::kBad) {  // the QP, too, may be a wrong one: it makes no stream
    const std::uint32_t known = streams_.find(kind.key, kind.hash);
    if (known == streams_.kNone) return;
    const Stream& stream = streams_[known];
    if (stream.sequence.begun() && stream.order.keeps_order()) outlet.batch->drop(outlet.slot, count_.drop_icrc);
    return;
  }
  const std::uint32_t index = use_stream(kind.key, kind.hash, now);
  if (index == streams_.kNone) return count_.streams_full.add();
  Stream& stream = streams_[index];
  count_.packets.add();
  const std::uint32_t psn = psn_of(packet);
  if (!stream.sequence.begun()) begin(stream, psn, kind.role == Role::kResponse);
  stream.sequence.count_arrival();
  stream.sequence.resolve_run(psn, reorder_);
  if (stream.recovered.at_any_psn()) [[unlikely]] {
    stream.recovered.expire(now);
    if (stream.recovered.at_any_psn() && drop_late(outlet, stream, packet)) return;
  }
  if (config_.adapt) adapt(outlet, stream, kind, packet);
  if (stream.block.next_coding().off() && stream.order.keeps_order() && stream.order.idle())
    delivery_.end_coding(stream);
  if (!stream.order.keeps_order()) return delivery_.follow_uncoded(stream, packet);
  const std::int32_t ahead = stream.sequence.ahead(psn);
  if (ahead < 0) return duplicate(outlet, stream, packet);
  const bool usable = icrc == roce::IcrcStatus::kGood && transport_bytes(packet) <= config_.transport_bytes_max();
  if (ahead > kWindowPsns) return delivery_.begin_at(outlet, stream, packet, usable);
  delivery_.arrive(outlet, stream, packet, usable);
}

// Drops the original of a packet that was recovered, which the link had only reordered. False: it is another packet.
bool Decoder::drop_late(Outlet& outlet, Stream& stream, Packet packet) {
  if (!stream.recovered.take(packet, outlet.context.now())) return false;
  stream.take_back_lost();
  outlet.batch->drop(outlet.slot, count_.drop_late);
  return true;
}

// Before the expected PSN: duplicates pass, and several in a row are a retransmission, which is protected again.
void Decoder::duplicate(Outlet& outlet, Stream& stream, Packet packet) {
  using Duplicate = ReceiveSequence::Duplicate;
  if (drop_late(outlet, stream, packet)) return;
  count_.old.add();
  const std::uint32_t psn = psn_of(packet), next = roce::psn_add(psn, 1);
  const Duplicate duplicate = stream.sequence.note_duplicate(psn, reorder_);
  if (duplicate == Duplicate::kGivenUp) stream.take_back_lost();
  const bool restart = duplicate == Duplicate::kRun && stream.sequence.ahead(next) < 0;
  delivery_.duplicate(outlet, stream, restart);
  if (!restart) return;
  const std::uint32_t expected = stream.sequence.expected();
  delivery_.restart(stream, next, stream.sequence.run_began());
  stream.sequence.set_message_ended(roce::opcode_info(packet).has(roce::kEndsMessage));
  stream.sequence.may_resume_at(expected);
}

// An ACK or NAK goes behind the READ responses that were sent before it: overtaking them, it would tell the requester
// that they are lost.
void Decoder::acknowledge(Outlet& outlet, Packet packet) {
  const std::uint32_t index = streams_.find(stream_key(packet, qpn_of(packet), true));
  if (index == streams_.kNone) return;
  Stream& stream = streams_[index];
  if (stream.order.empty() || stream.sequence.ahead(psn_of(packet)) < 0) return;
  if (roce::icrc_check(packet) == roce::IcrcStatus::kBad) return count_.answers_icrc.add();  // its PSN may be anything
  delivery_.acknowledge(outlet, stream, packet);
}

void Decoder::adapt(Outlet& outlet, Stream& stream, const ClassifiedPacket& kind, Packet packet) {
  const Nanos now = outlet.context.now();
  if (stream.adaptation.due()) [[unlikely]]
    if (stream.adaptation.decide(now, stream.block.next_coding(), stream.sequence.expected(), aim_, config_.dwell))
      count_.changes.add();
  if (stream.adaptation.request_due(now)) [[unlikely]]
    request(outlet, stream, kind, packet);
}

// Goes the way back with a packet of the stream as its cause: where none comes there is nothing to be protected.
void Decoder::request(Outlet& outlet, Stream& stream, const ClassifiedPacket& kind, Packet packet) {
  const auto request = stream.adaptation.next_request(outlet.context.now());
  if (!request) return count_.unheeded.add();
  NegotiationHeader header{qpn_of(packet), NegotiationKind::kRequest, request->coding, stream.sequence.expected(),
                           kind.role == Role::kResponse};
  header.serial = request->serial;
  header.token = request->token;
  PacketPtr made = make_packet_back(outlet.context, packet, encode(header));
  if (!made) return count_.pool_dry.add();
  count_.requests.add();
  outlet.context.emit(std::move(made), link_, outlet.slot);
}

}  // namespace rocebox::lowar
