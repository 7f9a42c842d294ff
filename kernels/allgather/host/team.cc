// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/team.h"

#include <algorithm>

#include "kernels/allgather/host/rank.h"
#include "kernels/allgather/model/barrier.h"

namespace rocebox::allgather {

Team::Team(std::span<const WorkloadHost> hosts, const TeamOptions& options, Application& application,
           std::uint64_t agreed)
    : options_(options), application_(application), agreed_(agreed) {
  for (const WorkloadHost& on : hosts) {
    nic_model::Host& host = nic_model::host_of(on, options.mtu);
    nic_model::require_source_for(on, options.group_of(0, 0),
                                  options.group ? "`group`" : "`group`, which is not written,");
    const bool has_bytes = !host.config().header_only;
    if (ranks_.empty()) has_bytes_ = has_bytes;
    if (has_bytes != has_bytes_) throw ConfigError("some of its NICs have `header_only: true` and some have not");
    if (!is_apart()) {
      here_.push_back(ranks());
      ranks_.push_back(std::make_unique<Rank>(*this, ranks(), host, on.name));
      members_.push_back({ranks_.back()->address(), {}});
    } else {
      take_place(host, on.name);
    }
  }
  nic_model::require_all_peers(hosts, &options.recovery);
  plan_queue_pairs(hosts);
}

void Team::plan_queue_pairs(std::span<const WorkloadHost> hosts) const {
  // Of a subgroup: one to the group; one that the DPA receives by; one that copies what datagrams staged.
  const unsigned of_subgroup = 1u + (options_.receiver == Receiver::kDpa) + (options_.transport == Transport::kUd);
  std::vector<std::uint64_t> counts;
  for (const unsigned rank : here_) {
    const std::size_t links = 2 + Barrier(rank, ranks()).partners().size();  // beside those to both neighbours
    counts.push_back(static_cast<std::uint64_t>(options_.communicators) *
                     (links + static_cast<std::uint64_t>(options_.subgroups) * of_subgroup));
  }
  nic_model::plan_queue_pairs(hosts, counts);
}

// Of ranks in processes of their own: which one is here.
void Team::take_place(nic_model::Host& host, const std::string& name) {
  const roce::IpAddress own = host.config().source_for(options_.ranks.front());
  const auto place = std::ranges::find(options_.ranks, own);
  if (place == options_.ranks.end())
    throw ConfigError("`ranks` has not the address of `" + name + "`, " + roce::address_text(own));
  if (!has_bytes_)
    throw ConfigError("`" + name + "` has `header_only: true`, and `ranks` exchange messages by packets");
  for (const roce::IpAddress& address : options_.ranks) members_.push_back({address, {}});
  for (Member& member : members_)
    member.qpns.resize(static_cast<std::size_t>(options_.communicators * options_.subgroups));
  ranks_.resize(options_.ranks.size());
  here_.push_back(static_cast<unsigned>(place - options_.ranks.begin()));
  ranks_[here_.front()] = std::make_unique<Rank>(*this, here_.front(), host, name);
}

Team::~Team() = default;

void Team::connect() {
  if (!is_apart()) return connect_here();
  Rank& rank = *ranks_[here_.front()];
  rank.run([&rank](nic_model::Host&) {
    rank.make();
    rank.join();
  });
}

void Team::leave() {
  Rank& rank = *ranks_[here_.front()];
  if (is_apart()) rank.run([&rank](nic_model::Host&) { rank.leave(); });
}

// Each host makes its own queue pairs, then connects them when all are made; then all have a message of that.
void Team::connect_here() {
  for (const auto& rank : ranks_)
    rank->run([this, &rank = *rank](nic_model::Host&) {
      rank.make();
      members_[rank.number()].qpns = rank.sending_qpns();
      if (++made_ < ranks()) return;
      for (const auto& other : ranks_) other->run([&other = *other](nic_model::Host&) { other.connect(); });
    });
}

void Team::on_rank_connected(Nanos now) {
  if (++connected_ == ranks()) application_.on_connected(now);
}

void Team::start(unsigned rank, const Operation& operation, const Buffer& buffer) {
  ranks_[rank]->run([this, rank, operation, buffer](nic_model::Host&) {
    ranks_[rank]->communicator(operation.communicator).slot_for(operation.sequence).start(operation, buffer);
  });
}

End Team::test(unsigned rank, unsigned communicator, std::uint32_t sequence) const {
  const Slot& slot =
      ranks_[rank]->communicator(communicator).slot(sequence % static_cast<std::uint32_t>(options_.outstanding));
  if (slot.is_active() || slot.operation().sequence != sequence) return End::kNone;
  return slot.last_end();
}

const nic_model::Region* Team::region_of(unsigned rank, const Buffer& buffer) {
  const std::uint32_t key = ranks_[rank]->registrations().find(buffer);
  return key ? ranks_[rank]->host().memory().find(key) : nullptr;
}

void Team::forget_extents(unsigned rank, const Buffer& buffer) {
  if (const nic_model::Region* region = region_of(rank, buffer)) region->placed->clear();
}

bool Team::covers(unsigned rank, const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes) {
  const nic_model::Region* region = region_of(rank, buffer);
  return region && region->placed->covers(offset, bytes);
}

Progress Team::progress() const {
  Progress sum{progress_};
  for (const unsigned number : here_) sum.add(ranks_[number]->progress());
  return sum;
}

TeamCounters Team::counters() const {
  TeamCounters sum;
  for (const unsigned number : here_) {
    const auto& rank = ranks_[number];
    const TeamCounters& one = rank->count;
    for (const auto member : {&TeamCounters::datagrams_sent,
                              &TeamCounters::doorbells,
                              &TeamCounters::send_completions,
                              &TeamCounters::chunks,
                              &TeamCounters::duplicates,
                              &TeamCounters::out_of_range,
                              &TeamCounters::other_subgroup,
                              &TeamCounters::stale,
                              &TeamCounters::strangers,
                              &TeamCounters::wrong_length,
                              &TeamCounters::no_immediate,
                              &TeamCounters::copies,
                              &TeamCounters::reads,
                              &TeamCounters::bytes_read,
                              &TeamCounters::requests,
                              &TeamCounters::messages,
                              &TeamCounters::stale_messages,
                              &TeamCounters::bad_messages,
                              &TeamCounters::goodbyes_missing,
                              &TeamCounters::barrier_ns,
                              &TeamCounters::data_ns,
                              &TeamCounters::handshake_ns,
                              &TeamCounters::released_whole,
                              &TeamCounters::released_failed})
      sum.*member += one.*member;
    for (unsigned c = 0; c < rank->communicators(); c++)
      for (unsigned s = 0; s < rank->communicator(c).subgroups(); s++) {
        rank->communicator(c).subgroup(s).count(sum);
        const StagingRing& ring = rank->communicator(c).subgroup(s).staging();
        sum.staging_slots = std::max<std::uint64_t>(sum.staging_slots, ring.slots());
      }
    if (rank->communicators() > 0) sum.registration_hits += rank->registrations().hits();
  }
  return sum;
}

void Team::explain_waiting(Report& report, unsigned lines) const {
  struct Open {
    unsigned rank;
    const Slot* slot;
  };
  std::vector<Open> open;
  for (const unsigned r : here_)
    for (unsigned c = 0; c < ranks_[r]->communicators(); c++)
      for (unsigned s = 0; s < ranks_[r]->communicator(c).slots(); s++) {
        const Slot& slot = ranks_[r]->communicator(c).slot(s);
        if (slot.is_active() && open.size() < lines) open.push_back({r, &slot});
      }
  if (is_apart()) ranks_[here_.front()]->explain_waiting(report);
  report.table("waiting", open.size(), [&](Report& row, std::size_t i) {
    row.count("rank_number", open[i].rank);
    row.count("communicator_number", open[i].slot->operation().communicator);
    row.count("sequence_number", open[i].slot->operation().sequence);
    const Collective& collective = open[i].slot->collective();
    row.text("waits_for", !collective.barrier_done() ? "the barrier"
                          : collective.recovering()  ? "a fetch"
                                                     : "chunks or the final handshake");
  });
}

}  // namespace rocebox::allgather
