// SPDX-License-Identifier: BSD-3-Clause
// What a queue pair of SDR sends: one Write with immediate a packet, in batches on one channel after another.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/sdr/backend/queue_pair.h"

namespace rocebox::sdr {

using nic_model::Host;

namespace {

std::uint32_t all_fragments(const ImmediateLayout& layout) {
  return layout.fragments() == 32 ? ~0u : (1u << layout.fragments()) - 1;
}

// Which fragments go with `packets` packets from `first` on.
std::uint32_t fragments_of(const ImmediateLayout& layout, std::uint32_t first, std::uint32_t packets) {
  const unsigned count = layout.fragments();
  if (packets >= count) return all_fragments(layout);
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < packets; i++) bits |= 1u << (first + i) % count;
  return bits;
}

}  // namespace

Status QueuePair::start_send(const std::uint32_t* user, Send*& made) {
  if (!connected_ || broken_ || (user && options_.layout.fragments() == 0)) return Status::kError;
  if (free_sends_.empty()) return Status::kRetry;
  made = free_sends_.back();
  free_sends_.pop_back();
  made->begin(next_send_++, user);
  return Status::kSuccess;
}

Status QueuePair::fits(std::uint64_t number, std::uint64_t address, std::uint64_t length, std::uint32_t key,
                       std::uint64_t first_chunk) const {
  if (!connected_ || broken_ || length == 0 || length > options_.message_bytes || first_chunk >= options_.chunks_max())
    return Status::kError;
  const std::uint64_t most = number < clear_ ? peer_length(number) : options_.message_bytes;
  if (first_chunk * options_.chunk_bytes() + length > most || !backend_.has_memory(key, address, length, false))
    return Status::kError;
  return waiting_.size() + ready_.size() < kSegmentsMax ? Status::kSuccess : Status::kRetry;
}

Status QueuePair::add(Host& host, Send& send, std::uint64_t address, std::uint32_t length, std::uint32_t key,
                      std::uint64_t first_chunk) {
  if (send.ended) return Status::kError;
  if (const Status status = fits(send.number, address, length, key, first_chunk); status != Status::kSuccess)
    return status;
  Segment segment{&send,
                  address,
                  length,
                  key,
                  static_cast<std::uint32_t>(first_chunk) * options_.packets_a_chunk,
                  (length + options_.mtu - 1) / options_.mtu,
                  0,
                  0};
  if (send.has_user) {
    const std::uint32_t come = fragments_of(options_.layout, segment.first_packet, segment.packets);
    send.fragments |= come;
    // What is repeated carries the whole immediate, or its loss could not be made good.
    if (segment.first_packet < send.highest) segment.empties = all_fragments(options_.layout) & ~come;
  }
  if (!queue(host, segment)) return Status::kRetry;
  send.highest = std::max(send.highest, segment.first_packet + segment.packets);
  return send.failed ? Status::kError : Status::kSuccess;
}

void QueuePair::end_send(Host& host, Send& send) {
  if (send.ended) return;
  const std::uint32_t missing = send.has_user ? all_fragments(options_.layout) & ~send.fragments : 0;
  if (missing) {
    Segment segment{&send, 0, 0, 0, 0, 0, 0, missing};
    send.fragments |= missing;
    if (!queue(host, segment)) send.failed = true;
  }
  send.ended = true;
}

void QueuePair::release(Send& send) { free_sends_.push_back(&send); }

bool QueuePair::queue(Host& host, const Segment& segment) {
  if (waiting_.size() + ready_.size() >= kSegmentsMax) return false;
  const auto writes = segment.packets + static_cast<std::uint32_t>(std::popcount(segment.empties));
  Send& send = *segment.send;
  send.outstanding += writes;
  backlog_ += writes;
  (send.number >= clear_ ? waiting_ : ready_).push_back(segment);
  pump(host);
  return true;
}

void QueuePair::fail(Send& send, std::uint32_t writes) {
  send.failed = true;
  send.left(writes);
  backlog_ -= writes;
}

QueuePair::Transport& QueuePair::transport_of(const Send& send, std::uint32_t packet) {
  const std::uint32_t channel = packet / options_.send_batch % options_.channels;
  return transports_[options_.generation_of(send.number) * options_.channels + channel];
}

