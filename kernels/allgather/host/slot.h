// SPDX-License-Identifier: BSD-3-Clause
// Slot: a place for one collective of a communicator at one rank, used again and again.
#pragma once
#include <optional>
#include <vector>

#include "kernels/allgather/host/link.h"
#include "kernels/allgather/host/team.h"

namespace rocebox::allgather {

class Communicator;

class Slot final : public CollectiveActions {
 public:
  /// Collective `first` of the communicator is its first one; every `stride`-th follows.
  Slot(Communicator& communicator, unsigned number, std::uint32_t first, std::uint32_t stride);

  unsigned number() const { return number_; }
  bool is_active() const { return collective_ && collective_->end() == End::kNone; }
  const Operation& operation() const { return operation_; }
  std::uint32_t next_sequence() const { return next_; }
  End last_end() const { return last_end_; }
  const Buffer& buffer() const { return buffer_; }
  std::uint32_t key() const { return key_; }
  const Geometry& geometry() const { return reassembly_->geometry(); }
  Reassembly& reassembly() { return *reassembly_; }
  Collective& collective() { return *collective_; }
  const Collective& collective() const { return *collective_; }
  std::uint32_t immediate_of(std::uint32_t chunk) const;
  /// An immediate's bits above the chunk.
  std::uint32_t tag() const { return tag_; }
  unsigned own_block() const;
  unsigned rank_of(std::uint32_t block) const {
    return operation_.root >= 0 ? static_cast<unsigned>(operation_.root) : block;
  }

  void start(const Operation& operation, const Buffer& buffer);
  /// A message of this slot's collective, or of the next one. False: nobody could have sent it.
  bool on_message(const Link& from, const ControlMessage& message);
  void on_part_sent();
  void on_read(const Link::Read& read);
  void on_cutoff_timer();
  void on_watchdog();
  /// receive: dpa: looks at what the workers have done.
  void on_poll();
  void fail(End end);

  Timer cutoff_timer, watchdog, poll_timer;

  // CollectiveActions.
  void send_barrier(unsigned to, unsigned step) override;
  void arm_cutoff() override;
  void begin_multicast() override;
  void send_activation() override;
  void send_request(unsigned block) override;
  void send_acknowledge(unsigned block) override;
  void read(unsigned block) override;
  void send_final() override;
  void release(End end) override;

 private:
  struct Early {
    unsigned from;
    std::uint32_t step;
  };
  void send(LinkTo to, unsigned peer, MessageType type, std::uint32_t argument);
  bool deliver(const Link& from, const ControlMessage& message);
  void open();
  void sync();
  void arm_watchdog();

  Communicator& communicator_;
  const unsigned number_;
  std::uint32_t next_, stride_;
  Operation operation_;
  Buffer buffer_;
  std::uint32_t key_ = 0, tag_ = 0;
  std::optional<Reassembly> reassembly_;
  std::optional<Collective> collective_;
  std::vector<Early> early_;  // of the next collective, which this rank has not begun
  unsigned parts_leaving_ = 0;
  std::uint64_t left_address_ = 0;  // where the left neighbour's block may be read, and its key
  std::uint32_t left_key_ = 0;
  Nanos began_ = 0, met_ = 0, whole_ = 0;  // of the application's call, the barrier's end, the last block
  std::uint64_t seen_progress_ = 0;
  End seen_wait_ = End::kNone, last_end_ = End::kNone;
};

}  // namespace rocebox::allgather
