// SPDX-License-Identifier: BSD-3-Clause
// PsnTracker: what became of each PSN of one stream: seen, skipped, repeated, sent again, late.
// Definitions: README.md.
#pragma once
#include <cstdint>

#include "runtime/packet/packet.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {

/// Whether the IPv4 identification of a flow tells new emissions from copies: senders such as Linux
/// step it for each packet that they emit. Told from in-order packets alone.
struct IdEvidence {
  std::uint16_t compared = 0, increased = 0;
  void note(bool newer) {
    if (compared == 1024) compared /= 2, increased /= 2;  // so that a change of habit is noticed
    compared++;
    increased = static_cast<std::uint16_t>(increased + newer);
  }
  bool informative() const { return compared >= 3 && increased * 8 >= compared * 7; }
};

/// What a packet is to its stream.
enum class PsnClass : std::uint8_t {
  kFirst,           ///< the first of the stream
  kInOrder,         ///< above the highest PSN seen; what it skips are holes
  kReset,           ///< so far above that the stream begins anew
  kDuplicate,       ///< a copy that the network made
  kRetransmission,  ///< sent again by the sender
  kOutOfOrder,      ///< overtaken by a later one
  kBeyondWindow,    ///< older than the memory
};

/// A packet of a stream.
struct PsnPacket {
  Nanos now = 0;
  std::uint32_t psn = 0;
  std::uint32_t width = 1;    ///< PSNs that it takes: more than one for a READ request
  std::uint32_t payload = 0;  ///< bytes, for the goodput
  std::uint16_t id = 0;       ///< IPv4 identification
  bool has_id = false;
  bool starts = false;   ///< FIRST or ONLY
  bool ends = false;     ///< LAST, ONLY, READ request, atomic: its last PSN ends a message
  bool read = false;     ///< READ request
  bool reliable = true;  ///< the service has retransmissions
};

/// One PSN space of a flow. PSNs are kept unwrapped: bits 24 and up count the wraps since the
/// stream's first PSN.
struct PsnStream {
  // The first cache line is all that a packet in order needs, beside its ring entry.
  std::int64_t first = 0, high = 0;                ///< lowest and highest PSN since the last reset
  std::int64_t ring_low = 0;                       ///< entries below were not written since then
  Nanos base = 0;                                  ///< origin of the ring's times: the first packet
  std::uint64_t unique = 0;                        ///< distinct PSNs since the last reset
  std::uint64_t unique_payload = 0;                ///< bytes of packets whose PSN was new
  std::uint32_t old_next = 0;                      ///< PSN behind the last packet that was below the highest
  std::uint32_t asked_first = 0, asked_count = 0;  ///< PSNs that the peer asked to have again
  std::uint16_t newest_id = 0;
  bool used : 1 = false;
  bool complete : 1 = false;  ///< the packet with the highest PSN ended its message
  bool old_was_sent_again : 1 = false;
  std::uint8_t stale_ids : 5 = 0;  ///< in-order packets in a row whose ID was not newer
  // Counters.
  std::uint64_t messages = 0;
  std::uint64_t duplicates = 0, retransmissions = 0, out_of_order = 0, beyond_window = 0, resets = 0;
  std::uint64_t holes = 0;              ///< PSNs skipped when a higher one came
  std::uint64_t holes_filled = 0;       ///< ... that came after all, in any way
  std::uint64_t holes_filled_late = 0;  ///< ... by a packet that was overtaken
  std::uint64_t degree_sum = 0, degree_max = 0;
  std::uint64_t unique_before = 0, missing_before = 0;  ///< before the last reset

  std::uint64_t lost() const { return holes - holes_filled_late; }
  std::uint64_t unique_total() const { return unique_before + unique; }
  /// PSNs from the lowest to the highest since the last reset.
  std::uint64_t span() const { return used ? static_cast<std::uint64_t>(high - first + 1) : 0; }
};

/// The rules and the memory's size; the streams and their rings (`window` entries of zeroed memory)
/// are the caller's.
class PsnTracker {
 public:
  using Entry = std::uint64_t;

  /// `sparse`: the stream has PSNs of a greater space (READ responses), so a jump at the start of a
  /// message is no loss when the message before was complete. `window` is a power of two.
  PsnTracker(std::uint32_t window, Nanos retransmit_after, bool sparse)
      : window_(window), retransmit_after_(retransmit_after), sparse_(sparse) {}

  PsnClass add(PsnStream& stream, Entry* ring, IdEvidence& evidence, const PsnPacket& packet) const;

  /// The READ request with the stream's highest PSN, counted with one PSN, takes `width`.
  void widen(PsnStream& stream, Entry* ring, std::uint32_t width) const;

  /// An answer with this PSN: true and the time since the request when this is the first answer and
  /// the request was seen exactly once until now (Karn's rule).
  bool answered(const PsnStream& stream, Entry* ring, std::uint32_t psn, Nanos now, Nanos& rtt) const;

  /// PSNs between first and last that were never seen.
  std::uint64_t missing(const PsnStream& stream) const {
    if (sparse_) return stream.holes - stream.holes_filled;
    return stream.missing_before + stream.span() - stream.unique;
  }

 private:
  static constexpr Entry kSeen = 1, kHole = 2, kAgain = 4, kAnswered = 8, kInside = 16, kMessage = 32;
  // A ring entry: 6 bits of flags, the newest identification seen with the PSN, 42 bits of nanoseconds since the
  // stream's base (73 minutes; differences are taken modulo that).
  static constexpr unsigned kIdShift = 6, kTimeShift = 22;
  static constexpr Entry kTimeMask = (Entry{1} << (64 - kTimeShift)) - 1;
  static constexpr Entry kIdMask = Entry{0xFFFF} << kIdShift;

  Entry& at(Entry* ring, std::int64_t psn) const { return ring[static_cast<std::uint64_t>(psn) & (window_ - 1)]; }
  std::int64_t low(const PsnStream& stream) const;
  Entry read(const PsnStream& stream, Entry* ring, std::int64_t psn) const;
  void fill(const PsnStream& stream, Entry* ring, std::int64_t from, std::int64_t to, Entry value) const;
  void fill_new(PsnStream& stream, Entry* ring, std::int64_t psn, std::uint32_t width, const PsnPacket& packet) const;
  PsnClass advance(PsnStream& stream, Entry* ring, std::int64_t psn, const PsnPacket& packet) const;
  PsnClass classify(PsnStream& stream, Entry entry, const PsnPacket& packet, bool informative, bool newer) const;
  void repeat(PsnStream& stream, Entry* ring, std::int64_t psn, PsnClass what, const PsnPacket& packet) const;
  static Entry seen_by(const PsnStream& stream, const PsnPacket& packet);
  static Nanos since(const PsnStream& stream, Entry entry, Nanos now);
  static bool newer_than(const PsnPacket& packet, Entry entry);
  void end_message(PsnStream& stream, Entry* ring, std::int64_t psn) const;

  std::uint32_t window_;
  Nanos retransmit_after_;
  bool sparse_;
};

}  // namespace rocebox::inspect
