// SPDX-License-Identifier: BSD-3-Clause
// Encoder: where streams begin and end, and with which (r, c) they are coded.
#include <algorithm>

#include "kernels/lowar/encoder.h"
#include "kernels/lowar/repair_packet.h"

namespace rocebox::lowar {

// An idle stream gives its place: its units are free.
bool Encoder::retire(const Stream& stream) {
  for (unsigned isn = 0; isn < std::min<unsigned>(stream.block.coding.c, stream.block.packets); isn++)
    if (stream.units[isn] != CodingUnits::kNone) units_.release(stream.units[isn]);
  count_.streams_aged.add();
  return true;
}

void Encoder::begin_stream(Context& context, Stream& stream, bool responses) {
  count_.streams.add();
  stream.begun = true;
  stream.may_skip_psns = responses;
  stream.coding = stream.asked_for = config_.coding();
  if (config_.adapt) stream.token = static_cast<std::uint32_t>(context.random() >> 32) | 1;
}

// A message begins, or a sequence: now (r, c) may change.
void Encoder::apply_request(Stream& stream) {
  if (stream.taken_serial == stream.serial) return;
  stream.taken_serial = stream.serial;
  stream.status_due = true;
  if (stream.coding != stream.asked_for) count_.changes.add();
  stream.coding = stream.asked_for;
}

bool Encoder::status_is_due(const Stream& stream) const {
  if (stream.block.packets != 0 || stream.token == 0) return false;
  return stream.status_due || stream.since_status >= kStatusPackets;
}

// Goes ahead of the packet, so that the far end knows where the sequence begins even if that is lost.
void Encoder::announce(Current& current, Stream& stream, Packet packet, NegotiationKind kind, bool responses) {
  NegotiationHeader header{qpn_of(packet), kind, stream.coding, psn_of(packet), responses};
  header.serial = stream.taken_serial;
  header.token = stream.token;
  header.sent = stream.sent;
  PacketPtr made = make_packet(current.context, packet, encode(header));
  if (!made) return count_.pool_dry.add();
  count_.announcements.add();
  stream.status_due = false;
  stream.since_status = 0;
  current.take_out();
  current.context.emit(std::move(made), out_, current.slot);
}

// Only where the sequence is remains known, so that what the host sends again is announced.
void Encoder::follow_uncoded(Stream& stream, Packet packet) {
  count_.uncoded.add();
  stream.advance(packet, psn_of(packet));
}

void Encoder::requested(const StreamKey& key, const NegotiationHeader& header, Nanos now) {
  count_.requests.add();
  const std::uint32_t index = streams_.find(key);
  if (index == streams_.kNone || streams_[index].token == 0 || streams_[index].token != header.token)
    return count_.requests_ignored.add();
  Stream& stream = streams_[index];
  if (!is_newer(header.serial, stream.serial)) {
    stream.status_due = true;  // what it was told may have been lost
    return count_.requests_old.add();
  }
  const Coding coding = header.coding;
  // The far end's clock and the way between are allowed some difference.
  const bool too_soon = stream.heeded && now - stream.heeded < config_.dwell / 2;
  if (too_soon || coding.c > config_.aim().c_max || redundancy(coding) > config_.redundancy_max)
    return count_.requests_refused.add();
  stream.serial = header.serial;
  stream.asked_for = coding;
  stream.heeded = now;
}

}  // namespace rocebox::lowar