void QueuePair::pump(Host& host) {
  while (!ready_.empty()) {
    Segment& segment = ready_.front();
    if (segment.done == segment.packets && segment.empties == 0)
      ready_.pop_front();
    else if (!(segment.done < segment.packets ? post_batch(host, segment) : post_empties(host, segment)))
      return;
  }
}

// Packets up to the end of a batch. False: there is no room.
bool QueuePair::post_batch(Host& host, Segment& segment) {
  const std::uint32_t first = segment.first_packet + segment.done;
  Transport& to = transport_of(*segment.send, first);
  const std::uint32_t count =
      std::min(options_.send_batch - first % options_.send_batch, segment.packets - segment.done);
  if (to.failed) return fail(*segment.send, count), segment.done += count, true;
  const std::uint32_t left = segment.length - segment.done * options_.mtu;
  if (!post_writes(host, to, segment, first, count, std::min(count * options_.mtu, left))) return false;
  segment.done += count;
  return true;
}

bool QueuePair::post_empties(Host& host, Segment& segment) {
  const auto packet = static_cast<std::uint32_t>(std::countr_zero(segment.empties));
  Transport& to = transport_of(*segment.send, packet);
  if (to.failed)
    fail(*segment.send, 1);
  else if (!post_writes(host, to, segment, packet, 1, 0))
    return false;
  segment.empties &= segment.empties - 1;
  return true;
}

bool QueuePair::post_writes(Host& host, Transport& to, const Segment& segment, std::uint32_t packet,
                            std::uint32_t count, std::uint32_t bytes) {
  if (to.room() < count) return false;
  const auto index = static_cast<std::uint32_t>(&to - transports_.data());
  const std::uint16_t first = to.posted;
  // What has left may be said while it is posted, so first it is noted whose it is.
  for (std::uint32_t i = 0; i < count; i++)
    to.owners[static_cast<std::uint16_t>(first + i) & ((1u << kLogSendBlocks) - 1)] = segment.send;
  if (backend_.senders() != 0) {
    const sdr_order what = order_of(to, segment, packet, count, bytes);
    to.posted = static_cast<std::uint16_t>(first + count);
    if (backend_.order(host, *this, index % options_.channels, what)) return true;
    to.posted = first;
    return false;
  }
  for (std::uint32_t i = 0; i < count; i++) {
    const std::uint32_t at = i * options_.mtu;
    write(to, segment, packet + i, bytes ? std::min(options_.mtu, bytes - at) : 0, i + 1 == count);
  }
  host.ring_send_doorbell(*to.at.qp, to.posted);
  return true;
}

sdr_order QueuePair::order_of(const Transport& to, const Segment& segment, std::uint32_t packet, std::uint32_t count,
                              std::uint32_t bytes) const {
  const Send& send = *segment.send;
  sdr_order o{};
  o.send_ring = to.at.send_ring;
  o.qp_number = to.at.number, o.log_blocks = kLogSendBlocks, o.first_wqe = to.posted;
  o.packets = count, o.first_packet = packet, o.bytes = bytes, o.mtu = options_.mtu;
  o.address = segment.address + (bytes ? std::uint64_t{packet - segment.first_packet} * options_.mtu : 0);
  o.key = segment.key;
  o.remote_address = options_.entry_of(send.number) * options_.message_bytes;
  o.remote_key = peer_.root_keys[options_.root_of(send.number)];
  o.immediate = options_.layout.pack({options_.slot_of(send.number), 0, 0});
  o.fragment_bits = options_.layout.fragment_bits, o.has_user = send.has_user, o.user = send.user;
  return o;
}

