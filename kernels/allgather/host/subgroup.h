// SPDX-License-Identifier: BSD-3-Clause
// Subgroup: one multicast group of a communicator at one rank: its queue pair of datagrams, its staging ring, and the
// loopback queue pair that copies from there (III-A, III-B).
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "kernels/allgather/host/dpa_receiver.h"
#include "kernels/allgather/host/options.h"
#include "kernels/allgather/model/staging.h"
#include "nic_model/host/host.h"

namespace rocebox::allgather {

class Communicator;
class Slot;

class Subgroup {
 public:
  Subgroup(Communicator& communicator, unsigned number);

  /// Queue pairs, attached and with receives posted. `send_cq` is that of the rank's send worker.
  void make(nic_model::Host& host, nic_model::CompletionQueue& send_cq);
  Communicator& communicator() const { return communicator_; }
  std::uint32_t qpn() const { return qp_->number(); }
  nic_model::CompletionQueue& receive_cq() { return *receive_cq_; }
  const StagingRing& staging() const { return staging_; }

  /// All ranks have their queue pairs.
  void run() {
    if (dpa_) dpa_->run();
  }
  /// A collective begins: WRITEs to its window go to its buffer, workers take its chunks; `team` is the workers'.
  void open(nic_model::Host& host, const Slot& slot, std::uint64_t team);
  void close(nic_model::Host& host, const Slot& slot);
  // receive: dpa
  void sync(Slot& slot) {
    if (dpa_) dpa_->sync(slot);
  }
  void mark(const Slot& slot, std::uint32_t block, std::uint32_t index, std::uint32_t count) {
    if (dpa_) dpa_->mark(slot, block, index, count);
  }
  void count(TeamCounters& into) const {
    if (dpa_) dpa_->count(into);
  }
  /// The rank's own part of a collective leaves, batch by batch, behind those that leave already.
  void multicast(nic_model::Host& host, Slot& slot);
  /// The last datagram of a batch has left.
  void on_sent(nic_model::Host& host);
  /// Handles one datagram. False: there is none.
  bool receive_one(nic_model::Host& host);
  /// A copy is done.
  void on_copied(nic_model::Host& host, std::uint32_t staging_slot);
  /// Nothing is sent, received or copied any more.
  void stop(nic_model::Host& host);

 private:
  // A part of a block that leaves.
  struct Leaving {
    Slot* slot;
    std::uint32_t next, end;  // chunks of the block that are not posted yet
    unsigned batches = 0;     // posted, and not all left
  };
  bool is_uc() const;
  nic_model::Qp& receiving_qp() { return dpa_ ? dpa_->qp() : *qp_; }
  nic_model::QpInit make_staging(nic_model::Host& host);
  void make_loopback(nic_model::Host& host, nic_model::QpInit init);
  void connect_to_group(nic_model::Host& host, nic_model::Qp& qp);
  void connect_to_itself(nic_model::Host& host, nic_model::Qp& qp);
  void copy(nic_model::Host& host, Slot& slot, std::uint32_t staging_slot, std::uint32_t block, std::uint32_t index);
  void post_batches(nic_model::Host& host);
  void post_batch(nic_model::Host& host, Leaving& leaving);
  void repost(nic_model::Host& host, std::uint32_t staging_slot);
  Slot* accept(const ibv_wc& wc, std::uint32_t staging_slot, std::uint32_t& block, std::uint32_t& index);
  bool is_from(const ibv_wc& wc, std::uint32_t staging_slot, unsigned rank) const;

  Communicator& communicator_;
  const unsigned number_;
  StagingRing staging_;
  std::vector<std::uint8_t> memory_;  // of the staging ring; empty: without bytes
  std::uint64_t base_ = 0;            // its address
  std::uint32_t key_ = 0;
  nic_model::Qp* qp_ = nullptr;  // sends, and receives unless a DPA does
  std::unique_ptr<DpaReceiver> dpa_;
  nic_model::Qp* loopback_ = nullptr;
  nic_model::CompletionQueue* receive_cq_ = nullptr;
  nic_model::CompletionQueue* copy_cq_ = nullptr;
  nic_model::AddressHandle group_;
  std::deque<Leaving> leaving_;
  unsigned batches_ = 0;  // posted, of all
  // Work requests, made once: a batch's and what they send, and what each staging slot is copied to.
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  struct Copy {
    Slot* slot;
    std::uint32_t block;
  };
  std::vector<Copy> copies_;
};

}  // namespace rocebox::allgather
