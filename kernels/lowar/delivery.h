// SPDX-License-Identifier: BSD-3-Clause
// In-order delivery: the way of packets through a stream's objects to the host. The coding units and the reordering
// buffer of one direction are here.
#pragma once
#include "kernels/lowar/coding_units.h"
#include "kernels/lowar/config.h"
#include "kernels/lowar/counters.h"
#include "kernels/lowar/rebuilder.h"
#include "kernels/lowar/received_stream.h"
#include "kernels/lowar/reordering_buffer.h"
#include "kernels/lowar/stream_table.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::lowar {

/// Where packets leave: behind a packet of a batch, or from a timer.
struct Outlet {
  Context& context;
  Batch* batch;  ///< null: a timer's
  unsigned slot;
  Port host;
  void emit(PacketPtr packet) { context.emit(std::move(packet), host, slot); }
};

/// Each call leaves the stream so that nothing waits that could leave, and a timer stands for the rest, where it says
/// that it releases.
class Delivery {
 public:
  using Stream = ReceivedStream;
  using Streams = StreamTable<Stream>;

  Delivery(const Config& config, DecodeCounters& count, Streams& streams);

  /// What the packet will be XORed with, if it comes in order.
  roce::Ahead unit_ahead(const Stream& stream, Packet packet) const {
    if (!stream.order.keeps_order() || !stream.block.aligned()) return {};
    return stream.block.unit_ahead(units_, packet, psn_of(packet));
  }
  /// Lets go of an idle stream's units. False: something of it waits, which a timer is about to let go.
  bool retire(Stream& stream);

  // Of the data packet, ACK or NAK in the outlet's slot.
  /// Its PSN lies at or ahead of the expected one: it leaves, or waits for what is lost before it. Releases.
  void arrive(Outlet& outlet, Stream& stream, Packet packet, bool usable);
  /// Its PSN lies so far ahead that the sequence has begun anew there: it leaves behind all that waits.
  void begin_at(Outlet& outlet, Stream& stream, Packet packet, bool usable);
  /// Its PSN lies before the expected one: it leaves behind all that waits. `restart`: that leaves now.
  void duplicate(Outlet& outlet, Stream& stream, bool restart);
  /// It takes no PSN, and leaves behind all up to its own. Releases.
  void acknowledge(Outlet& outlet, Stream& stream, Packet packet);
  /// Nothing of the stream is kept back: the sequence follows its packets, and gaps between PSNs are losses.
  void follow_uncoded(Stream& stream, Packet packet);

  // Of LoWAR's packets.
  /// Uses the repair packet in the outlet's slot, keeps it or drops it. Releases.
  void repair(Outlet& outlet, Stream& stream, Packet packet, const RepairHeader& header);
  /// What is missing before `psn` is expected no more, and was not lost on this link as far as one can know.
  void continue_at(Outlet& outlet, Stream& stream, std::uint32_t psn);
  /// All that waits leaves, and what is missing before it is given up.
  void give_up_all(Outlet& outlet, Stream& stream);
  /// The sequence goes on at `psn`, having begun at `began`; where blocks begin is to be learned again.
  void restart(Stream& stream, std::uint32_t psn, std::uint32_t began);
  /// The sender codes no more: nothing is kept back, and no unit.
  void end_coding(Stream& stream);
  /// What can leave and what has waited for long enough leaves, and a timer stands for the rest. `arrived`: all that
  /// has changed is that the packet of this PSN has come.
  void release(Outlet& outlet, Stream& stream, std::uint32_t arrived = kNoPsn);
  /// The same, for the stream of a timer: perhaps too early, as what it was for has left, or the stream with it.
  void release(Outlet& outlet, const Timer& timer);

  void reserve_timers(Context& context) const { context.reserve_timers(timers_.size()); }

 private:
  // delivery.cc: packets to the host, or into the buffer.
  bool fits(Packet packet) const { return transport_bytes(packet) <= config_.transport_bytes_max(); }
  bool may_leave(const Stream& stream, Packet packet, std::uint32_t psn) const;
  void hand_over(Nanos now, Stream& stream, Packet packet, bool usable, bool rebuilt = false);
  void retire_for_unit(Nanos now, const Stream& stream);
  void wait(Outlet& outlet, Stream& stream, Packet packet, bool usable);
  void wait_where_full(Outlet& outlet, Stream& stream, Packet packet, bool usable);
  void make_room(Outlet& outlet, Stream& stream);
  void hold(Stream& stream, PacketPtr packet, std::uint32_t psn, Nanos now, ReorderingBuffer::Kind kind);

  // delivery_release.cc: what leaves when, and what is given up.
  Nanos patience(const Stream& stream) const;
  void drain(Outlet& outlet, Stream& stream);
  bool is_unrepairable(const Stream& stream) const;
  void release_ready(Outlet& outlet, Stream& stream, std::uint32_t arrived = kNoPsn);
  void release_unrepairable(Outlet& outlet, Stream& stream, const RepairHeader& header);
  void give_up(Stream& stream, std::uint32_t psn, std::uint32_t lost);
  void give_up_before(Stream& stream, Packet packet, std::uint32_t psn);
  void give_up_block(Outlet& outlet, Stream& stream);
  void give_up_next(Outlet& outlet, Stream& stream);
  void retry_repairs(Outlet& outlet, Stream& stream, std::uint32_t arrived = kNoPsn);
  void drop_repairs(Context& context, Stream& stream);
  RepairOutcome try_repair(Outlet& outlet, Stream& stream, Packet packet, const RepairHeader& header);
  RepairOutcome accept(Outlet& outlet, Stream& stream, PacketPtr rebuilt);
  Counter& reason(RepairOutcome outcome);

  const Config& config_;
  DecodeCounters& count_;
  Streams& streams_;
  CodingUnits units_;
  ReorderingBuffer buffer_;
  Rebuilder rebuilder_;
  flows::ZeroedArray<Timer> timers_;  // by stream: until what waits has done so for long enough
};

// The packet is handed over now: it goes into its unit, and the next one is expected.
inline void Delivery::hand_over(Nanos now, Stream& stream, Packet packet, bool usable, bool rebuilt) {
  const std::uint32_t psn = psn_of(packet);
  if (rebuilt)
    stream.count_lost(1);
  else
    stream.adaptation.came();
  stream.block.enter(units_, psn, roce::opcode_info(packet).has(roce::kStartsMessage));
  if (usable && units_.all_bound() && stream.block.needs_unit(psn)) retire_for_unit(now, stream);
  if (!stream.block.add(units_, packet, psn, usable)) count_.units_full.add();
  if (config_.adapt) stream.adaptation.count_message(packet, psn);
  stream.sequence.advance(packet, psn);
  stream.block.leave(units_, psn, stream.sequence.message_ended());
}

}  // namespace rocebox::lowar
