// SPDX-License-Identifier: BSD-3-Clause
// Decoder: what comes in. decoder_repair.cc has LoWAR's own packets, decoder_order.cc the way out.
#include "kernels/lowar/decoder.h"

#include <algorithm>

#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

Decoder::Decoder(const Config& config, Stats& stats, Port host, Port link, Encoder& encoder)
    : config_(config),
      aim_(config.aim()),
      host_(host),
      link_(link),
      encoder_(encoder),
      count_(stats),
      units_(static_cast<std::uint32_t>(config.units),
             static_cast<std::uint32_t>(sizeof(CodedPrefix)) + config.transport_bytes_max()),
      buffer_(static_cast<std::size_t>(config.reordering)),
      streams_(static_cast<std::uint32_t>(config.streams), config.idle),
      timers_(static_cast<std::size_t>(config.streams)) {}

void Decoder::process(Context& context, Batch& batch) {
  std::array<Named, kBatchMax> names;
  name_packets(batch, streams_, names);
  Exit exit{context, &batch, 0, host_, names.data()};
  for (; exit.slot < batch.size(); exit.slot++) {
    const Named& named = names[exit.slot];
    if (exit.slot + 1 < batch.size()) prefetch_transport(batch[exit.slot + 1]);
    if (named.is_data())
      data(exit, named);
    else if (named.role == Role::kAnswer)
      answer(exit, batch[exit.slot]);
    else if (named.role == Role::kLowar)
      lowar(exit, batch[exit.slot]);
  }
}

// The unit that the packet will be XORed in, if it comes in order.
roce::Ahead Decoder::unit_ahead(Packet packet, const Named& named) {
  if (named.index == streams_.kNone) return {};
  const Stream& stream = streams_[named.index];
  if (!stream.clocked || stream.passive) return {};
  const std::int32_t place = roce::psn_distance(psn_of(packet), stream.base);
  const bool is_bound = stream.whole && place >= 0 && place < stream.coding.r;
  return units_.ahead(is_bound ? stream.units[static_cast<unsigned>(place) % stream.coding.c] : CodingUnits::kNone,
                      transport_bytes(packet));
}

// Of an idle stream that gives its place: its units.
bool Decoder::release(Stream& stream) {
  if (!stream.held.empty() || !stream.repairs.empty()) return false;  // a timer is about to let them go
  release_units(stream);
  count_.streams_aged.add();
  return true;
}

void Decoder::begin(Stream& stream, std::uint32_t psn, bool responses) {
  stream = Stream{};
  stream.begun = true;
  stream.expected = stream.unannounced = psn;
  stream.next_coding = config_.coding();
  stream.lenient = responses;
  count_.streams.add();
}

void Decoder::data(Exit& exit, const Named& named) {
  Packet packet = (*exit.batch)[exit.slot];
  const Nanos now = exit.context.now();
  const roce::IcrcStatus icrc = roce::icrc_check(packet, unit_ahead(packet, named));
  // A wrong ICRC may mean a wrong QPN: it makes no stream.
  const bool wrong = icrc == roce::IcrcStatus::kBad;
  const std::uint32_t index =
      wrong ? streams_.find(named.key, named.hash) : streams_.use(named.key, named.hash, now, release_idle());
  if (index == streams_.kNone) return wrong ? void() : count_.streams_full.add();
  Stream& stream = streams_[index];
  if (wrong) return stream.begun && !stream.passive ? exit.batch->drop(exit.slot, count_.drop_icrc) : void();
  count_.packets.add();
  const std::uint32_t psn = psn_of(packet);
  if (!stream.begun) begin(stream, psn, named.role == Role::kResponse);
  stream.accounted++;
  if (stream.resume != kNoPsn) [[unlikely]]
    take_up_again(stream, psn);
  if (stream.may_repeat && came_late_anywhere(stream, packet, now)) [[unlikely]]
    return exit.batch->drop(exit.slot, count_.drop_late);
  if (config_.adapt) adapt(exit, stream, named, packet);
  if (stream.next_coding.off() && !stream.passive && stream.held.empty() && stream.repairs.empty()) end_coding(stream);
  if (stream.passive) return pass_by(stream, packet, psn);
  const bool usable = icrc == roce::IcrcStatus::kGood && fits(packet);
  const std::int32_t ahead = roce::psn_distance(psn, stream.expected);
  if (ahead < 0) return old(exit, stream, packet);
  if (ahead > kWindowPsns) {
    PacketPtr taken = exit.batch->take(exit.slot);  // it goes behind what is let go
    skip_all(exit, stream);
    restart(stream, psn, psn);
    advance(now, stream, packet, usable);
    return exit.deliver(std::move(taken));
  }
  if (!may_go(stream, packet, psn)) return hold(exit, stream, packet, usable);
  measure(stream, packet, now);
  advance(now, stream, packet, usable);  // and it passes in place
  if (!stream.held.empty() || !stream.repairs.empty()) settle(exit, stream, psn);
}

