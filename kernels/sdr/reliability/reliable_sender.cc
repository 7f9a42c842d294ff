// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/reliable_sender.h"

#include <algorithm>
#include <utility>

namespace rocebox::sdr {

using nic_model::Host;

ReliableSender::ReliableSender(QueuePair& qp, const ReliableOptions& options, OnOver on_over)
    : qp_(qp), options_(options), on_over_(std::move(on_over)) {
  timer_owner_ = qp.backend().add_timer_owner([this](Host& host) { pump(host); });
}

void ReliableSender::send(Host& host, Transfer& transfer) {
  transfer.posted = host.now();
  waiting_.push_back(&transfer);
  pump(host);
}

// A part's messages of SDR are begun together, once the peer has buffers for all of them.
void ReliableSender::begin_parts(Host& host) {
  while (!waiting_.empty() && active_.size() < options_.window) {
    Transfer& transfer = *waiting_.front();
    if (!transfer.error.empty() || transfer.cut == transfer.length) {
      skip(transfer);
      waiting_.pop_front();
      continue;
    }
    const std::uint64_t bytes = std::min(transfer.length - transfer.cut, part_bytes_max(qp_.options(), options_));
    const PartShape shape = part_shape(qp_.options(), options_, bytes);
    if (qp_.next_send() + shape.messages() > qp_.clear_to_send()) return;
    std::unique_ptr<Part> part;
    if (spare_.empty()) {
      part = std::make_unique<Part>();
    } else {
      part = std::move(spare_.back());
      spare_.pop_back();
    }
    part->shape = shape;
    part->transfer = &transfer;
    part->offset = transfer.cut;
    if (!begin(host, *part)) {
      spare_.push_back(std::move(part));
      return;  // messages that are leaving have their room still
    }
    transfer.cut += bytes;
    if (transfer.started == kNoTime) transfer.started = host.now();
    active_.push_back(std::move(part));
    if (const char* why = misfit(*active_.back())) settle(host, *active_.back(), why);
  }
}

void ReliableSender::skip(Transfer& transfer) {
  const Rest rest = rest_of(qp_.options(), options_, transfer);
  qp_.skip_sends(rest.messages);
  next_part_ += rest.parts;
  transfer.cut = transfer.length;
}

bool ReliableSender::has_part(const Transfer& transfer) const {
  return std::ranges::any_of(active_, [&](const auto& part) { return part->transfer == &transfer; });
}

// Messages that no part was made of: the peer posts no buffer, or cannot be told of any.
void ReliableSender::give_up_waiting(Host& host) {
  while (!waiting_.empty() && !has_part(*waiting_.front())) {
    Transfer& transfer = *waiting_.front();
    const bool late = host.now() >= transfer.posted + options_.coding.global_timeout;
    if (!qp_.broken() && !late) return;
    skip(transfer);
    waiting_.pop_front();
    if (transfer.error.empty()) transfer.error = late ? "the global timeout has passed" : "the connection is gone";
    transfer.ended = host.now();
    transfer.over = true;
    on_over_(host, transfer);
  }
}

bool ReliableSender::begin(Host& host, Part& part) {
  part.sends.clear();
  for (std::uint32_t i = 0; i < part.shape.messages(); i++) {
    Send* made = nullptr;
    if (qp_.free_sends() < part.shape.messages() - i || qp_.start_send(nullptr, made) != Status::kSuccess) return false;
    part.sends.push_back(made);
  }
  part.number = next_part_++;
  part.sent = 0;
  part.fresh_sent = part.settled = part.fell_back = false;
  part.probe_at = kNoTime;
  part.give_up = host.now() + options_.coding.global_timeout;
  const std::uint32_t chunks = part.shape.chunks();
  if (part.shape.coded) {
    auto* data = reinterpret_cast<std::uint8_t*>(part.transfer->address + part.offset);
    part.coded.start(part.shape, data);
    part.coded.encode();
    part.parity_key = qp_.backend().add_memory(part.coded.parity(), part.coded.parity_bytes(), false);
    part.coding = std::make_unique<CodingSender>(options_.coding, chunks);
    part.coding->start(chunks, host.now());
  } else {
    const bool nack = options_.kind == Reliability::kSelectiveRepeatNack;
    part.repeat =
        std::make_unique<RepeatSender>(RepeatOptions{options_.coding.rtt, options_.coding.alpha, nack}, chunks);
    part.repeat->start(chunks);
  }
  return true;
}

const char* ReliableSender::misfit(const Part& part) const {
  for (std::uint32_t i = 0; i < part.shape.messages(); i++) {
    const std::uint64_t number = part.sends[i]->number;
    const std::uint32_t length = qp_.may_have_buffer(number) ? qp_.peer_length(number) : 0;
    if (length == 0) return "the peer has given it up";
    if (length != part.shape.length(i)) return "the peer has posted a buffer of another length";
  }
  return nullptr;
}

void ReliableSender::pump(Host& host) {
  if (pumping_) return;  // what it posts may leave at once, which calls it again
  pumping_ = true;
  give_up_waiting(host);
  do {
    begin_parts(host);
    for (std::size_t i = 0; i < active_.size(); i++) {
      Part& part = *active_[i];
      if (!part.settled) look_at_time(host, part);
      while (!part.settled && qp_.backlog() < options_.backlog && send_next(host, part)) {
      }
    }
  } while (close(host));  // who hears that one is over may have sent another, which must not wait for an event
  arm(host);
  pumping_ = false;
}

// One chunk. False: nothing is due.
bool ReliableSender::send_next(Host& host, Part& part) {
  const Time now = host.now();
  if (options_.kind == Reliability::kNone) {
    if (part.sent == part.shape.chunks()) return settle(host, part, nullptr), false;
    put(host, part, false, part.sent++);
    return true;
  }
  if (!qp_.may_have_buffer(part.sends[0]->number)) {  // done or given up; which of these, the peer tells if it is asked
    if (!std::exchange(part.fresh_sent, true)) part.probe_at = now + options_.rto();
    return false;
  }
  bool parity = false;
  std::uint32_t chunk = RepeatSender::kNone;
  if (part.repeat) {
    chunk = part.repeat->next(now);
  } else if (const CodingSender::Chunk one = part.coding->next(now); one.kind != CodingSender::Chunk::Kind::kNone) {
    parity = one.kind == CodingSender::Chunk::Kind::kParity;
    chunk = one.number;
  }
  const std::uint32_t fresh = part.shape.chunks() + (part.shape.coded ? part.shape.submessages.parity_chunks() : 0);
  if (!part.fresh_sent && (chunk == RepeatSender::kNone || ++part.sent >= fresh)) {
    part.fresh_sent = true;
    part.probe_at = now + options_.rto();
  }
  if (chunk == RepeatSender::kNone) return false;
  put(host, part, parity, chunk);
  return true;
}

void ReliableSender::put(Host& host, Part& part, bool parity, std::uint32_t chunk) {
  const PartShape& shape = part.shape;
  const std::uint64_t begin = chunk * shape.chunk_bytes;
  std::uint32_t message = 0, first = 0;
  if (shape.coded) {
    const std::uint32_t a_submessage = parity ? shape.submessages.shape.parity : shape.submessages.shape.data;
    message = chunk / a_submessage * 2 + parity;
    first = chunk / a_submessage * a_submessage;
  }
  const std::uint64_t from = parity ? reinterpret_cast<std::uintptr_t>(part.coded.parity()) + begin
                                    : part.transfer->address + part.offset + begin;
  const auto bytes = static_cast<std::uint32_t>(parity ? shape.chunk_bytes : shape.end_of(chunk) - begin);
  const std::uint32_t key = parity ? part.parity_key : part.transfer->key;
  if (qp_.add(host, *part.sends[message], from, bytes, key, chunk - first) == Status::kError)
    settle(host, part, "its memory is not registered any more, or the connection is gone");
}

void ReliableSender::look_at_time(Host& host, Part& part) {
  const Time now = host.now();
  if (now >= part.give_up) return settle(host, part, "the global timeout has passed");
  if (qp_.broken()) return settle(host, part, "the connection is gone");
  if (now < part.probe_at) return;
  // The last ACK may be lost, and what is repeated does not show at the receiver any more.
  probes_++;
  part.probe_at = now + options_.rto();
  qp_.send_datagram(host, encode({Datagram::Kind::kProbe, part.number}));
}

void ReliableSender::on_datagram(Host& host, const Datagram& datagram) {
  const auto at = std::ranges::find_if(active_, [&](const auto& part) { return part->number == datagram.part; });
  if (at == active_.end() || (*at)->settled) return;
  Part& part = **at;
  const Time now = host.now();
  if (part.fresh_sent) part.probe_at = now + options_.rto();
  switch (datagram.kind) {
    case Datagram::Kind::kAck:
      if (part.repeat) {
        part.repeat->on_ack(datagram.ack, now);
        if (part.repeat->done()) settle(host, part, nullptr);
      } else if (part.coding) {
        part.coding->on_repeat_ack(datagram.ack, now);
      }
      break;
    case Datagram::Kind::kDone:
      settle(host, part, nullptr);
      break;
    case Datagram::Kind::kNack:
      if (part.coding && part.fresh_sent) {
        part.coding->on_nack(datagram.failed);
        fallbacks_ += part.coding->fallen_back() && !std::exchange(part.fell_back, part.coding->fallen_back());
      }
      break;
    case Datagram::Kind::kProbe:
      break;  // a sender's own
  }
  pump(host);
}

// The part is done, or has failed; what of it is on its way out still refers to its memory.
void ReliableSender::settle(Host& host, Part& part, const char* error) {
  part.settled = true;
  Transfer& transfer = *part.transfer;
  if (error && transfer.error.empty()) transfer.error = error;
  transfer.settled += part.shape.bytes;
  if (part.repeat) repetitions_ += part.repeat->repetitions();
  if (transfer.settled == transfer.length && transfer.ended == kNoTime) transfer.ended = host.now();
  for (Send* send : part.sends) qp_.end_send(host, *send);
}

bool ReliableSender::close(Host& host) {
  bool closed = false;
  for (auto at = active_.begin(); at != active_.end();) {
    Part& part = **at;
    if (!part.settled || !std::ranges::all_of(part.sends, [](const Send* send) { return send->completed(); })) {
      ++at;
      continue;
    }
    for (Send* send : part.sends) qp_.release(*send);
    if (part.parity_key) qp_.backend().remove_memory(std::exchange(part.parity_key, 0));
    part.repeat.reset();
    part.coding.reset();
    Transfer& transfer = *part.transfer;
    spare_.push_back(std::move(*at));
    at = active_.erase(at);
    closed = true;
    if (has_part(transfer) || (transfer.error.empty() && transfer.settled < transfer.length)) continue;
    skip(transfer);
    std::erase(waiting_, &transfer);
    transfer.over = true;
    if (transfer.ended == kNoTime) transfer.ended = host.now();
    on_over_(host, transfer);
    at = active_.begin();  // it may have sent another
  }
  return closed;
}

void ReliableSender::stop(Host& host) {
  host.cancel_timer(timer_);
  for (const auto& part : active_)
    if (part->parity_key) qp_.backend().remove_memory(part->parity_key);
  active_.clear();
  waiting_.clear();
}

void ReliableSender::arm(Host& host) {
  // A message with parts under way ends with the last of these.
  Time next = waiting_.empty() || has_part(*waiting_.front())
                  ? kNoTime
                  : waiting_.front()->posted + options_.coding.global_timeout;
  for (const auto& part : active_) {
    if (part->settled) continue;
    next = std::min({next, part->give_up, part->probe_at});
    // What is due and found no room goes when something has left.
    const Time due = part->repeat ? part->repeat->due() : part->coding ? part->coding->due() : kNoTime;
    if (due > host.now()) next = std::min(next, due);
  }
  if (next != kNoTime) qp_.backend().arm(host, timer_, std::max(next, host.now() + 1), timer_owner_);
}

}  // namespace rocebox::sdr
