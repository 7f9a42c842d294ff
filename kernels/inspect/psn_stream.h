// SPDX-License-Identifier: BSD-3-Clause
// What is kept of one PSN space: its counters, and one entry for each remembered PSN. Definitions: README.md.
#pragma once
#include <algorithm>
#include <array>
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
  bool informative() const { return compared >= kCompared && increased * 8 >= compared * 7; }
  /// Too few were compared to know, and none of them speaks against it.
  bool open() const { return compared < kCompared && increased == compared; }

 private:
  static constexpr std::uint16_t kCompared = 3;
};

/// What a packet is to its stream.
enum class PsnClass : std::uint8_t {
  kFirst,           ///< the first of the stream
  kInOrder,         ///< above the highest PSN seen; what it skips are holes
  kRestart,         ///< the stream begins anew with this packet, or with the run that it completes
  kDuplicate,       ///< a copy that the network made
  kRetransmission,  ///< sent again by the sender
  kOutOfOrder,      ///< overtaken by a later one
  kUndecided,       ///< one of these three: old, and its identification could tell, but too few came to know that
  kBeyondWindow,    ///< older than the memory; perhaps of a run that will prove a restart
};

/// A packet of a stream.
struct PsnPacket {
  Nanos now = 0;
  std::uint32_t psn = 0;
  std::uint32_t width = 1;    ///< PSNs that it takes: more than one for a READ request
  std::uint32_t payload = 0;  ///< bytes, for the goodput
  std::uint32_t size = 0;     ///< bytes that it adds to its message: payload, a READ's DMA length, 8 of an atomic
  std::uint16_t id = 0;       ///< IPv4 identification
  bool has_id = false;
  bool starts = false;   ///< FIRST or ONLY
  bool ends = false;     ///< LAST, ONLY, READ request, atomic: its last PSN ends a message
  bool read = false;     ///< READ request
  bool asks = false;     ///< READ request or atomic: only its own response acknowledges it
  bool sized = true;     ///< `size` is known
  bool reliable = true;  ///< the service has retransmissions
  bool trimmed = false;  ///< a switch cut its payload off
};

/// Memory of one PSN.
struct PsnEntry {
  Nanos time;  ///< when it was first seen, or skipped
  std::uint32_t size;
  std::uint16_t id;  ///< the newest IPv4 identification seen with it
  std::uint16_t flags;

  static constexpr std::uint16_t kSeen = 1, kHole = 2, kAgain = 4, kAnswered = 8;
  static constexpr std::uint16_t kInside = 16;  ///< a PSN of a READ behind its first
  static constexpr std::uint16_t kStart = 32, kEnd = 64;
  static constexpr std::uint16_t kTrimmed = 128, kUnsized = 256;
  static constexpr std::uint16_t kAsks = 512;  ///< the first PSN of a READ or atomic
  bool has(std::uint16_t flag) const { return flags & flag; }
};
static_assert(sizeof(PsnEntry) == 16);

/// Count, sum and range of sizes.
struct Sizes {
  std::uint64_t count = 0, sum = 0, min = 0, max = 0;
  void add(std::uint64_t size) {
    min = count ? std::min(min, size) : size;
    max = std::max(max, size);
    count++;
    sum += size;
  }
};

/// Packets in a row, from the start of a message on, that prove that a stream began anew below its window.
inline constexpr unsigned kRestartRun = 3;

/// One PSN space of a flow. PSNs are kept unwrapped: bits 24 and up count the wraps since the
/// stream's first PSN.
struct PsnStream {
  // The first cache line is all that a packet in order needs, beside its ring entry.
  std::int64_t first = 0, high = 0;                ///< lowest and highest PSN since the last restart
  std::int64_t ring_low = 0;                       ///< entries below were not written since then
  Nanos base = 0;                                  ///< when the stream began
  std::uint64_t unique = 0;                        ///< distinct PSNs since the last restart
  std::uint64_t unique_payload = 0;                ///< bytes of packets whose PSN was new
  std::uint32_t old_next = 0;                      ///< PSN behind the last packet that was below the highest
  std::uint32_t asked_first = 0, asked_count = 0;  ///< PSNs that the peer asked to have again
  std::uint16_t newest_id = 0;
  bool used : 1 = false;
  bool complete : 1 = false;            ///< the packet with the highest PSN ended its message
  bool old_was_sent_again : 1 = false;  ///< the last packet below the highest was a retransmission
  bool old_was_asked : 1 = false;       ///< ... and it was asked for
  bool fresh : 1 = false;               ///< the next packet begins it anew
  bool told : 1 = false;                ///< a handshake said that it begins anew at or behind `told_psn`
  bool closed : 1 = false;              ///< a disconnect passed: the next message may begin anywhere
  bool repeat_explained : 1 = false;    ///< a NAK, or a response that is missing, explains a retransmission
  std::uint8_t stale_ids = 0;           ///< in-order packets in a row whose ID was not newer
  std::uint8_t run_length = 0;          ///< packets in `run`

  std::uint32_t told_psn = 0, run_next = 0;
  Nanos last_time = 0;          ///< of the last packet
  std::int64_t resumed_at = 0;  ///< behind the highest PSN when something came that was asked for; 0: never
  Nanos going_back_until = 0;   ///< go-back-N: when what is sent again would begin to come; 0: nothing is awaited
  std::int64_t expected = 0;    ///< ePSN of a go-back-N responder that stood here
  // Messages: sizes are summed up to `next_size`, all before `next_answer` is acknowledged.
  std::int64_t next_size = 0, next_response = 0;
  std::uint64_t open_size = 0;
  Nanos open_time = 0;
  bool size_open = false, time_open = false, responded_once = false;

  // Counters.
  std::uint64_t messages = 0;
  std::uint64_t duplicates = 0, retransmissions = 0, out_of_order = 0, undecided = 0, beyond_window = 0, restarts = 0;
  std::uint64_t out_of_sequence = 0, duplicate_requests = 0, timeouts_suspected = 0;
  std::uint64_t trimmed = 0;            ///< trimmed packets
  std::uint64_t only_trimmed = 0;       ///< PSNs of which nothing but trimmed packets came
  std::uint64_t holes = 0;              ///< PSNs skipped when a higher one came
  std::uint64_t gaps = 0;               ///< times that this happened
  std::uint64_t holes_filled = 0;       ///< skipped PSNs that came after all, in any way
  std::uint64_t holes_filled_late = 0;  ///< ... by a packet that was overtaken
  std::uint64_t go_backs = 0;           ///< times that a go-back-N sender would go back
  std::uint64_t go_back_packets = 0;    ///< packets that it would send again
  std::uint64_t degree_sum = 0, degree_max = 0;
  std::uint64_t unique_before = 0, missing_before = 0;  ///< before the last restart
  Sizes sizes;                                          ///< of messages that were seen whole
  std::array<PsnPacket, kRestartRun> run{};             ///< the last packets beyond the window, when in a row

  std::uint64_t lost() const { return holes - holes_filled_late; }
  std::uint64_t unique_total() const { return unique_before + unique; }
  /// PSNs from the lowest to the highest since the last restart.
  std::uint64_t span() const { return used && !fresh ? static_cast<std::uint64_t>(high - first + 1) : 0; }
  std::uint64_t beyond_window_total() const { return beyond_window + run_length; }
  std::uint32_t high_psn() const { return static_cast<std::uint32_t>(high) & roce::kPsnMask; }
};

}  // namespace rocebox::inspect
