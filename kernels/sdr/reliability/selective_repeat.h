// SPDX-License-Identifier: BSD-3-Clause
// Selective Repeat over a chunk bitmap (4.1.1): sender and receiver as pure state machines. They are told of time,
// bitmaps and control messages, and say what is to be sent; nothing here knows a NIC.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rocebox::sdr {

/// Nanoseconds, as everywhere in rocebox.
using Time = std::int64_t;
inline constexpr Time kNoTime = std::numeric_limits<Time>::max();

/// Bits of the bitmap that one ACK carries behind its cumulative part: what fits with the rest into 512 bytes.
inline constexpr std::uint32_t kSelectiveBits = 4032;

/// What a receiver tells of a message: all chunks below `cumulative` are here, and of those from there on the ones
/// whose bit is set, lowest bit first. `missing_below` is what NACKs are made of: chunks below it without a bit are
/// lost as far as the receiver can see; where nothing is missed it is not above `cumulative`.
struct SelectiveAck {
  std::uint32_t cumulative = 0, missing_below = 0, bits = 0;
  std::uint64_t selective[kSelectiveBits / 64] = {};
};

struct RepeatOptions {
  Time rtt = 25'000'000;
  double alpha = 2;   ///< RTO = RTT + alpha RTT
  bool nack = false;  ///< what a receiver reports as missing is sent again at once, once an RTT
};

/// One message's sender.
class RepeatSender {
 public:
  /// For messages of up to `chunks_max` chunks. Nothing allocates later.
  RepeatSender(const RepeatOptions& options, std::uint32_t chunks_max);

  /// Begins a message; its chunks are all to be sent.
  void start(std::uint32_t chunks);
  /// The next chunk to be sent at `now`, for which the sender has room on its line; kNone: nothing is due. Each is
  /// repeated when its RTO has passed since `now`. Chunks that are sent for the first time wait for repetitions.
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::uint32_t next(Time now);
  /// When next() will have something, without an ACK in between; kNoTime: never.
  Time due() const;
  void on_ack(const SelectiveAck& ack, Time now);
  bool done() const { return acked_ == chunks_; }
  std::uint64_t repetitions() const { return repetitions_; }

 private:
  struct Chunk {
    Time sent;
    std::uint32_t before, after;  // in the order of transmission
    bool acked, listed;
  };
  void list(std::uint32_t chunk, Time now);
  void unlist(std::uint32_t chunk);
  void acknowledge(std::uint32_t chunk);
  std::uint32_t again(std::uint32_t chunk, Time now);

  Time rto_, rtt_;
  bool nack_;
  std::vector<Chunk> state_;
  std::vector<std::uint32_t> missed_;  // by NACKs, to be sent at once; a ring
  std::uint32_t missed_first_ = 0, missed_count_ = 0;
  std::uint32_t chunks_ = 0, fresh_ = 0, acked_ = 0, cumulative_ = 0;
  std::uint32_t oldest_ = kNone, newest_ = kNone;
  std::uint64_t repetitions_ = 0;
};

/// One message's receiver.
class RepeatReceiver {
 public:
  explicit RepeatReceiver(const RepeatOptions& options) : options_(options) {}
  void start(std::uint32_t chunks) { chunks_ = chunks, cumulative_ = seen_ = 0, told_ = 0; }
  /// Looks at the chunk bytes of the bitmap. True when `ack` is to be sent: something has come since the last one.
  bool poll(std::span<const std::uint8_t> bitmap, SelectiveAck& ack);
  /// The last ACK once more, for when it was lost: a sender that repeats what is here already did not get it.
  void repeat(std::span<const std::uint8_t> bitmap, SelectiveAck& ack) { fill(bitmap, ack); }
  bool done() const { return cumulative_ == chunks_; }

 private:
  void fill(std::span<const std::uint8_t> bitmap, SelectiveAck& ack) const;

  RepeatOptions options_;
  std::uint32_t chunks_ = 0, cumulative_ = 0, seen_ = 0;  // seen_: behind the highest chunk that has come
  std::uint64_t told_ = 0;                                // chunks that had come when the last ACK was made
};

}  // namespace rocebox::sdr
