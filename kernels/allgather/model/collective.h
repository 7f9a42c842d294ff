// SPDX-License-Identifier: BSD-3-Clause
// Collective: one rank's part of one Broadcast or Allgather, as a state machine without network or clock: barrier,
// turns of broadcasting, cutoff, fetch ring, final handshake (III-C, IV). Who runs it tells it what has come, and does
// what it asks for.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/allgather/model/barrier.h"
#include "kernels/allgather/model/reassembly.h"
#include "kernels/allgather/model/sequencer.h"

namespace rocebox::allgather {

/// How a collective has ended: with its buffer whole, or which wait was too long, or what else.
enum class End : std::uint8_t {
  kNone,
  kWhole,
  kBarrierTimeout,
  kFetchTimeout,
  kHandshakeTimeout,
  kSendTimeout,
  kConnection
};
std::string_view name_of(End end);

/// What a collective asks for. A call may come from within any of its own calls but never makes another one.
class CollectiveActions {
 public:
  virtual ~CollectiveActions() = default;
  virtual void send_barrier(unsigned to, unsigned step) = 0;
  virtual void arm_cutoff() = 0;
  virtual void begin_multicast() = 0;
  virtual void send_activation() = 0;                 ///< to the right neighbour: it is its turn
  virtual void send_request(unsigned block) = 0;      ///< to the left neighbour
  virtual void send_acknowledge(unsigned block) = 0;  ///< to the right neighbour: it may read that block here
  virtual void read(unsigned block) = 0;              ///< what of it has not come, from the left neighbour
  virtual void send_final() = 0;                      ///< to the left neighbour
  virtual void release(End end) = 0;                  ///< the buffer is the application's; the last call
};

struct CollectiveSetup {
  unsigned rank = 0, ranks = 1;
  int root = -1;        ///< of a Broadcast; -1: an Allgather, in which block b is rank b's
  unsigned chains = 1;  ///< of an Allgather
};

class Collective {
 public:
  /// `reassembly` and `actions` outlive it. Own blocks are whole from the start.
  Collective(const CollectiveSetup& setup, Reassembly& reassembly, CollectiveActions& actions);

  // What happens. Messages that nobody could have sent now are refused: false.

  void start();  ///< by the application: its buffer is ready
  bool on_barrier(unsigned from, unsigned step);
  bool on_activation();
  void on_multicast_sent();
  void on_cutoff();
  bool on_request(unsigned block);
  bool on_acknowledge(unsigned block);
  bool on_final();
  /// A block is whole, as the reassembly has said.
  void on_whole(unsigned block);
  /// Copies and READs that write to the buffer: it is not released while one goes on.
  void begin_write() { writes_++; }
  void end_write();
  /// It has waited too long for something that waits_for() says, or its connections are lost.
  void fail(End end);

  bool is_root() const { return setup_.root < 0 || static_cast<unsigned>(setup_.root) == setup_.rank; }
  bool started() const { return started_; }
  bool barrier_done() const { return barrier_.done(); }
  bool recovering() const { return recovering_; }
  End end() const { return end_; }
  /// What it waits for that other ranks owe it: the time-out's name. kNone: nothing, as long as the cutoff has not
  /// come.
  End waits_for() const;
  /// Grows with all that happens.
  std::uint64_t progress() const { return progress_; }
  std::uint64_t requests() const { return requests_; }

 private:
  enum class Turn : std::uint8_t { kWaits, kSends, kSent };
  struct Block {
    bool asked = false;    // of the left neighbour
    bool wanted = false;   // by the right neighbour, who has had no answer
    bool reading = false;  // the left neighbour has answered
  };
  void advance_barrier();
  void take_turn();
  void ask(unsigned block);
  void settle();
  bool is_first() const { return setup_.root >= 0 ? is_root() : sequencer_.is_first(setup_.rank); }

  const CollectiveSetup setup_;
  Reassembly& reassembly_;
  CollectiveActions& actions_;
  Barrier barrier_;
  Sequencer sequencer_;
  std::vector<Block> blocks_;
  Turn turn_ = Turn::kWaits;
  bool started_ = false, activated_ = false, recovering_ = false, cutoff_ = false;
  bool final_sent_ = false, final_came_ = false;
  End end_ = End::kNone;
  unsigned writes_ = 0;
  std::uint64_t progress_ = 0, requests_ = 0;
};

}  // namespace rocebox::allgather
