// SPDX-License-Identifier: BSD-3-Clause
// Where a stream is at its receiver: which PSN it expects, what a packet that has another one is, and how many packets
// the sender has sent by its own count. Knows neither packets that wait nor blocks.
#pragma once
#include <cstdint>
#include <optional>

#include "kernels/lowar/repair_header.h"
#include "kernels/lowar/stream.h"

namespace rocebox::lowar {

class ReceiveSequence {
 public:
  /// What a packet is whose PSN lies before the expected one.
  enum class Duplicate : std::uint8_t {
    kSingle,   ///< a duplicate, or one that was overtaken
    kGivenUp,  ///< of the gap that was given up last: it had not been lost
    kRun,      ///< the last of several in a row: the host sends again from the first of these on
  };

  bool begun() const { return begun_; }
  /// The stream's first packet has this PSN. `responses`: PSNs of requests lie between its messages.
  void begin(std::uint32_t psn, bool responses);

  std::uint32_t expected() const { return place_.expected; }
  std::uint32_t last_psn() const { return place_.last_psn; }
  bool message_ended() const { return place_.message_ended; }
  /// The next message may begin at any PSN ahead, so a gap of PSNs before it need not be a loss.
  bool may_skip_psns() const { return place_.may_skip_psns; }
  /// How far the PSN lies ahead of the expected one; negative: before it.
  std::int32_t ahead(std::uint32_t psn) const { return roce::psn_distance(psn, place_.expected); }
  bool is_next(Packet packet, std::uint32_t psn) const { return place_.is_next(packet, psn); }
  /// Packets that are lost before a packet that is ahead. One, where the next message may begin anywhere: more may have
  /// been lost, but not all PSNs between two messages are packets.
  std::uint32_t lost_before(Packet packet, std::uint32_t psn) const;

  /// The packet has its place in the sequence; the next one is expected.
  void advance(Packet packet, std::uint32_t psn) { place_.advance(packet, psn); }
  /// What is missing before `psn` is given up: the sequence goes on there. What is given up piece by piece is one gap.
  void give_up_to(std::uint32_t psn);
  /// What is missing before `psn` was never sent.
  void skip_unsent(std::uint32_t psn) { place_.expected = psn; }
  /// The sequence is elsewhere; nothing is known of what lies between.
  void jump(std::uint32_t psn) { place_.jump(psn); }
  /// The sequence goes on at `psn`, having begun at `began`; kNoPsn: as was announced.
  void restart(std::uint32_t psn, std::uint32_t began);
  /// Whether the packet before the expected one ended its message.
  void set_message_ended(bool ended) { place_.message_ended = ended; }
  /// A gap of so many PSNs is passed over, uncoded.
  void note_gap(std::int32_t psns);

  /// A packet before the expected PSN came; up to `reorder` others may stand between those of a run.
  Duplicate note_duplicate(std::uint32_t psn, std::uint32_t reorder);
  /// Where the run of duplicates began.
  std::uint32_t run_began() const { return roce::psn_add(duplicate_psn_, 1 - std::int64_t{run_}); }
  /// The PSN behind the run of duplicates, if there is one that has come to `psn`.
  std::optional<std::uint32_t> behind_run(std::uint32_t psn) const;
  /// A run of duplicates is followed that is perhaps no retransmission: then the sequence goes on at `psn`.
  void may_resume_at(std::uint32_t psn) { resume_psn_ = psn; }
  /// The same for an uncoded stream, whose packet moves the sequence by itself.
  void follow_run();
  /// The packet behind a supposed retransmission: if it is the one that was expected before, or up to `reorder` behind
  /// it, it was none, and the sequence goes on there.
  void resolve_run(std::uint32_t psn, std::uint32_t reorder) {
    if (resume_psn_ != kNoPsn) [[unlikely]]
      resolve(psn, reorder);
  }

  /// Whether an announcement is a copy of the last one, or older: each has more packets before it. Not older is the
  /// first of an encoder that was restarted; `same_sender`: it was not.
  bool repeats_announcement(std::uint32_t psn, std::uint16_t sent, bool same_sender) const;
  void note_announcement(std::uint32_t psn, std::uint16_t sent);
  /// Whether some packets that were sent after an announcement have come before it, by the sender's count: not more of
  /// them than may overtake one, or the two counts do not agree yet.
  bool has_overtaken(std::uint16_t sent, std::uint32_t reorder) const;
  /// Whether a sequence that begins at `psn` goes on already, unannounced, since at most a few packets.
  bool was_taken_up_at(std::uint32_t psn, std::uint32_t reorder) const;
  /// Whether a sequence that is the stream's first one, by the sender's count, begins before packets that have come
  /// unannounced: they are of it, whatever was lost before them. To be asked before note_announcement().
  bool begins_behind(std::uint32_t psn, std::uint16_t sent) const {
    return announced_psn_ == kNoPsn && sent == 0 && ahead(psn) < 0;
  }
  /// The sequence that goes on has been announced.
  void set_announced() { unannounced_psn_ = kNoPsn; }

  /// Counts packets as the sender does: those that came, and those that count as lost.
  void count_arrival() { accounted_++; }
  void count_lost(std::uint32_t packets) { accounted_ = static_cast<std::uint16_t>(accounted_ + packets); }
  /// One that counts as lost came after all.
  void take_back_lost() { accounted_--; }
  /// The sender counts anew, or another one counts.
  void forget_sender_count() { sender_counted_ = false; }
  /// Nothing waits, and the sender says how many it has sent: that is the count from now on. Returns how many were lost
  /// of which nothing else told. Fewer were sent where the link has doubled some.
  std::uint32_t reconcile(const RepairHeader& header);
  std::uint32_t reconcile(const NegotiationHeader& header);

 private:
  void resolve(std::uint32_t psn, std::uint32_t reorder);
  std::uint32_t reconcile(std::int32_t more);

  Sequence place_;                         // as handed over to the host
  std::uint32_t duplicate_psn_ = 0;        // the last packet before the expected one
  std::uint32_t resume_psn_ = kNoPsn;      // expected before duplicates were taken for a retransmission
  std::uint32_t unannounced_psn_ = 0;      // the sequence was taken up here before it was announced; kNoPsn: announced
  std::uint32_t announced_psn_ = kNoPsn;   // of the last announcement
  std::uint32_t gap_psn_ = 0;              // of the last gap that was given up; what comes of it late was not lost
  std::uint16_t gap_psns_ = 0;             // 0: there is none
  std::uint16_t announced_sent_ = 0;       // the sender's count in the last announcement
  std::uint16_t accounted_ = 0;            // packets that came or count as lost, modulo 2^16
  std::uint16_t duplicate_accounted_ = 0;  // of these, when duplicate_psn_ came
  std::uint8_t run_ = 0;                   // duplicates in a row, up to duplicate_psn_
  bool sender_counted_ = false;            // the sender has said its count
  bool begun_ = false;
};

}  // namespace rocebox::lowar
