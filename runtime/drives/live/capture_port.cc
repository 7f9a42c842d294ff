// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/capture_port.h"

#include <fmt/format.h>
#include <rte_ring.h>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

std::string text_of(const config::CaptureBinding& binding) {
  std::string text = "pcap";
  if (!binding.in.empty()) text += fmt::format(" in {}", fmt::join(binding.in, ", "));
  if (!binding.out.empty()) text += fmt::format("{} out {}", binding.in.empty() ? "" : ",", binding.out);
  return text;
}

void free_all(rte_ring* ring, Counter* count) {
  void* packet = nullptr;
  while (ring && rte_ring_sc_dequeue(ring, &packet) == 0) {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    if (count) count->add();
  }
}

}  // namespace

CapturePort::CapturePort(const config::CaptureBinding& binding, const std::string& by, unsigned serial,
                         const Clock& clock)
    : LivePort({binding.port, {}, binding.place, {}}, by), clock_(clock), text_(text_of(binding)), pace_(binding.pace) {
  auto make = [&](const char* way, unsigned packets) {
    rte_ring* ring = rte_ring_create(fmt::format("rb_capture_{}_{}", way, serial).c_str(), packets, SOCKET_ID_ANY,
                                     RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!ring) refuse("no memory for its queue; lower `pool:`");
    return ring;
  };
  if (!binding.in.empty()) in_ = make("in", kCaptureAheadPackets);
  if (!binding.out.empty()) out_ = make("out", kCaptureBehindPackets);
}

CapturePort::~CapturePort() {
  discard();
  free_all(out_, nullptr);
  rte_ring_free(in_);
  rte_ring_free(out_);
}

std::uint64_t CapturePort::packets_needed(unsigned) const {
  return (in_ ? kCaptureAheadPackets : 0) + (out_ ? kCaptureBehindPackets : 0) + 8ull * kBatchMax;
}

bool CapturePort::offer(Packet packet) {
  offered_.add();  // before it can be received, so that all_received() never holds too early
  if (rte_ring_sp_enqueue(in_, packet.mbuf()) == 0) return true;
  offered_.add(~std::uint64_t{0});
  return false;
}

// Whether there is a packet to look at.
bool CapturePort::look_ahead() {
  if (ahead_at_ < ahead_count_) return true;
  if (!in_) return false;
  ahead_at_ = 0;
  ahead_count_ = rte_ring_sc_dequeue_burst(in_, reinterpret_cast<void**>(ahead_.data()), kBatchMax, nullptr);
  return ahead_count_ > 0;
}

unsigned CapturePort::receive(unsigned, std::span<Packet> room) {
  if (!look_ahead()) return 0;
  const Nanos now = clock_.now();
  Nanos start = start_->load(std::memory_order_relaxed);
  if (start == 0 && start_->compare_exchange_strong(start, now, std::memory_order_relaxed)) start = now;
  unsigned count = 0;
  while (count < room.size() && look_ahead()) {
    const Packet packet = ahead_[ahead_at_];
    if (pace_ != 0) {
      const Nanos due = start + packet.meta().arrival;
      if (due > now) break;
      late_.add(now - due);
    }
    ahead_at_++;
    room[count++] = packet;
  }
  received_.add(count);
  return count;
}

Nanos CapturePort::next_due() const {
  if (ahead_at_ == ahead_count_ || pace_ == 0) return INT64_MAX;
  return start_->load(std::memory_order_relaxed) + ahead_[ahead_at_].meta().arrival;
}

LivePort::Sent CapturePort::send(unsigned, std::span<Packet> packets) {
  const auto count = static_cast<unsigned>(packets.size());
  if (!out_) {  // what leaves is counted only
    rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(packets.data()), count);
    return {count, 0};
  }
  const Nanos now = clock_.now();
  for (Packet packet : packets) packet.meta().arrival = now;
  return {rte_ring_sp_enqueue_burst(out_, reinterpret_cast<void* const*>(packets.data()), count, nullptr), 0};
}

Packet CapturePort::next_sent() {
  void* packet = nullptr;
  if (!out_ || rte_ring_sc_dequeue(out_, &packet) != 0) return {};
  return Packet(static_cast<rte_mbuf*>(packet));
}

void CapturePort::discard() {
  for (; ahead_at_ < ahead_count_; ahead_at_++) {
    rte_pktmbuf_free(ahead_[ahead_at_].mbuf());
    unsent_.add();
  }
  free_all(in_, &unsent_);
}

void CapturePort::add_to(Json& row) const {
  if (!in_) return;
  row["rx_unsent"] = unsent_.read();
  if (pace_ == 0) return;
  Histogram late;
  late.add(late_);  // which the shard goes on writing
  row["pacing_packets"] = late.count();
  add_percentiles(row, "pacing_", late);
  row["pacing_max_ns"] = late.max();
}

}  // namespace rocebox
