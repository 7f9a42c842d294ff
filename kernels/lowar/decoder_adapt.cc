// SPDX-License-Identifier: BSD-3-Clause
// Decoder: what it measures of the link, what the sender says about (r, c), and what it is asked for.
#include <cstdlib>
#include <utility>

#include "kernels/lowar/decoder.h"
#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;
using roce::psn_distance;

// The next packets of the stream were lost.
void Decoder::lose(Stream& stream, std::uint32_t lost) {
  stream.meter.lost(lost);
  stream.accounted = static_cast<std::uint16_t>(stream.accounted + lost);
}

// One that came counts as lost already.
void Decoder::take_back(Stream& stream) {
  stream.meter.take_back();
  stream.accounted--;
}

// The sender has sent `more` packets than are accounted for, now that nothing waits. True: they were lost, and nothing
// else told of them. Fewer were sent where the link has doubled some.
bool Decoder::is_counted(Stream& stream, std::int32_t more) {
  stream.accounted = static_cast<std::uint16_t>(stream.accounted + more);
  if (!std::exchange(stream.counted, true) || more <= 0 || more > kWindowPsns) return false;
  count_.missed.add(static_cast<std::uint64_t>(more));
  return true;
}

void Decoder::was_sent(Stream& stream, const RepairHeader& header) {
  const Block& block = header.block;
  if (!stream.held.empty() || stream.last_psn != psn_add(block.base_psn, block.packets - 1)) return;
  const auto more = static_cast<std::int8_t>(header.sent + block.packets - stream.accounted);
  if (is_counted(stream, more)) stream.meter.lost(static_cast<std::uint32_t>(more));
}

void Decoder::was_sent(Stream& stream, const NegotiationHeader& header) {
  if (!stream.held.empty() || roce::psn_before(header.base_psn, stream.expected)) return;
  const auto more = static_cast<std::int16_t>(header.sent - stream.accounted);
  if (is_counted(stream, more)) stream.meter.lost_apart(static_cast<std::uint32_t>(more));
}

// Nothing is kept back, as nothing could be repaired; losses are gaps between PSNs.
void Decoder::pass_by(Stream& stream, Packet packet, std::uint32_t psn) {
  const std::int32_t ahead = psn_distance(psn, stream.expected);
  if (ahead < 0 && ahead >= -kWindowPsns) {  // sent again, or overtaken
    if (!is_run_of_old(stream, psn)) return;
    stream.unannounced = psn_add(psn, 1 - stream.old_run);
    stream.gap_packets = 0;
    stream.resume = stream.expected;
  }
  if (ahead > 0 && ahead <= kWindowPsns && !stream.is_next(packet, psn)) {
    lose(stream, lost_before(stream, packet, psn));
    stream.gap_psn = stream.expected;
    stream.gap_packets = static_cast<std::uint16_t>(ahead);
  }
  leave_message(stream, ahead);
  stream.meter.came();
  count_message(stream, packet, psn);
  stream.jump(psn);
  stream.go_on(packet, psn);
}

// Where so many packets are left out at once, another message may have begun meanwhile.
void Decoder::leave_message(Stream& stream, std::int32_t packets) {
  if (std::abs(packets) >= static_cast<std::int32_t>(kBlockPacketsMax)) stream.first_psn = kNoPsn;
}

// The packet has its place in the sequence. Two messages, of which one gap has the end and the beginning, count as one.
void Decoder::count_message(Stream& stream, Packet packet, std::uint32_t psn) {
  if (!config_.adapt) return;
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (info.has(roce::kStartsMessage)) stream.first_psn = psn;
  if (!info.has(roce::kEndsMessage)) return;
  const std::uint32_t first = std::exchange(stream.first_psn, kNoPsn);
  if (first != kNoPsn && !roce::psn_before(psn, first))
    stream.messages.ended(static_cast<std::uint32_t>(psn_distance(psn, first)) + 1);
}

void Decoder::adapt(Exit& exit, Stream& stream, const Named& named, Packet packet) {
  if (stream.meter.due() || stream.messages.due()) [[unlikely]]
    consider(stream, exit.context.now());
  if (stream.asking && exit.context.now() >= stream.ask_at) [[unlikely]]
    ask(exit, stream, named, packet);
}

// Whether what was seen of the link and of the messages by now asks for another setting. Not before the last one has
// had its time.
void Decoder::consider(Stream& stream, Nanos now) {
  if (stream.asked_first && now - stream.asked_first < config_.dwell) return;
  const Coding current = stream.asking ? stream.asked : stream.next_coding;
  const bool other_messages = stream.messages.due() && stream.messages.look(current, aim_.redundancy_max);
  const bool other_losses = stream.meter.due() && stream.meter.look();
  if (!other_messages && !other_losses) return;
  const Coding wanted = stream.token ? choose_for(stream, current) : current;
  if (other_losses) stream.meter.done();
  if (wanted == current) return;
  stream.asked = wanted;
  stream.asking = true;
  stream.asked_times = 0;
  stream.asked_serial++;
  stream.ask_at = stream.asked_first = now;
  count_.changes.add();
}

