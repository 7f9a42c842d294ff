// SPDX-License-Identifier: BSD-3-Clause
// How a reliable message becomes messages of SDR: in parts, each of which has its own state machine, and each part as
// one message of SDR (Selective Repeat) or as 2 L (erasure coding: data and parity of each submessage).
#pragma once
#include <algorithm>
#include <string>

#include "kernels/sdr/backend/options.h"
#include "kernels/sdr/reliability/datagram.h"
#include "kernels/sdr/reliability/erasure_coding.h"

namespace rocebox::sdr {

enum class Reliability : std::uint8_t {
  kNone,                 ///< what is lost stays lost
  kSelectiveRepeat,      ///< 4.1.1
  kSelectiveRepeatNack,  ///< and what the receiver misses is sent again at once
  kErasureCoding,        ///< 4.1.2
};

struct ReliableOptions {
  Reliability kind = Reliability::kSelectiveRepeat;
  CodingOptions coding{};       ///< rtt, alpha and the global timeout are every kind's
  Time poll = 250'000;          ///< how often the receiver looks at its bitmaps
  std::uint32_t window = 64;    ///< parts under way at most
  std::uint32_t backlog = 128;  ///< packets before the wire, beyond which no chunk is sent
  Time rto() const { return coding.rtt + static_cast<Time>(coding.alpha * static_cast<double>(coding.rtt)); }
};

/// T_INJ of a chunk at so many bit/s; 0: injection takes no time.
inline Time injection_of(std::uint64_t chunk_bytes, std::uint64_t rate) {
  return rate ? static_cast<Time>(static_cast<double>(chunk_bytes) * 8e9 / static_cast<double>(rate)) : 0;
}

/// How often bitmaps are looked at where nobody says: a hundredth of the RTT, at least 10 us.
inline Time poll_of(Time rtt) { return std::max<Time>(rtt / 100, 10'000); }

/// A message of a reliable queue pair. Its memory is the caller's until it has ended.
struct Transfer {
  std::uint64_t address = 0, length = 0;
  std::uint32_t key = 0;
  std::uint64_t cut = 0, settled = 0;  ///< bytes that parts were made of, and that are done
  Time posted = 0;
  Time started = kNoTime;  ///< sender: when its first chunk left
  Time ended = kNoTime;    ///< sender: when the last ACK came; receiver: when all was here
  std::uint64_t lost = 0;  ///< receiver: chunks that did not come, where nothing repeats them
  std::string error{};     ///< why it has failed; empty: it has not
  bool over = false;       ///< nothing refers to its memory any more
};

/// The messages of SDR that one part is.
struct PartShape {
  std::uint64_t bytes = 0, chunk_bytes = 0;
  bool coded = false;
  Submessages submessages{};

  std::uint32_t chunks() const { return static_cast<std::uint32_t>((bytes + chunk_bytes - 1) / chunk_bytes); }
  std::uint32_t messages() const { return coded ? 2 * submessages.count() : 1; }
  /// Where data chunk `number` ends, in bytes.
  std::uint64_t end_of(std::uint32_t number) const {
    return std::min(bytes, (std::uint64_t{number} + 1) * chunk_bytes);
  }
  /// Of coded ones: data of submessage i is message 2 i, its parity 2 i + 1. Bytes of message `number`.
  std::uint32_t length(std::uint32_t number) const {
    if (!coded) return static_cast<std::uint32_t>(bytes);
    const std::uint32_t i = number / 2;
    if (number % 2) return static_cast<std::uint32_t>(submessages.parity(i) * chunk_bytes);
    const std::uint32_t first = submessages.first(i);
    return static_cast<std::uint32_t>(end_of(first + submessages.data(i) - 1) - first * chunk_bytes);
  }
};

/// Bytes of the longest part: a message of SDR; or as many submessages as fit, with their parity, into half of the
/// message IDs, so that the next part can be on its way while one waits for its ACK. 0: not one submessage fits.
inline std::uint64_t part_bytes_max(const QueuePairOptions& qp, const ReliableOptions& options) {
  if (options.kind != Reliability::kErasureCoding) return std::min<std::uint64_t>(qp.message_bytes, UINT32_MAX);
  const std::uint64_t submessage = options.coding.shape.data * qp.chunk_bytes();
  if (submessage > qp.message_bytes || qp.slots < 2) return 0;
  return std::clamp<std::uint64_t>(qp.slots / 4, 1, kNackBits) * submessage;
}

/// Why a queue pair cannot be made reliable in that way, for people; null: it can.
inline const char* mistake_of(const QueuePairOptions& qp, const ReliableOptions& options) {
  if (options.kind != Reliability::kErasureCoding) return nullptr;
  if (const char* why = mistake_of(options.coding.shape)) return why;
  return part_bytes_max(qp, options)
             ? nullptr
             : "a submessage, its data chunks together, is longer than a message of the queue pair";
}

inline PartShape part_shape(const QueuePairOptions& qp, const ReliableOptions& options, std::uint64_t bytes) {
  PartShape shape{bytes, qp.chunk_bytes(), options.kind == Reliability::kErasureCoding, {}};
  shape.submessages = {shape.chunks(), options.coding.shape};
  return shape;
}

/// What no part was made of yet.
struct Rest {
  std::uint64_t parts = 0, messages = 0;
};

inline Rest rest_of(const QueuePairOptions& qp, const ReliableOptions& options, const Transfer& transfer) {
  const std::uint64_t bytes = transfer.length - transfer.cut, most = part_bytes_max(qp, options);
  if (bytes == 0 || most == 0) return {};
  const std::uint64_t parts = (bytes + most - 1) / most;
  return {parts, (parts - 1) * part_shape(qp, options, most).messages() +
                     part_shape(qp, options, bytes - (parts - 1) * most).messages()};
}

}  // namespace rocebox::sdr
