// SPDX-License-Identifier: BSD-3-Clause
// MessageTable: what completions of packets make of the receiver's bitmaps (3.2 to 3.4), by the DPA's rules, without a
// NIC.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/sdr/backend/device/sdr_bitmaps.h"
#include "kernels/sdr/messages/immediate.h"

namespace rocebox::sdr {

/// A packet that has arrived, as its CQE tells.
struct Completion {
  std::uint32_t immediate;
  std::uint32_t bytes;       ///< 0: a Write that only carries a fragment
  std::uint32_t generation;  ///< of the queue pair that it came by
};

/// What one completion came to: the words of the handler on the DPA.
enum class Arrival : std::uint8_t {
  kPacket = SDR_PACKET,                   ///< its bit was set
  kChunk = SDR_CHUNK,                     ///< and its chunk is complete now
  kMessage = SDR_MESSAGE,                 ///< and so is the message
  kFragment = SDR_FRAGMENT,               ///< an empty Write: only the fragment counts
  kDuplicate = SDR_DUPLICATE,             ///< its bit was set already
  kLateGeneration = SDR_LATE_GENERATION,  ///< of a message that had its slot before
  kNoMessage = SDR_NO_MESSAGE,            ///< nothing is posted in its slot: completed, or not posted yet
  kOutside = SDR_OUTSIDE,                 ///< behind the end of its message
  kCount = SDR_ARRIVALS
};

struct MessageTableOptions {
  ImmediateLayout layout{};
  std::uint32_t messages = 1024;      ///< slots; at most layout.messages()
  std::uint32_t packets_max = 4096;   ///< of a message; at most layout.packets_max()
  std::uint32_t packets_a_chunk = 1;  ///< a power of two
  std::uint32_t generations = 4;      ///< a power of two
};

/// A slot for each message ID. What packets may do is done by arrive(), which any number of threads may call at the
/// same time; posting and completing a slot is for one thread, and not beside arrivals of that slot's generation
/// (late ones of others may come). Sized when made: nothing allocates later.
class MessageTable {
 public:
  /// Options must fit each other: asserted.
  explicit MessageTable(const MessageTableOptions& options);

  /// The message of that number, counted from 0 without end, is posted: its slot is its number modulo the slots, and
  /// each time round the slot has the next generation. `chunks` is where its chunk bytes stand, chunks_of(packets)
  /// of them, which become 1 and are cleared here. False, with nothing changed, when the slot is taken, or the message
  /// has no packets or too many.
  bool post(std::uint64_t number, std::uint32_t packets, std::uint8_t* chunks);
  /// The message is complete for its owner, whatever has come of it: later packets touch nothing. False when it is not
  /// posted.
  bool complete(std::uint64_t number);

  /// Takes note of a packet.
  Arrival arrive(const Completion& completion);

  std::uint32_t chunks_of(std::uint32_t packets) const { return sdr_chunks_of(&table_, packets); }
  std::uint32_t slot_of(std::uint64_t number) const { return static_cast<std::uint32_t>(number % options_.messages); }
  std::uint32_t generation_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number / options_.messages) & (options_.generations - 1);
  }
  /// Whether a packet has come, of a message that is posted.
  bool has_packet(std::uint64_t number, std::uint32_t packet) const;
  /// The user's immediate; false while fragments are missing.
  bool user_immediate(std::uint64_t number, std::uint32_t& value) const;
  /// Bytes of state that a message slot takes, its packet bitmap included.
  std::size_t bytes_a_slot() const;

 private:
  // Of the message in its slot; SDR_FREE: there is none.
  std::uint32_t posted_generation(std::uint64_t number) const;

  MessageTableOptions options_;
  std::vector<sdr_slot> slots_;
  std::vector<std::uint64_t> bitmap_;
  std::vector<std::uint32_t> words_left_;  // of each chunk of more than 64 packets
  sdr_table table_{};                      // of these
};

}  // namespace rocebox::sdr
