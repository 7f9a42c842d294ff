// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/slot.h"

#include "kernels/allgather/host/communicator.h"
#include "kernels/allgather/host/rank.h"

namespace rocebox::allgather {

Slot::Slot(Communicator& communicator, unsigned number, std::uint32_t first, std::uint32_t stride)
    : communicator_(communicator), number_(number), next_(first), stride_(stride) {}

std::uint32_t Slot::immediate_of(std::uint32_t chunk) const {
  const ImmediateLayout& layout = communicator_.layout();
  return layout.encode({chunk, operation_.sequence & (layout.collectives() - 1),
                        operation_.sequence >> layout.collective_bits & (layout.generations() - 1)});
}

unsigned Slot::own_block() const { return operation_.root >= 0 ? 0 : communicator_.rank().number(); }

void Slot::start(const Operation& operation, const Buffer& buffer) {
  Rank& rank = communicator_.rank();
  if (rank.stops(StopAt::kStart)) return;
  const TeamOptions& options = communicator_.options();
  const unsigned blocks = operation.root >= 0 ? 1 : rank.team().ranks();
  operation_ = operation;
  next_ = operation.sequence + stride_;
  buffer_ = buffer;
  key_ = rank.registrations().get(buffer);
  parts_leaving_ = 0;
  began_ = met_ = whole_ = rank.host().now();
  reassembly_.emplace(Geometry(blocks, operation.block_bytes, options.chunk_bytes(), communicator_.subgroups()));
  CollectiveSetup setup{rank.number(), rank.team().ranks(), operation.root, operation.chains};
  collective_.emplace(setup, *reassembly_, *this);
  tag_ = communicator_.layout().tag(immediate_of(0));
  communicator_.set_active(*this, true);
  seen_progress_ = 0;
  seen_wait_ = End::kNone;
  if (communicator_.has_failed() || !key_) return fail(End::kConnection);
  open();
  arm_watchdog();
  const std::vector<Early> early = std::move(early_);
  early_.clear();
  for (const Early& one : early)
    if (!collective_->on_barrier(one.from, one.step)) rank.count.bad_messages++;
  collective_->start();
}

void Slot::open() {
  Rank& rank = communicator_.rank();
  const bool by_dpa = communicator_.options().receiver == Receiver::kDpa;
  const std::uint64_t team = by_dpa ? communicator_.begin_team(*this) : 0;
  for (unsigned i = 0; i < communicator_.subgroups(); i++) communicator_.subgroup(i).open(rank.host(), *this, team);
  if (by_dpa) rank.arm(poll_timer, communicator_, number_, Rank::TimerOf::kPoll, communicator_.options().poll);
}

void Slot::sync() {
  for (unsigned i = 0; i < communicator_.subgroups() && is_active(); i++) communicator_.subgroup(i).sync(*this);
}

// As long as nothing is missing that has to be fetched the host looks at nothing but its flag.
void Slot::on_poll() {
  if (!is_active()) return;
  if (communicator_.team_is_done(*this) || collective_->recovering()) sync();
  if (is_active())
    communicator_.rank().arm(poll_timer, communicator_, number_, Rank::TimerOf::kPoll, communicator_.options().poll);
}

bool Slot::on_message(const Link& from, const ControlMessage& message) {
  const auto sequence = static_cast<std::uint32_t>(message.sequence);
  communicator_.rank().team().advanced();
  if (is_active() && sequence == operation_.sequence) return deliver(from, message);
  // Whose next collective has begun before this rank's: of that nothing but the barrier comes.
  if (sequence != next_ || message.type != static_cast<std::uint8_t>(MessageType::kBarrier) ||
      early_.size() >= kBarrierStepsMax)
    return false;
  early_.push_back({from.peer(), static_cast<std::uint32_t>(message.argument)});
  return true;
}

bool Slot::deliver(const Link& from, const ControlMessage& message) {
  const auto argument = static_cast<std::uint32_t>(message.argument);
  const LinkTo by = from.to();
  switch (static_cast<MessageType>(message.type)) {
    case MessageType::kBarrier:
      return by == LinkTo::kBarrier && collective_->on_barrier(from.peer(), argument);
    case MessageType::kActivate:
      return by == LinkTo::kLeft && collective_->on_activation();
    case MessageType::kRequest:
      return by == LinkTo::kRight && collective_->on_request(argument);
    case MessageType::kAcknowledge:
      left_address_ = static_cast<std::uint64_t>(message.address);
      left_key_ = static_cast<std::uint32_t>(message.rkey);
      return by == LinkTo::kLeft && collective_->on_acknowledge(argument);
    case MessageType::kFinal:
      return by == LinkTo::kRight && collective_->on_final();
    case MessageType::kMember:
    case MessageType::kGoodbye:
      break;  // of ranks in processes of their own, and no collective's
  }
  return false;
}

void Slot::on_part_sent() {
  if (is_active() && --parts_leaving_ == 0) collective_->on_multicast_sent();
}

void Slot::on_read(const Link::Read& read) {
  if (!is_active()) return;
  TeamCounters& count = communicator_.rank().count;
  count.reads++;
  count.bytes_read += read.bytes;
  sync();
  for (unsigned i = 0; i < communicator_.subgroups(); i++)
    communicator_.subgroup(i).mark(*this, read.block, read.index, read.count);
  if (reassembly_->fill(read.block, read.index, read.count)) collective_->on_whole(read.block);
  collective_->end_write();
}

void Slot::on_cutoff_timer() {
  if (is_active()) sync();
  if (!is_active()) return;
  collective_->on_cutoff();
  arm_watchdog();
  if (is_active() && collective_->recovering()) communicator_.rank().stops(StopAt::kRecovery);
}

// What others owe is waited for as long as something comes.
void Slot::on_watchdog() {
  if (!is_active()) return;
  const End wait = collective_->waits_for();
  if (wait != End::kNone && wait == seen_wait_ && collective_->progress() == seen_progress_)
    return communicator_.fail(wait);
  arm_watchdog();
}

void Slot::arm_watchdog() {
  Rank& rank = communicator_.rank();
  seen_wait_ = collective_->waits_for();
  seen_progress_ = collective_->progress();
  rank.arm(watchdog, communicator_, number_, Rank::TimerOf::kWatchdog, communicator_.options().timeout);
}

void Slot::fail(End end) {
  if (key_) communicator_.rank().registrations().drop(key_);
  key_ = 0;
  collective_->fail(end);
}

void Slot::send(LinkTo to, unsigned peer, MessageType type, std::uint32_t argument) {
  Link::Work work;
  work.message.type = static_cast<std::uint8_t>(type);
  work.message.communicator = static_cast<std::uint16_t>(communicator_.number());
  work.message.sequence = operation_.sequence;
  work.message.argument = argument;
  if (type == MessageType::kAcknowledge) {
    work.message.address = buffer_.address + geometry().offset_of(argument, 0);
    work.message.rkey = key_;
  }
  Rank& rank = communicator_.rank();
  communicator_.link(to, peer).post(rank.host(), work, rank.team().has_bytes());
}

void Slot::send_barrier(unsigned to, unsigned step) {
  send(LinkTo::kBarrier, to, MessageType::kBarrier, step);
  communicator_.rank().stops(StopAt::kBarrier);
}

void Slot::arm_cutoff() {
  Rank& rank = communicator_.rank();
  const TeamOptions& options = communicator_.options();
  met_ = rank.host().now();
  const std::uint64_t rate = options.link_rate ? options.link_rate : rank.host().config().rate;
  const Nanos after = options.cutoff.value_or(cutoff_nanos(geometry().bytes(), rate, options.alpha));
  rank.arm(cutoff_timer, communicator_, number_, Rank::TimerOf::kCutoff, after);
}

void Slot::begin_multicast() {
  parts_leaving_ = communicator_.subgroups();
  Rank& rank = communicator_.rank();
  for (unsigned i = 0; i < communicator_.subgroups(); i++) communicator_.subgroup(i).multicast(rank.host(), *this);
  rank.stops(StopAt::kSending);
}

void Slot::send_activation() { send(LinkTo::kRight, communicator_.right(), MessageType::kActivate, 0); }

void Slot::send_request(unsigned block) {
  communicator_.rank().count.requests++;
  send(LinkTo::kLeft, communicator_.left(), MessageType::kRequest, block);
}

void Slot::send_acknowledge(unsigned block) {
  send(LinkTo::kRight, communicator_.right(), MessageType::kAcknowledge, block);
}

void Slot::read(unsigned block) {
  Rank& rank = communicator_.rank();
  Link& left = communicator_.link(LinkTo::kLeft, communicator_.left());
  reassembly_->each_missing(block, [&](std::uint32_t index, std::uint32_t count) {
    Link::Work work;
    work.is_read = true;
    Link::Read& read = work.read;
    read.address = buffer_.address + geometry().offset_of(block, index);
    read.remote_address = left_address_ + geometry().offset_of(0, index);
    read.bytes = static_cast<std::uint32_t>(geometry().bytes_of(index, count));
    read.key = key_;
    read.remote_key = left_key_;
    read.slot = number_;
    read.block = block;
    read.index = index;
    read.count = count;
    collective_->begin_write();
    left.post(rank.host(), work, rank.team().has_bytes());
  });
}

void Slot::send_final() {
  whole_ = communicator_.rank().host().now();
  if (communicator_.rank().stops(StopAt::kHandshake)) return;
  send(LinkTo::kLeft, communicator_.left(), MessageType::kFinal, 0);
}

void Slot::release(End end) {
  Rank& rank = communicator_.rank();
  rank.host().cancel_timer(cutoff_timer);
  rank.host().cancel_timer(watchdog);
  rank.host().cancel_timer(poll_timer);
  for (unsigned i = 0; i < communicator_.subgroups(); i++) communicator_.subgroup(i).close(rank.host(), *this);
  communicator_.set_active(*this, false);
  last_end_ = end;
  if (end == End::kWhole) {
    rank.count.barrier_ns += static_cast<std::uint64_t>(met_ - began_);
    rank.count.data_ns += static_cast<std::uint64_t>(whole_ - met_);
    rank.count.handshake_ns += static_cast<std::uint64_t>(rank.host().now() - whole_);
  }
  (end == End::kWhole ? rank.count.released_whole : rank.count.released_failed)++;
  if (key_) rank.registrations().put(key_);
  key_ = 0;
  rank.team().advanced();
  rank.team().application().on_released(rank.number(), operation_, end, rank.host().now());
}

}  // namespace rocebox::allgather