// Whether the packet is the next one. What a message that may begin anywhere would overtake is behind a lost packet of
// the message before.
bool Decoder::may_go(const Stream& stream, Packet packet, std::uint32_t psn) const {
  if (psn == stream.expected) return true;
  const bool overtakes = !stream.held.empty() && !roce::psn_before(psn, buffer_[stream.held.head].psn);
  return !overtakes && stream.is_next(packet, psn);
}

// Behind a lost packet.
void Decoder::hold(Exit& exit, Stream& stream, Packet packet, bool usable) {
  const std::uint32_t psn = psn_of(packet);
  const Nanos now = exit.context.now();
  if (is_rebuilt_held(stream, packet, now)) return exit.batch->drop(exit.slot, count_.drop_late);
  const std::uint16_t newest = stream.held.newest;
  measure(stream, packet, now, newest != ReorderingBuffer::kNone && psn == roce::psn_add(buffer_[newest].psn, 1));
  if (buffer_.full()) [[unlikely]]
    return hold_where_full(exit, stream, packet, usable);
  wait(exit, stream, psn, {.usable = usable});
  settle(exit, stream, psn);
}

// What is missing before the packets that wait is given up until there is room, or none waits.
void Decoder::make_room(Exit& exit, Stream& stream) {
  const std::uint64_t before = count_.released.read();
  while (buffer_.full() && !stream.held.empty()) skip(exit, stream);
  count_.released_full.add(count_.released.read() - before);
}

// The packet comes behind all that is let go for it.
void Decoder::hold_where_full(Exit& exit, Stream& stream, Packet packet, bool usable) {
  const Nanos now = exit.context.now();
  const std::uint32_t psn = psn_of(packet);
  PacketPtr taken = exit.batch->take(exit.slot);
  make_room(exit, stream);
  if (buffer_.full()) {  // of other streams' packets
    const std::uint32_t lost = lost_before(stream, packet, psn);
    give_up(stream, psn, lost);
    count_.released_full.add(lost);
  }
  if (stream.passive) {
    pass_by(stream, packet, psn);
  } else if (roce::psn_before(psn, stream.expected)) {
    count_.old.add();
  } else if (may_go(stream, packet, psn)) {
    advance(now, stream, packet, usable);
  } else {
    keep(stream.held, std::move(taken), psn, now, {.usable = usable});
    count_.held.add();
  }
  if (taken) exit.deliver(std::move(taken));
  settle(exit, stream);
}

// An ACK or NAK goes behind the READ responses that were sent before it: overtaking them, it would tell the requester
// that they are lost.
void Decoder::answer(Exit& exit, Packet packet) {
  const std::uint32_t index = streams_.find(stream_key(packet, qpn_of(packet), true));
  if (index == streams_.kNone) return;
  Stream& stream = streams_[index];
  const std::uint32_t psn = psn_of(packet);
  if (stream.held.empty() || roce::psn_before(psn, stream.expected)) return;
  if (roce::icrc_check(packet) == roce::IcrcStatus::kBad) return count_.answers_icrc.add();  // its PSN may be anything
  if (!buffer_.full()) return wait(exit, stream, psn, {.answer = true});
  PacketPtr taken = exit.batch->take(exit.slot);
  make_room(exit, stream);
  if (stream.held.empty() || roce::psn_before(psn, stream.expected)) {
    exit.deliver(std::move(taken));
  } else {
    keep(stream.held, std::move(taken), psn, exit.context.now(), {.answer = true});
    count_.held.add();
  }
  settle(exit, stream);
}

void Decoder::wait(Exit& exit, Stream& stream, std::uint32_t psn, ReorderingBuffer::Kind kind) {
  keep(stream.held, exit.batch->take(exit.slot), psn, exit.context.now(), kind);
  count_.held.add();
}

void Decoder::keep(ReorderingBuffer::List& list, PacketPtr packet, std::uint32_t psn, Nanos now,
                   ReorderingBuffer::Kind kind) {
  buffer_.insert(list, std::move(packet), psn, now, kind);
  count_.held_max.raise_to(buffer_.used());
}

