// SPDX-License-Identifier: BSD-3-Clause
// Which directions of connections the control plane knows: those that the configuration tells, and those that were
// heard, of which there may be more than there is room for.
#include <algorithm>
#include <cassert>

#include "kernels/themis/control_plane.h"
#include "runtime/roce/address.h"

namespace rocebox::themis {
namespace {

DirectionKey inbound_of(const ConnectionConfig& row) {
  return {{*row.remote, *row.local}, static_cast<std::uint32_t>(row.local_qpn)};
}
DirectionKey outbound_of(const ConnectionConfig& row) {
  return {{*row.local, *row.remote}, static_cast<std::uint32_t>(row.remote_qpn)};
}

}  // namespace

// A packet of a direction: of those that have no state it is the last that was silent.
void ControlPlane::heard(std::uint32_t direction, Port port, Nanos now) {
  DirectionNotes& notes = notes_[direction];
  notes.used = true;
  notes.seen = now;
  unlist(direction);
  if (notes.connection || pairing_.source(direction) == PairSource::kConfig) return;
  Waiting& waiting = waiting_[port];
  notes.waits = true;
  notes.port = port;
  notes.previous = waiting.newest;
  notes.next = 0;
  (waiting.newest ? notes_[waiting.newest - 1].next : waiting.oldest) = direction + 1;
  waiting.newest = direction + 1;
  waiting.count++;
}

void ControlPlane::unlist(std::uint32_t direction) {
  DirectionNotes& notes = notes_[direction];
  if (!notes.waits) return;
  Waiting& waiting = waiting_[notes.port];
  (notes.previous ? notes_[notes.previous - 1].next : waiting.oldest) = notes.next;
  (notes.next ? notes_[notes.next - 1].previous : waiting.newest) = notes.previous;
  waiting.count--;
  notes.waits = false;
}

void ControlPlane::forget(std::uint32_t direction) {
  unlist(direction);
  notes_[direction] = {};
  pairing_.forget(direction);
}

// Where there is none, the port that has most directions without state gives those that were silent longest: a flood
// ends itself. Not those of this instant: whoever was asked to make a pair of them would find others by their numbers.
bool ControlPlane::make_room(std::uint32_t directions, Nanos now) {
  while (pairing_.size() + directions > notes_.size()) {
    const Waiting& most = *std::ranges::max_element(waiting_, {}, &Waiting::count);
    if (most.count == 0 || notes_[most.oldest - 1].seen == now) return false;
    count_.pairing_displaced.add();
    forget(most.oldest - 1);
  }
  return true;
}

// The connections of a configuration that is taken over: what is not among them any more is over; what is, goes on.
void ControlPlane::tell(const std::vector<ConnectionConfig>& rows) {
  for (const ConnectionConfig& row : rows) {
    const std::uint32_t outbound = pairing_.find(outbound_of(row)), inbound = pairing_.find(inbound_of(row));
    if (outbound == flows::Pairing::kNone || pairing_.partner(outbound) != inbound) continue;
    notes_[outbound].told = pairing_.source(outbound) == PairSource::kConfig;
  }
  for (const std::uint32_t direction : told_)
    if (!notes_[direction].told) withdraw(direction);
  told_.clear();
  stimuli_.clear();
  for (const ConnectionConfig& row : rows) tell(row);
  for (const std::uint32_t direction : told_) notes_[direction].told = false;
}

void ControlPlane::withdraw(std::uint32_t direction) {
  const std::uint32_t partner = pairing_.partner(direction);
  if (notes_[direction].connection) end(notes_[direction].connection - 1, false);
  for (const std::uint32_t each : {direction, partner}) forget(each);
}

void ControlPlane::tell(const ConnectionConfig& row) {
  if (stimuli_.size() < kStimuliMax) {
    stimuli_.push_back(inbound_of(row));
    stimuli_.push_back(outbound_of(row));
  }
  std::uint32_t outbound = pairing_.find(outbound_of(row));
  const bool known = outbound != flows::Pairing::kNone && notes_[outbound].told;
  if (!known) {
    // Whatever has these directions now is over.
    for (const DirectionKey& key : {outbound_of(row), inbound_of(row)}) {
      const std::uint32_t direction = pairing_.find(key);
      if (direction != flows::Pairing::kNone && notes_[direction].connection)
        end(notes_[direction].connection - 1, true);
      if (const std::uint32_t left = pairing_.find(key); left != flows::Pairing::kNone) forget(left);
    }
    if (!make_room(2, -1) || !pairing_.connect(*row.local, static_cast<std::uint32_t>(row.local_qpn), *row.remote,
                                               static_cast<std::uint32_t>(row.remote_qpn), PairSource::kConfig))
      return count_.pairing_full.add();
    outbound = pairing_.find(outbound_of(row));
  }
  const std::uint32_t inbound = pairing_.partner(outbound);
  told_.push_back(outbound);
  if (!notes_[outbound].used && !notes_[inbound].used) {
    notes_[inbound].first_psn = static_cast<std::uint32_t>(std::max<std::int64_t>(row.first_psn, 0));
    notes_[inbound].first_psn_known = row.first_psn >= 0;
  }
  if (known) return;
  if (free_connections_.empty() && !displace(PairSource::kConfig, kAnyPipe)) return count_.qp_full.add();
  set_entries(take_number(outbound, inbound));
}

void ControlPlane::change(const Config& config) {
  stash_timeout_ = config.stash_timeout;
  qp_timeout_ = config.qp_timeout;
  learning_ = config.learning;
  tell(config.connections);
}

}  // namespace rocebox::themis
