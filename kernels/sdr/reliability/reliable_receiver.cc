// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/reliable_receiver.h"

#include <algorithm>

namespace rocebox::sdr {

using nic_model::Host;

ReliableReceiver::ReliableReceiver(QueuePair& qp, const ReliableOptions& options, OnOver on_over)
    : qp_(qp), options_(options), on_over_(std::move(on_over)) {
  timer_owner_ = qp.backend().add_timer_owner([this](Host& host) {
    armed_ = false;
    look(host);
  });
}

void ReliableReceiver::receive(Host& host, Transfer& transfer) {
  transfer.posted = host.now();
  waiting_.push_back(&transfer);
  post_parts(host);
  arm(host);
}

// IDs go round, and a generation comes again after so many rounds. A round of messages that were received takes an RTT
// at least, and their senders have heard that the round before is over; numbers that are given up take no time, and
// their sender may be deaf. It stops as it hears of what was posted last, and what is under way then has come an RTO
// later.
bool ReliableReceiver::may_post(Host& host) {
  if (qp_.broken()) return true;  // nothing can come any more, and what waits has to fail
  if (has_given_up_ && qp_.peer_has_heard()) {
    has_given_up_ = false;
    hold_until_ = host.now() + options_.rto();
  }
  return !has_given_up_ && host.now() >= hold_until_;
}

void ReliableReceiver::post_parts(Host& host) {
  while (may_post(host)) {
    if (!active_.empty() && active_.back()->receives.size() < active_.back()->shape.messages())
      if (!post(host, *active_.back())) return;
    while (!waiting_.empty() &&
           (waiting_.front()->cut == waiting_.front()->length || !waiting_.front()->error.empty())) {
      skip(host, *waiting_.front());
      waiting_.pop_front();
    }
    if (waiting_.empty() || active_.size() >= options_.window || !qp_.can_receive()) return;
    Transfer& transfer = *waiting_.front();
    if (spare_.empty()) {
      active_.push_back(std::make_unique<Part>());
    } else {
      active_.push_back(std::move(spare_.back()));
      spare_.pop_back();
    }
    Part& part = *active_.back();
    const std::uint64_t bytes = std::min(transfer.length - transfer.cut, part_bytes_max(qp_.options(), options_));
    part.transfer = &transfer;
    part.offset = transfer.cut;
    part.shape = part_shape(qp_.options(), options_, bytes);
    transfer.cut += bytes;
    prepare(host, part);
  }
}

void ReliableReceiver::prepare(Host& host, Part& part) {
  part.number = next_part_++;
  part.receives.clear();
  part.seen = 0;
  part.changed = kNoTime;
  part.asked = false;
  part.give_up = host.now() + options_.coding.global_timeout;
  const std::uint32_t chunks = part.shape.chunks();
  part.repeat = std::make_unique<RepeatReceiver>(
      RepeatOptions{options_.coding.rtt, options_.coding.alpha, options_.kind == Reliability::kSelectiveRepeatNack});
  part.repeat->start(chunks);
  if (!part.shape.coded) return;
  part.coded.start(part.shape, reinterpret_cast<std::uint8_t*>(part.transfer->address + part.offset));
  part.parity_key = qp_.backend().add_memory(part.coded.parity(), part.coded.parity_bytes(), true);
  part.coding = std::make_unique<CodingReceiver>(options_.coding, chunks);
  part.coding->start(chunks, host.now());
  part.data.assign(chunks, 0);
  part.parity.assign(part.shape.submessages.parity_chunks(), 0);
}

// As many of its buffers as there are slots. Whether that was all.
bool ReliableReceiver::post(Host& host, Part& part) {
  const PartShape& shape = part.shape;
  while (part.receives.size() < shape.messages()) {
    const auto message = static_cast<std::uint32_t>(part.receives.size());
    std::uint64_t at = part.transfer->address + part.offset;
    std::uint32_t key = part.transfer->key;
    if (shape.coded && message % 2) {
      at = reinterpret_cast<std::uintptr_t>(part.coded.parity()) +
           shape.submessages.first_parity(message / 2) * shape.chunk_bytes;
      key = part.parity_key;
    } else if (shape.coded) {
      at += shape.submessages.first(message / 2) * shape.chunk_bytes;
    }
    Receive* made = nullptr;
    const Status status = qp_.post_receive(host, at, shape.length(message), key, made);
    if (status == Status::kError && part.transfer->error.empty())
      part.transfer->error = "its memory cannot be received into, or the connection is gone";
    if (status != Status::kSuccess) return false;
    part.receives.push_back(made);
  }
  return true;
}

void ReliableReceiver::look(Host& host) {
  for (std::size_t i = 0; i < active_.size();) {
    Part& part = *active_[i];
    const bool gone = qp_.broken() || !part.transfer->error.empty();
    if (gone || host.now() >= part.give_up) {
      end(host, part, gone ? "the connection is gone" : "the global timeout has passed");
    } else if (part.receives.size() < part.shape.messages() || !look_at(host, part)) {
      i++;
      continue;
    }
    Transfer& transfer = *part.transfer;
    spare_.push_back(std::move(active_[i]));
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    const bool others = std::ranges::any_of(active_, [&](const auto& one) { return one->transfer == &transfer; });
    if (others || (transfer.error.empty() && transfer.settled < transfer.length)) continue;
    transfer.ended = host.now();
    skip(host, transfer);
    std::erase(waiting_, &transfer);
    transfer.over = true;
    on_over_(host, transfer);
  }
  give_up_waiting(host);
  post_parts(host);
  arm(host);
}

// Messages that no buffer was posted for, because the peer hears nothing.
void ReliableReceiver::give_up_waiting(Host& host) {
  while (has_given_up_ && !waiting_.empty() && waiting_.front()->cut == 0 &&
         host.now() >= waiting_.front()->posted + options_.coding.global_timeout) {
    Transfer& transfer = *waiting_.front();
    waiting_.pop_front();
    transfer.error = "the global timeout has passed";
    transfer.ended = host.now();
    skip(host, transfer);
    transfer.over = true;
    on_over_(host, transfer);
  }
}

bool ReliableReceiver::look_at(Host& host, Part& part) {
  if (part.coding) return look_at_coded(host, part);
  return options_.kind == Reliability::kNone ? look_at_unreliable(host, part) : look_at_repeat(host, part);
}

std::span<const std::uint8_t> ReliableReceiver::bitmap(const Part& part) const {
  if (part.coding) return part.data;
  return {part.receives[0]->bitmap, part.shape.chunks()};
}

bool ReliableReceiver::look_at_repeat(Host& host, Part& part) {
  Datagram datagram{Datagram::Kind::kAck, part.number};
  if (part.repeat->poll(bitmap(part), datagram.ack)) qp_.send_datagram(host, encode(datagram));
  if (!part.repeat->done()) return false;
  end(host, part, nullptr);
  return true;
}

// It is over when all has come, or nothing more for as long as a packet can be late.
bool ReliableReceiver::look_at_unreliable(Host& host, Part& part) {
  const std::span<const std::uint8_t> chunks = bitmap(part);
  const auto here = static_cast<std::uint32_t>(std::count(chunks.begin(), chunks.end(), 1));
  if (here != part.seen) part.changed = host.now();
  part.seen = here;
  const bool late = part.changed != kNoTime && host.now() - part.changed >= options_.coding.rtt;
  if (here < chunks.size() && !late) return false;
  part.transfer->lost += chunks.size() - here;
  end(host, part, nullptr);
  return true;
}

// The bitmaps of all submessages, one behind the other.
void ReliableReceiver::gather(Part& part) {
  const Submessages& parts = part.shape.submessages;
  for (std::uint32_t i = 0; i < parts.count(); i++) {
    std::copy_n(part.receives[2 * i]->bitmap, parts.data(i), part.data.begin() + parts.first(i));
    std::copy_n(part.receives[2 * i + 1]->bitmap, parts.parity(i), part.parity.begin() + parts.first_parity(i));
  }
}

bool ReliableReceiver::look_at_coded(Host& host, Part& part) {
  gather(part);
  switch (part.coding->poll(part.data, part.parity, host.now())) {
    case CodingReceiver::Action::kAck:
      recover(part);
      qp_.send_datagram(host, encode({Datagram::Kind::kDone, part.number}));
      end(host, part, nullptr);
      return true;
    case CodingReceiver::Action::kFailed:
      end(host, part, "the global timeout has passed");
      return true;
    case CodingReceiver::Action::kNack: {
      nacks_++;
      part.asked = true;
      Datagram nack{Datagram::Kind::kNack, part.number};
      nack.failed.assign(part.coding->failed().begin(), part.coding->failed().end());
      qp_.send_datagram(host, encode(nack, part.shape.submessages.count()));
      return false;
    }
    case CodingReceiver::Action::kNone:
      break;
  }
  Datagram ack{Datagram::Kind::kAck, part.number};
  if (part.asked && part.repeat->poll(part.data, ack.ack)) qp_.send_datagram(host, encode(ack));
  return false;
}

void ReliableReceiver::recover(Part& part) {
  const Submessages& parts = part.shape.submessages;
  for (std::uint32_t i = 0; i < parts.count(); i++) {
    const std::span<const std::uint8_t> present = part.coding->present(i, part.data, part.parity);
    const auto missing = static_cast<std::uint64_t>(std::count(present.begin(), present.begin() + parts.data(i), 0));
    if (missing == 0) continue;
    recovered_ += missing;
    if (!part.coded.recover(i, present) && part.transfer->error.empty())
      part.transfer->error = "a submessage could not be recovered";  // the state machine says that it can
  }
}

void ReliableReceiver::skip(Host& host, Transfer& transfer) {
  const Rest rest = rest_of(qp_.options(), options_, transfer);
  transfer.cut = transfer.length;
  if (rest.parts == 0) return;
  give_up(host, {next_part_, next_part_ + rest.parts}, rest.messages);
  next_part_ += rest.parts;
}

void ReliableReceiver::give_up(Host& host, Parts parts, std::uint64_t messages) {
  if (failed_.size() == kFailedPartsMax) failed_.pop_front();
  failed_.push_back(parts);
  qp_.skip_receives(host, messages);
  has_given_up_ = true;
}

void ReliableReceiver::end(Host& host, Part& part, const char* error) {
  if (error) {
    if (part.transfer->error.empty()) part.transfer->error = error;
    give_up(host, {part.number, part.number + 1}, part.shape.messages() - part.receives.size());
  }
  for (Receive* receive : part.receives) qp_.complete(host, *receive);
  if (part.parity_key) qp_.backend().remove_memory(std::exchange(part.parity_key, 0));
  part.coding.reset();
  part.transfer->settled += part.shape.bytes;
}

void ReliableReceiver::on_datagram(Host& host, const Datagram& datagram) {
  if (datagram.kind != Datagram::Kind::kProbe || datagram.part >= next_part_) return;
  const auto at = std::ranges::find_if(active_, [&](const auto& part) { return part->number == datagram.part; });
  if (at == active_.end()) {
    // Of what was given up nothing is said: its sender's own time ends, too.
    if (std::ranges::any_of(failed_,
                            [&](const Parts& run) { return run.first <= datagram.part && datagram.part < run.end; }))
      return;
    qp_.send_datagram(host, encode({Datagram::Kind::kDone, datagram.part}));
    return;
  }
  Part& part = **at;
  if (part.receives.size() < part.shape.messages()) return;
  if (part.coding && !part.asked) return part.coding->hasten(host.now());
  Datagram ack{Datagram::Kind::kAck, part.number};
  part.repeat->repeat(bitmap(part), ack.ack);
  qp_.send_datagram(host, encode(ack));
}

void ReliableReceiver::stop(Host& host) {
  host.cancel_timer(timer_);
  for (const auto& part : active_)
    if (part->parity_key) qp_.backend().remove_memory(part->parity_key);
  active_.clear();
  waiting_.clear();
}

void ReliableReceiver::arm(Host& host) {
  if (armed_ || (active_.empty() && !has_given_up_ && host.now() >= hold_until_)) return;
  armed_ = true;
  qp_.backend().arm(host, timer_, host.now() + options_.poll, timer_owner_);
}

}  // namespace rocebox::sdr