// Before the expected PSN: duplicates pass, and several in a row are a retransmission, which is protected again.
void Decoder::old(Exit& exit, Stream& stream, Packet packet) {
  if (came_late(stream, packet, exit.context.now())) return exit.batch->drop(exit.slot, count_.drop_late);
  count_.old.add();
  const std::uint32_t psn = psn_of(packet), next = roce::psn_add(psn, 1);
  const bool again = is_run_of_old(stream, psn);
  PacketPtr taken;
  if (!stream.held.empty()) {  // it was sent after those that wait
    if (buffer_.full())
      taken = exit.batch->take(exit.slot);
    else
      wait(exit, stream, buffer_[stream.held.tail].psn, {.answer = true});
  }
  const bool anew = again && roce::psn_before(next, stream.expected);
  if (anew) skip_all(exit, stream);
  if (taken) exit.deliver(std::move(taken));
  if (!anew) return;
  const std::uint32_t resume = stream.expected;
  restart(stream, next, roce::psn_add(next, -stream.old_run));
  stream.message_ended = roce::opcode_info(packet).has(roce::kEndsMessage);
  stream.resume = resume;
}

// The packet behind a supposed retransmission: where it goes on where the sequence was before, all that came was old.
void Decoder::take_up_again(Stream& stream, std::uint32_t psn) {
  const bool was_none = roce::psn_in_window(psn, stream.resume, static_cast<std::uint32_t>(config_.reorder) + 1);
  if (was_none && roce::psn_after(stream.resume, stream.expected)) stream.jump(stream.resume);
  stream.resume = kNoPsn;
}

bool Decoder::is_run_of_old(Stream& stream, std::uint32_t psn) {
  const auto since = static_cast<std::uint16_t>(stream.accounted - stream.old_at);
  const bool goes_on = stream.old_run && psn == roce::psn_add(stream.old_psn, 1) && since <= config_.reorder + 1;
  stream.old_run = static_cast<std::uint8_t>(goes_on ? std::min(stream.old_run + 1, 0xFF) : 1);
  stream.old_psn = psn;
  stream.old_at = stream.accounted;
  // What was given up may only have been late, however much of it there is.
  if (stream.gap_packets && roce::psn_in_window(psn, stream.gap_psn, stream.gap_packets))
    return take_back(stream), false;
  return stream.old_run >= kRetransmissionRun;
}

// The sequence goes on at `psn`, having begun at `began`; where blocks begin is to be learned again.
void Decoder::restart(Stream& stream, std::uint32_t psn, std::uint32_t began) {
  count_.restarts.add();
  release_units(stream);
  // The message that is under way goes on where its own packets are sent again.
  if (stream.first_psn != kNoPsn && (roce::psn_before(psn, stream.first_psn) || roce::psn_after(psn, stream.expected)))
    stream.first_psn = kNoPsn;
  stream.may_repeat |= stream.unreliable && roce::psn_before(psn, stream.expected);
  stream.jump(psn);
  stream.unannounced = began;
  stream.gap_packets = 0;
  stream.clocked = stream.has_boundary = false;
  stream.old_run = 0;
  stream.last = 0;  // what passed before the host went back is no distance within a message
}

// What is remembered of a packet that was recovered, by its original.
Decoder::Recovered* Decoder::find_recovered(Stream& stream, Packet packet, Nanos now) {
  if (!roce::icrc_held(packet)) return nullptr;
  const std::uint32_t psn = psn_of(packet), icrc = roce::icrc_stored(packet);
  const auto found = std::find_if(stream.recovered.begin(), stream.recovered.end(), [&](const Recovered& recovered) {
    return recovered.psn == psn && recovered.icrc == icrc && !recovered.expired(now);
  });
  return found == stream.recovered.end() ? nullptr : &*found;
}

// The original of a packet that was recovered: the link had only reordered it.
bool Decoder::came_late(Stream& stream, Packet packet, Nanos now) {
  Recovered* recovered = find_recovered(stream, packet, now);
  if (!recovered) return false;
  recovered->psn = kNoPsn;
  take_back(stream);
  return true;
}

// The same where the PSN does not tell: the sequence went back since, or is followed no more.
bool Decoder::came_late_anywhere(Stream& stream, Packet packet, Nanos now) {
  stream.may_repeat = std::any_of(stream.recovered.begin(), stream.recovered.end(), [&](const Recovered& recovered) {
    return recovered.psn != kNoPsn && !recovered.expired(now);
  });
  return stream.may_repeat && came_late(stream, packet, now);
}

// The same where the rebuilt packet still waits: it goes as if it were the original, and what comes once more passes.
bool Decoder::is_rebuilt_held(Stream& stream, Packet packet, Nanos now) {
  const std::uint16_t slot = buffer_.find_rebuilt(stream.held, psn_of(packet));
  if (slot == ReorderingBuffer::kNone || !roce::icrc_held(packet)) return false;
  if (roce::icrc_stored(packet) != roce::icrc_stored(*buffer_[slot].packet)) return false;
  buffer_[slot].rebuilt = false;
  if (Recovered* recovered = find_recovered(stream, packet, now)) recovered->psn = kNoPsn;
  return true;
}

}  // namespace rocebox::lowar