// A WQE in mlx5's format, in one block.
void QueuePair::write(Transport& to, const Segment& segment, std::uint32_t packet, std::uint32_t bytes, bool last) {
  const Send& send = *segment.send;
  const std::uint32_t block = to.posted & ((1u << kLogSendBlocks) - 1);
  struct {
    mlx5_wqe_ctrl_seg control;
    mlx5_wqe_raddr_seg remote;
    mlx5_wqe_data_seg data;
  } wqe{};
  const ImmediateLayout& layout = options_.layout;
  const std::uint32_t fragment = send.has_user ? layout.fragment_of(send.user, packet) : 0;
  wqe.control.opmod_idx_opcode = htobe32(std::uint32_t{to.posted} << 8 | MLX5_OPCODE_RDMA_WRITE_IMM);
  wqe.control.qpn_ds = htobe32(to.at.number << 8 | (bytes ? 3 : 2));
  wqe.control.fm_ce_se = last ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
  wqe.control.imm = htobe32(layout.pack({options_.slot_of(send.number), packet, fragment}));
  const std::uint64_t within = bytes ? std::uint64_t{packet} * options_.mtu : 0;
  wqe.remote.raddr = htobe64(options_.entry_of(send.number) * options_.message_bytes + within);
  wqe.remote.rkey = htobe32(peer_.root_keys[options_.root_of(send.number)]);
  const std::uint64_t from = segment.address + std::uint64_t{packet - segment.first_packet} * options_.mtu;
  if (bytes) wqe.data = {htobe32(bytes), htobe32(segment.key), htobe64(from)};
  std::memcpy(backend_.device<std::uint8_t>(to.at.send_ring) + std::size_t{block} * MLX5_SEND_WQE_BB, &wqe, sizeof wqe);
  to.posted++;
}

void QueuePair::on_completion(Host& host, nic_model::CompletionQueue& cq) {
  if (&cq == send_cq_) {
    on_left(host);
    host.arm(*send_cq_);
    return;
  }
  const bool good = control_.on_completion(
      host, [&](const ClearToSend& clear) { on_clear(host, clear); },
      [&](std::span<const std::uint8_t> bytes) {
        if (listener_) listener_->on_datagram(host, bytes);
      });
  broken_ = broken_ || !good;
  tell_clear(host);
  host.arm(control_.cq());
}

// A completion is that of all Writes of its transport before it, too.
void QueuePair::on_left(Host& host) {
  for (const mlx5_cqe64* cqe; (cqe = send_cq_->peek()); send_cq_->advance()) {
    const bool failed = cqe->op_own >> 4 == MLX5_CQE_REQ_ERR;
    const std::uint32_t index = (be32toh(cqe->sop_drop_qpn) & 0xFFFFFF) - backend_.first_qpn_;
    if (index >= by_qpn_.size() || by_qpn_[index] == UINT32_MAX) continue;
    Transport& one = transports_[by_qpn_[index]];
    one.failed = one.failed || failed;
    broken_ = broken_ || failed;
    const auto end = static_cast<std::uint16_t>(be16toh(cqe->wqe_counter) + 1);
    for (; one.left != end && one.left != one.posted; one.left++) {
      Send& send = *one.owners[one.left & ((1u << kLogSendBlocks) - 1)];
      if (failed) send.failed = true;
      send.left(1);
      backlog_--;
    }
  }
  pump(host);
  if (listener_) listener_->on_sent(host);
}

void QueuePair::on_clear(Host& host, const ClearToSend& clear) {
  if (clear.number < clear_) return;  // a reliable connection says each once, in order
  // Those between were skipped.
  clear_ = std::max(clear_, clear.number - std::min<std::uint64_t>(clear.number, options_.slots));
  while (clear_ < clear.number) peer_lengths_[options_.slot_of(clear_++)] = 0;
  peer_lengths_[options_.slot_of(clear_++)] = clear.length;
  std::erase_if(waiting_, [&](const Segment& segment) {
    if (segment.send->number >= clear_) return false;
    const auto writes = segment.packets + static_cast<std::uint32_t>(std::popcount(segment.empties));
    if (!may_have_buffer(segment.send->number) ||
        std::uint64_t{segment.first_packet} * options_.mtu + segment.length > peer_length(segment.send->number))
      fail(*segment.send, writes);
    else
      ready_.push_back(segment);
    return true;
  });
  pump(host);
  if (listener_) listener_->on_clear_to_send(host);
}

void QueuePair::tell_clear(Host& host) {
  const auto has_buffer = [&](std::uint64_t number) { return receives_[options_.slot_of(number)].number == number; };
  while (connected_ && told_ < next_receive_) {
    ClearToSend clear{told_, receives_[options_.slot_of(told_)].length};
    if (!has_buffer(told_)) {  // of a run that was skipped the last one is told, without a length
      while (clear.number + 1 < next_receive_ && !has_buffer(clear.number + 1)) clear.number++;
      clear.length = 0;
    }
    if (!control_.send_clear(host, clear)) return;
    told_ = clear.number + 1;
  }
}

bool QueuePair::send_datagram(Host& host, std::span<const std::uint8_t> bytes) {
  return connected_ && control_.send_datagram(host, bytes);
}

}  // namespace rocebox::sdr
