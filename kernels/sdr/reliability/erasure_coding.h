// SPDX-License-Identifier: BSD-3-Clause
// Erasure coding over chunk bitmaps (4.1.2): sender and receiver as pure state machines, as those of Selective Repeat,
// to which submessages fall back that cannot be recovered.
#pragma once
#include "kernels/sdr/erasure/codec.h"
#include "kernels/sdr/reliability/selective_repeat.h"

namespace rocebox::sdr {

/// A message's submessages: k chunks each, the last one perhaps fewer, with parity in proportion.
struct Submessages {
  std::uint32_t chunks = 0;
  CodeShape shape{};

  std::uint32_t count() const { return (chunks + shape.data - 1) / shape.data; }
  std::uint32_t first(std::uint32_t number) const { return number * shape.data; }
  std::uint32_t data(std::uint32_t number) const { return std::min(shape.data, chunks - first(number)); }
  std::uint32_t parity(std::uint32_t number) const {
    return (data(number) * shape.parity + shape.data - 1) / shape.data;
  }
  /// Where its parity chunks stand among all of the message's.
  std::uint32_t first_parity(std::uint32_t number) const { return number * shape.parity; }
  std::uint32_t parity_chunks() const { return first_parity(count() - 1) + parity(count() - 1); }
};

/// How long a receiver waits from the first chunk on until it asks for what it could not recover.
enum class FallbackTimeout : std::uint8_t {
  kDataAndParity,  ///< (M + ceil(M / R)) T_INJ + beta RTT (4.2.3)
  kDataOnly,       ///< M T_INJ + 0.5 alpha RTT (4.1.2)
};

struct CodingOptions {
  CodeShape shape{};
  Time injection = 82;  ///< T_INJ of a chunk
  Time rtt = 25'000'000;
  double alpha = 2, beta = 1;
  FallbackTimeout fallback = FallbackTimeout::kDataAndParity;
  Time global_timeout = 60'000'000'000;  ///< from the post on; then the message has failed
};

/// The FTO of a message of so many chunks.
Time fallback_timeout(const CodingOptions& options, std::uint32_t chunks);

/// One message's receiver. Data and parity have bitmaps of their own, a byte a chunk.
class CodingReceiver {
 public:
  enum class Action : std::uint8_t {
    kNone,
    kAck,    ///< every submessage is here or can be recovered: send the positive ACK, call recover()
    kNack,   ///< send the NACK: failed() names the submessages; Selective Repeat takes over for these
    kFailed  ///< the global timeout has passed
  };
  /// For messages of up to `chunks_max` chunks. Nothing allocates later.
  CodingReceiver(const CodingOptions& options, std::uint32_t chunks_max);

  void start(std::uint32_t chunks, Time now);
  /// Looks at the bitmaps. kAck and kFailed come once; kNack when the FTO has passed, and again each RTO while nothing
  /// of what was asked for has come, for the NACK may be lost.
  Action poll(std::span<const std::uint8_t> data, std::span<const std::uint8_t> parity, Time now);
  /// The sender has sent all and hears nothing: what is missing is asked for in the next poll(), whether or not any
  /// chunk has come. Without one no FTO begins.
  void hasten(Time now) { ask_ = std::min(ask_, now); }
  /// When poll() has something to do although no chunk comes; kNoTime: never.
  Time due() const;
  std::span<const std::uint32_t> failed() const { return {failed_.data(), failed_count_}; }
  /// Whether a submessage is complete, or can be made so.
  bool recoverable(std::uint32_t submessage, std::span<const std::uint8_t> data, std::span<const std::uint8_t> parity);
  /// Whether chunks of it are missing, as recover() of its codec wants to know them; valid until the next call.
  std::span<const std::uint8_t> present(std::uint32_t submessage, std::span<const std::uint8_t> data,
                                        std::span<const std::uint8_t> parity);
  const Submessages& submessages() const { return parts_; }

 private:
  CodingOptions options_;
  Submessages parts_;
  std::vector<std::uint32_t> failed_;
  std::vector<std::uint8_t> present_;
  std::uint32_t failed_count_ = 0, settled_ = 0, come_ = 0;  // settled_: submessages below it are recoverable
  Time give_up_ = kNoTime, ask_ = kNoTime;
  bool over_ = true, asked_ = false;
};

/// One message's sender: 2 L submessages in order, each followed by its parity; then what a NACK names, by Selective
/// Repeat, until the positive ACK.
class CodingSender {
 public:
  struct Chunk {
    enum class Kind : std::uint8_t { kNone, kData, kParity } kind = Kind::kNone;
    std::uint32_t number = 0;  ///< among the data or the parity chunks of the message
  };
  CodingSender(const CodingOptions& options, std::uint32_t chunks_max);

  void start(std::uint32_t chunks, Time now);
  /// The next chunk to be sent at `now`; kNone: nothing is due.
  Chunk next(Time now);
  /// When next() will have something; kNoTime: it waits for the receiver alone.
  Time due() const;
  void on_ack() { done_ = true; }
  /// A NACK. Submessages that do not exist are passed over; of a repeated one nothing is sent twice.
  void on_nack(std::span<const std::uint32_t> failed);
  /// An ACK of Selective Repeat: the bitmap of the whole message's data, from `cumulative` on.
  void on_repeat_ack(const SelectiveAck& ack, Time now);
  bool done() const { return done_; }
  bool failed(Time now) const { return !done_ && now >= give_up_; }
  bool fallen_back() const { return repeating_; }

 private:
  CodingOptions options_;
  Submessages parts_;
  RepeatSender repeat_;
  std::vector<std::uint32_t> repeated_;  // the data chunk of each chunk of the repetition
  std::uint32_t repeated_count_ = 0, submessage_ = 0, within_ = 0;
  Time give_up_ = kNoTime;
  bool done_ = true, repeating_ = false;
};

}  // namespace rocebox::sdr
