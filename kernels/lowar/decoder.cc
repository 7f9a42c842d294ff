// SPDX-License-Identifier: BSD-3-Clause
// Decoder: what comes in. decoder_repair.cc has LoWAR's own packets, decoder_order.cc the way out.
#include "kernels/lowar/decoder.h"

#include <algorithm>

#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

Decoder::Decoder(const Config& config, Stats& stats, Port out)
    : config_(config),
      out_(out),
      count_(stats),
      units_(static_cast<std::uint32_t>(config.units),
             static_cast<std::uint32_t>(sizeof(CodedPrefix)) + config.transport_bytes_max()),
      buffer_(static_cast<std::size_t>(config.reordering)),
      table_(static_cast<std::uint32_t>(config.streams)),
      streams_(static_cast<std::size_t>(config.streams)) {}

void Decoder::process(Context& context, Batch& batch) {
  std::array<Role, kBatchMax> roles;
  std::array<StreamKey, kBatchMax> keys;
  std::array<std::uint64_t, kBatchMax> hashes;
  for (unsigned i = 0; i < batch.size(); i++) {
    roles[i] = role_of(batch[i]);
    if (roles[i] != Role::kRequest && roles[i] != Role::kResponse) continue;
    keys[i] = stream_key(batch[i], qpn_of(batch[i]), roles[i] == Role::kResponse);
    hashes[i] = table_.hash(keys[i]);
    table_.prefetch(hashes[i]);
  }
  Exit exit{context, &batch, 0, out_};
  for (; exit.slot < batch.size(); exit.slot++) {
    const unsigned i = exit.slot;
    if (roles[i] == Role::kOther) continue;
    if (roles[i] == Role::kAnswer)
      answer(exit, batch[i]);
    else if (roles[i] == Role::kLowar)
      lowar(exit, batch[i]);
    else
      data(exit, roles[i], keys[i], hashes[i]);
  }
}

void Decoder::begin(Stream& stream, std::uint32_t psn, bool responses) {
  stream = Stream{};
  stream.begun = true;
  stream.expected = psn;
  stream.next_coding = config_.coding();
  stream.lenient = responses;
  count_.streams.add();
}

void Decoder::data(Exit& exit, Role role, const StreamKey& key, std::uint64_t hash) {
  Packet packet = (*exit.batch)[exit.slot];
  const bool whole = roce::icrc_held(packet);
  // A wrong ICRC may mean a wrong QPN: it makes no stream.
  const bool wrong = whole && roce::icrc_compute(packet) != roce::icrc_stored(packet);
  const std::uint32_t index = wrong ? table_.find(key, hash) : table_.insert(key, hash);
  if (index == table_.kNone) return wrong ? void() : count_.streams_full.add();
  Stream& stream = streams_[index];
  if (wrong) return stream.begun && !stream.passive ? exit.batch->drop(exit.slot, count_.drop_icrc) : void();
  count_.packets.add();
  const std::uint32_t psn = psn_of(packet);
  if (!stream.begun) begin(stream, psn, role == Role::kResponse);
  if (stream.passive) {
    stream.expected = roce::psn_add(psn, 1);
    return;
  }
  const std::int32_t ahead = roce::psn_distance(psn, stream.expected);
  if (ahead < 0) return old(exit, stream, packet);
  if (ahead > kWindowPsns) {
    PacketPtr taken = exit.batch->take(exit.slot);  // it goes behind what is let go
    skip_all(exit, stream);
    restart(stream, psn);
    advance(stream, packet, whole && transport_bytes(packet) <= config_.transport_bytes_max());
    return exit.deliver(std::move(taken));
  }
  const bool usable = whole && transport_bytes(packet) <= config_.transport_bytes_max();
  // What a message that may begin anywhere would overtake is behind a lost packet of the message before.
  const bool overtakes = !stream.held.empty() && !roce::psn_before(psn, buffer_[stream.held.head].psn);
  if (psn != stream.expected && (overtakes || !is_next(stream, packet, psn))) return hold(exit, stream, packet, usable);
  measure(stream, packet, exit.context.now());
  advance(stream, packet, usable);  // and it passes in place
  if (!stream.held.empty() || !stream.repairs.empty()) settle(exit, stream);
}

