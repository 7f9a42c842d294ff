// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/model/collective.h"

namespace rocebox::allgather {

std::string_view name_of(End end) {
  switch (end) {
    case End::kNone:
      return "under_way";
    case End::kWhole:
      return "whole";
    case End::kBarrierTimeout:
      return "rnr_barrier_timeout";
    case End::kFetchTimeout:
      return "fetch_timeout";
    case End::kHandshakeTimeout:
      return "final_handshake_timeout";
    case End::kSendTimeout:
      return "multicast_send_timeout";
    case End::kConnection:
      return "connection_lost";
  }
  return "";
}

Collective::Collective(const CollectiveSetup& setup, Reassembly& reassembly, CollectiveActions& actions)
    : setup_(setup),
      reassembly_(reassembly),
      actions_(actions),
      barrier_(setup.rank, setup.ranks),
      sequencer_(setup.ranks, setup.chains),
      blocks_(reassembly.geometry().blocks()) {
  if (is_root()) reassembly.own(setup.root >= 0 ? 0 : setup.rank);
}

void Collective::start() {
  started_ = true;
  progress_++;
  advance_barrier();
}

// Nobody passes the barrier before all have begun: who has not only keeps what has come.
void Collective::advance_barrier() {
  if (!started_ || barrier_.done()) return;
  barrier_.advance([this](unsigned to, unsigned step) { actions_.send_barrier(to, step); });
  if (!barrier_.done()) return;
  actions_.arm_cutoff();
  if (is_root() && (is_first() || activated_)) take_turn();
  settle();
}

bool Collective::on_barrier(unsigned from, unsigned step) {
  if (!barrier_.accept(from, step)) return false;
  progress_++;
  advance_barrier();
  return true;
}

void Collective::take_turn() {
  turn_ = Turn::kSends;
  actions_.begin_multicast();
}

bool Collective::on_activation() {
  if (setup_.root >= 0 || is_first() || activated_) return false;
  progress_++;
  activated_ = true;
  if (barrier_.done() && started_) take_turn();
  return true;
}

void Collective::on_multicast_sent() {
  if (turn_ != Turn::kSends) return;
  progress_++;
  turn_ = Turn::kSent;
  if (setup_.root < 0 && sequencer_.next(setup_.rank)) actions_.send_activation();
  settle();
}

void Collective::on_cutoff() {
  if (end_ != End::kNone || cutoff_) return;
  progress_++;
  cutoff_ = true;
  if (reassembly_.is_whole()) return;
  recovering_ = true;
  for (unsigned block = 0; block < blocks_.size(); block++) ask(block);
}

// Whoever asked for that block's chunks before, this rank asks its left neighbour once. The chain of those who ask ends
// at the block's root at the latest, who has it: no cycle waits.
void Collective::ask(unsigned block) {
  Block& one = blocks_[block];
  if (one.asked || reassembly_.is_whole(block)) return;
  one.asked = true;
  requests_++;
  actions_.send_request(block);
}

bool Collective::on_request(unsigned block) {
  if (block >= blocks_.size() || blocks_[block].wanted || final_came_) return false;
  progress_++;
  // Before its own cutoff a rank waits for what may still come.
  if (reassembly_.is_whole(block))
    actions_.send_acknowledge(block);
  else
    blocks_[block].wanted = true;
  return true;
}

bool Collective::on_acknowledge(unsigned block) {
  if (block >= blocks_.size() || !blocks_[block].asked || blocks_[block].reading) return false;
  progress_++;
  blocks_[block].reading = true;
  if (!reassembly_.is_whole(block)) actions_.read(block);
  return true;
}

void Collective::on_whole(unsigned block) {
  progress_++;
  if (blocks_[block].wanted) {
    blocks_[block].wanted = false;
    actions_.send_acknowledge(block);
  }
  settle();
}

bool Collective::on_final() {
  if (final_came_) return false;
  progress_++;
  final_came_ = true;
  for (Block& block : blocks_) block.wanted = false;
  settle();
  return true;
}

void Collective::end_write() {
  writes_--;
  progress_++;
  settle();
}

// The left neighbour's buffer is needed until no READ goes on, this one's until the right neighbour has all.
void Collective::settle() {
  if (end_ != End::kNone || !barrier_.done() || !reassembly_.is_whole() || writes_ > 0) return;
  if (!final_sent_) {
    final_sent_ = true;
    actions_.send_final();
  }
  if (!final_came_ || turn_ == Turn::kSends) return;
  end_ = End::kWhole;
  actions_.release(end_);
}

void Collective::fail(End end) {
  if (end_ != End::kNone) return;
  end_ = end;
  actions_.release(end);
}

End Collective::waits_for() const {
  if (end_ != End::kNone || !started_) return End::kNone;
  if (!barrier_.done()) return End::kBarrierTimeout;
  if (!cutoff_) return End::kNone;
  if (!reassembly_.is_whole()) return End::kFetchTimeout;
  if (turn_ == Turn::kSends) return End::kSendTimeout;
  return End::kHandshakeTimeout;
}

}  // namespace rocebox::allgather
