// SPDX-License-Identifier: BSD-3-Clause
// PsnTracker: what became of each PSN of one stream: seen, skipped, repeated, sent again, late; and of
// its messages. Definitions: README.md.
#pragma once
#include "kernels/inspect/psn_stream.h"
#include "runtime/telemetry/histogram.h"

namespace rocebox::inspect {

/// The rules and the memory's size; the streams and their rings (`window` entries of zeroed memory)
/// are the caller's.
class PsnTracker {
 public:
  using Entry = PsnEntry;

  /// `sparse`: the stream has PSNs of a greater space (READ responses), so a jump at the start of a
  /// message is no loss when the message before was complete. `window` is a power of two.
  PsnTracker(std::uint32_t window, Nanos retransmit_after, bool sparse)
      : window_(window), retransmit_after_(retransmit_after), sparse_(sparse) {}
  void set_retransmit_after(Nanos after) { retransmit_after_ = after; }

  PsnClass add(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const;

  /// Counts the packet when it is the one that was awaited and nothing else is: what add() does in this case, which is
  /// nearly all packets, at a fraction of its cost. False, and nothing done, when it is another packet.
  bool add_next(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const;

  /// The READ request with the stream's highest PSN, counted with one PSN, takes `width`.
  void widen(PsnStream& stream, Entry* ring, std::uint32_t width) const;

  /// A response with this PSN: true and the time since the request when this is the first response and
  /// the request was seen exactly once until now (Karn's rule).
  bool responded(const PsnStream& stream, Entry* ring, std::uint32_t psn, Nanos now, Nanos& rtt) const;

  /// All requests up to the PSN `last` are acknowledged. Adds the time from each message's first packet to now.
  void acknowledge(PsnStream& stream, const Entry* ring, std::uint32_t last, Nanos now, Histogram& completion) const;

  /// The next packet begins the stream anew; counts go on.
  void begin_anew(PsnStream& stream, const Entry* ring) const;

  /// Takes the sizes of whole messages behind holes too, which are not awaited any more: for the report.
  void settle_sizes(PsnStream& stream, const Entry* ring) const { size_messages(stream, ring, true); }

  /// PSNs between first and last that were never seen.
  std::uint64_t missing(const PsnStream& stream) const {
    if (sparse_) return stream.holes - stream.holes_filled;
    return stream.missing_before + stream.span() - stream.unique;
  }

 private:
  Entry& at(Entry* ring, std::int64_t psn) const { return ring[static_cast<std::uint64_t>(psn) & (window_ - 1)]; }
  const Entry& at(const Entry* ring, std::int64_t psn) const {
    return ring[static_cast<std::uint64_t>(psn) & (window_ - 1)];
  }
  static std::int64_t unwrapped(const PsnStream& stream, std::uint32_t psn) {
    return stream.high + roce::psn_distance(psn, stream.high_psn());
  }
  std::int64_t low(const PsnStream& stream) const;
  Entry read(const PsnStream& stream, const Entry* ring, std::int64_t psn) const;
  void fill(Entry* ring, std::int64_t from, std::int64_t to, const Entry& value) const;
  void fill_new(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const;
  bool told(PsnStream& stream, const PsnPacket& packet) const;
  void start(PsnStream& stream, Entry* ring, const PsnPacket& packet) const;
  PsnClass place(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const;
  PsnClass advance(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const;
  PsnClass classify(PsnStream& stream, const Entry& entry, const PsnPacket& packet, const IdEvidence& evidence,
                    std::int64_t psn) const;
  bool is_sent_again(PsnStream& stream, const Entry& entry, const PsnPacket& packet, std::int64_t psn) const;
  PsnClass beyond(PsnStream& stream, Entry* ring, IdEvidence& evidence, std::int64_t psn,
                  const PsnPacket& packet) const;
  void give_up_run(PsnStream& stream) const;
  void respond(PsnStream& stream, std::int64_t psn, const PsnPacket& packet) const;
  void repeat(PsnStream& stream, Entry* ring, std::int64_t psn, PsnClass what, const PsnPacket& packet) const;
  void see_again(PsnStream& stream, Entry& entry, const PsnPacket& packet) const;
  void end_message(PsnStream& stream, Entry& entry, const PsnPacket& packet) const;
  void size_messages(PsnStream& stream, const Entry* ring, bool skip_holes) const;
  static void size_next(PsnStream& stream, const Entry& entry);
  static void see_id(PsnStream& stream, const PsnPacket& packet, bool newer, bool ahead);
  static Entry seen_by(const PsnPacket& packet);
  static std::uint16_t first_flags(const PsnPacket& packet);
  static bool newer_than(const PsnPacket& packet, const Entry& entry);

  std::uint32_t window_;
  Nanos retransmit_after_;
  bool sparse_;
};

}  // namespace rocebox::inspect