// Behind a lost packet. Where the buffer has no room the lost one is given up.
void Decoder::hold(Exit& exit, Stream& stream, Packet packet, bool usable) {
  const std::uint32_t psn = psn_of(packet);
  if (buffer_.full()) [[unlikely]] {
    const std::uint64_t before = count_.released.read();
    while (buffer_.full() && !stream.held.empty()) skip(exit, stream);
    if (buffer_.full()) {  // of other streams' packets
      count_.released.add(static_cast<std::uint64_t>(roce::psn_distance(psn, stream.expected)));
      skip_to(exit, stream, psn);
    }
    count_.released_full.add(count_.released.read() - before);
    if (roce::psn_before(psn, stream.expected)) return count_.old.add();
    if (is_next(stream, packet, psn)) {
      // What skip() sent behind this packet comes before it in the sequence.
      PacketPtr taken = exit.batch->take(exit.slot);
      advance(stream, packet, usable);
      exit.deliver(std::move(taken));
      return settle(exit, stream);
    }
  }
  if (stream.held.empty() && stream.repairs.empty()) stream.since = exit.context.now();
  buffer_.insert(stream.held, exit.batch->take(exit.slot), psn, exit.context.now(), false, usable);
  count_.held.add();
  count_.held_max.raise_to(buffer_.used());
  settle(exit, stream);
}

// An ACK or NAK goes behind the READ responses that were sent before it: overtaking them, it would tell the requester
// that they are lost.
void Decoder::answer(Exit& exit, Packet packet) {
  const std::uint32_t index = table_.find(stream_key(packet, qpn_of(packet), true));
  if (index == table_.kNone) return;
  Stream& stream = streams_[index];
  const std::uint32_t psn = psn_of(packet);
  if (stream.held.empty() || buffer_.full() || roce::psn_before(psn, stream.expected)) return;
  wait_behind(exit, stream, psn);
}

// The packet takes no place in the sequence, and goes when those up to `psn` have gone.
void Decoder::wait_behind(Exit& exit, Stream& stream, std::uint32_t psn) {
  buffer_.insert(stream.held, exit.batch->take(exit.slot), psn, exit.context.now(), true, false);
  count_.held.add();
  count_.held_max.raise_to(buffer_.used());
}

// Before the expected PSN: duplicates pass, and several in a row are a retransmission, which is protected again.
void Decoder::old(Exit& exit, Stream& stream, Packet packet) {
  if (came_late(stream, packet, exit.context.now())) return exit.batch->drop(exit.slot, count_.drop_late);
  count_.old.add();
  const std::uint32_t psn = psn_of(packet), next = roce::psn_add(psn, 1);
  stream.old_run = stream.old_run && psn == roce::psn_add(stream.old_psn, 1) ? stream.old_run + 1 : 1;
  stream.old_psn = psn;
  if (!stream.held.empty() && !buffer_.full())  // it was sent after those that wait
    wait_behind(exit, stream, buffer_[stream.held.tail].psn);
  if (stream.old_run < kRetransmissionRun || !roce::psn_before(next, stream.expected)) return;
  skip_all(exit, stream);
  restart(stream, next);
  stream.message_ended = roce::opcode_info(packet).has(roce::kEndsMessage);
}

// The sequence goes on at `psn`; where blocks begin is to be learned again.
void Decoder::restart(Stream& stream, std::uint32_t psn) {
  count_.restarts.add();
  release_units(stream);
  stream.expected = psn;
  stream.clocked = stream.has_boundary = false;
  stream.old_run = 0;
}

// The original of a packet that was recovered: the link had only reordered it.
bool Decoder::came_late(Stream& stream, Packet packet, Nanos now) {
  const std::uint32_t psn = psn_of(packet);
  for (Recovered& recovered : stream.recovered) {
    if (recovered.until < now || recovered.until == 0 || recovered.psn != psn) continue;
    if (!roce::icrc_held(packet) || recovered.icrc != roce::icrc_stored(packet)) continue;
    recovered.until = 0;
    return true;
  }
  return false;
}

}  // namespace rocebox::lowar