Coding Decoder::choose_for(Stream& stream, Coding current) const {
  MessageMeter messages = stream.messages;
  // A long message counts before its end. Its whole blocks only: of the last one the first packets alone would make
  // every setting dearer than it is.
  constexpr std::int32_t kBlock = kBlockPacketsMax;
  const std::int32_t under_way = stream.first_psn == kNoPsn ? 0 : psn_distance(stream.expected, stream.first_psn);
  if (under_way >= kBlock) messages.ended(static_cast<std::uint32_t>(under_way / kBlock * kBlock));
  // What was chosen by other messages costs too much; that the stream began so says nothing of them.
  if (stream.asked_first && messages.cost(current) > aim_.redundancy_max) {
    stream.messages.retreat();
    messages.retreat();
  }
  stream.messages.decided();
  return choose(current, stream.meter, messages, aim_);
}

// Goes the way back with a packet of the stream as its cause: where none comes there is nothing to be protected. Asked
// again ever more seldom, and not for ever.
void Decoder::ask(Exit& exit, Stream& stream, const Named& named, Packet packet) {
  if (stream.asked_times == kRequestsMax) {
    stream.asking = false;
    return count_.unheeded.add();
  }
  stream.ask_at = exit.context.now() + (kRequestInterval << stream.asked_times++);
  NegotiationHeader header{qpn_of(packet), NegotiationKind::kRequest, stream.asked, stream.expected,
                           named.role == Role::kResponse};
  header.serial = stream.asked_serial;
  header.token = stream.token;
  PacketPtr made = make_packet_back(exit.context, packet, encode(header));
  if (!made) return count_.pool_dry.add();
  count_.requests.add();
  exit.context.emit(std::move(made), link_, exit.slot);
}

void Decoder::negotiate(Exit& exit, const NegotiationHeader& header, Packet packet) {
  const Nanos now = exit.context.now();
  if (header.kind == NegotiationKind::kRequest)
    return encoder_.requested(stream_key_back(packet, header.qpn, header.responses), header, now);
  const StreamKey key = stream_key(packet, header.qpn, header.responses);
  const std::uint32_t index = streams_.use(key, streams_.hash(key), now, release_idle());
  if (index == streams_.kNone) return count_.streams_full.add();
  Stream& stream = streams_[index];
  if (!stream.begun) begin(stream, header.base_psn, header.responses);
  if (header.kind == NegotiationKind::kAnnounce)
    announced(exit, stream, header);
  else
    told_status(exit, stream, header);
}

// Whatever the sender says of its setting. What a newer status has overtaken says nothing of it.
void Decoder::learn(Stream& stream, const NegotiationHeader& header) {
  stream.heard = true;
  if (header.sent == 0) stream.counted = false;
  const bool same_sender = header.token == stream.token;
  if (!same_sender || !is_newer(stream.said_serial, header.serial)) {
    stream.passive = false;
    stream.next_coding = header.coding;
    stream.said_psn = header.base_psn;
    stream.said_serial = header.serial;
  }
  if (!same_sender) {  // another one, or it was restarted
    stream.counted = false;
    stream.token = header.token;
    stream.asked_serial = header.serial;
    stream.asking = false;
  }
  if (is_newer(stream.asked_serial, header.serial)) return;
  stream.asked_serial = header.serial;
  stream.asking = false;
}

// The sequence goes on: nothing that is waited for is given up for it.
void Decoder::told_status(Exit& exit, Stream& stream, const NegotiationHeader& header) {
  const bool was_passive = stream.passive;
  learn(stream, header);
  const std::int32_t ahead = psn_distance(header.base_psn, stream.expected);
  if (was_passive && ahead != 0) {  // what is missing was not coded
    if (ahead > 0 && ahead <= kWindowPsns && !stream.lenient) lose(stream, static_cast<std::uint32_t>(ahead));
    if (ahead > 0 || ahead < -static_cast<std::int32_t>(config_.reorder)) {
      leave_message(stream, ahead);
      stream.jump(header.base_psn);
    }
  }
  if (ahead >= 0 && ahead <= kWindowPsns) {
    stream.boundary = header.base_psn;
    stream.has_boundary = true;
    settle(exit, stream);
  }
  was_sent(stream, header);
}

}  // namespace rocebox::lowar
