// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/bridge.h"

#include <algorithm>

namespace rocebox::switch_model::forward {
namespace {

constexpr unsigned kSourceStage = 0, kDestinationStage = 1;
// Digests of one instant; more are lost, and the next packet of that address tells again.
constexpr std::size_t kDigestsMax = 2048;
// Ageing looks at all entries: not oftener than so many times in an entry's life.
constexpr Nanos kLooksPerAge = 8;

std::uint32_t entries_of(const Config& config) { return static_cast<std::uint32_t>(config.mac_entries); }

}  // namespace

Bridge::Bridge(const Config& config, const Build& build)
    : info_(build.info),
      pipes_(build.info.pipes),
      learning_(config.learning),
      unknown_(config.unknown),
      mac_age_(config.mac_age),
      group_word_(build.next_hops.group_word),
      sources_(build.layout, "source_mac", {Gress::kIngress, kSourceStage}, entries_of(config)),
      last_seen_(build.layout.registers<Nanos>("mac_last_seen", {Gress::kIngress, kDestinationStage},
                                               std::uint64_t{entries_of(config)} + 1)),
      destinations_(build.layout, "destination_mac", {Gress::kIngress, kDestinationStage}, entries_of(config)),
      drop_runt_(build.stats.counter("drop_runt", "shorter than an Ethernet header")),
      drop_bad_source_(build.stats.counter("drop_bad_source", "the source MAC address is a group's")),
      drop_link_local_(build.stats.counter("drop_link_local", "to 01:80:c2:00:00:0x, which ends at the next bridge")),
      drop_unknown_(
          build.stats.counter("drop_unknown_mac", "to a MAC address that is not known, with `unknown: drop`")),
      drop_same_port_(build.stats.counter("drop_same_port", "to a MAC address behind the port that it came in by")),
      flooded_(build.stats.counter("flooded", "packets to all other ports, as their destination is not known")),
      macs_learnt_(build.stats.counter("macs_learnt", "MAC addresses that were learnt")),
      macs_moved_(build.stats.counter("macs_moved", "MAC addresses that came in by another port than before")),
      macs_aged_(build.stats.counter("macs_aged", "learnt MAC addresses that were silent for `mac_age`")),
      macs_displaced_(build.stats.counter("macs_displaced", "learnt MAC addresses that made room for static ones")),
      mac_table_full_(build.stats.counter("mac_table_full", "MAC addresses not learnt: the table was full")),
      digests_lost_(build.stats.counter("digests_lost", "new MAC addresses that the control plane was not told of")) {
  if (!learning_) {
    build.layout.unused(sources_, "`learning: false`");
    build.layout.unused(last_seen_, "`learning: false`");
  }
  digests_.reserve(kDigestsMax);
  learnt_.reserve(entries_of(config));
}

MacChange Bridge::prepare(StaticMacs all) const {
  MacChange change;
  for (const auto& [key, to] : statics_)
    if (!all.contains(key)) change.gone.push_back(key);
  for (const auto& [key, to] : all)
    if (const auto before = statics_.find(key); before == statics_.end() || before->second != to)
      change.different.emplace_back(key, to);
  change.all = std::move(all);
  return change;
}

void Bridge::change(MacChange& change) {
  for (const MacKey& key : change.gone) {
    sources_.erase(key);
    destinations_.erase(key);
  }
  for (const auto& [key, to] : change.different) set_static(key, to);
  statics_.swap(change.all);
  if (change.different.empty() || learnt_.empty()) return;
  std::erase_if(learnt_, [this](const MacKey& key) {
    const std::uint32_t entry = sources_.lookup(key);
    return entry == kMiss || sources_.value(entry).is_static;
  });
}

// The configuration has not more of them than the tables hold.
void Bridge::set_static(const MacKey& key, const Destination& to) {
  while (destinations_.insert(key, to) == kMiss && make_room()) {
  }
  if (key.mac[0] & 1) return;  // no packet comes from a group
  while (sources_.insert(key, {to.port, true}) == kMiss && make_room()) {
  }
}

// Forgets the address that was learnt last.
bool Bridge::make_room() {
  if (learnt_.empty()) return false;
  const MacKey key = learnt_.back();
  learnt_.pop_back();
  const std::uint32_t entry = sources_.lookup(key);
  if (entry != kMiss && sources_.value(entry).is_static) return true;  // has become so in this change
  sources_.erase(key);
  destinations_.erase(key);
  macs_displaced_.add();
  return true;
}

void Bridge::digest(Pass& pass, const MacKey& key, Port port) {
  if (digests_.size() == kDigestsMax) return digests_lost_.add();
  if (digests_.empty()) pass.arm(learn_timer_, pass.now());
  digests_.push_back({key, port});
}

void Bridge::on_timer(Pass& pass, Timer& timer) {
  if (&timer == &learn_timer_)
    insert_digests(pass);
  else
    forget(pass);
}

void Bridge::insert_digests(Pass& pass) {
  for (const Digest& digest : digests_) {
    const std::uint32_t known = sources_.lookup(digest.key);
    if (known != kMiss && (sources_.value(known).is_static || sources_.value(known).port == digest.port))
      continue;  // told twice
    const std::uint32_t entry = sources_.insert(digest.key, {digest.port, false});
    if (entry == kMiss || destinations_.insert(digest.key, {0, 0, digest.port}) == kMiss) {
      if (entry != kMiss) sources_.erase(digest.key);
      mac_table_full_.add();
      continue;
    }
    for (unsigned pipe = 0; pipe < pipes_; pipe++) last_seen_.operate(pipe, entry, [&](Nanos& at) { at = pass.now(); });
    (known == kMiss ? macs_learnt_ : macs_moved_).add();
    if (known == kMiss) learnt_.push_back(digest.key);
  }
  digests_.clear();
  if (!age_timer_.armed() && !learnt_.empty()) pass.arm(age_timer_, pass.now() + mac_age_);
}

void Bridge::forget(Pass& pass) {
  Nanos oldest = pass.now();
  const auto silent = [&](const MacKey& key) {
    const std::uint32_t entry = sources_.lookup(key);
    Nanos seen = 0;
    for (unsigned pipe = 0; pipe < pipes_; pipe++)
      seen = std::max(seen, last_seen_.operate(pipe, entry, [](Nanos& at) { return at; }));
    if (seen + mac_age_ > pass.now()) {
      oldest = std::min(oldest, seen);
      return false;
    }
    sources_.erase(key);
    destinations_.erase(key);
    macs_aged_.add();
    return true;
  };
  std::erase_if(learnt_, silent);
  if (!learnt_.empty()) pass.arm(age_timer_, std::max(oldest + mac_age_, pass.now() + mac_age_ / kLooksPerAge));
}

void Bridge::report(Report& report) const {
  report.table("macs", learnt_.size(), [&](Report& row, std::size_t i) {
    row.text("mac", roce::mac_text(learnt_[i].mac));
    if (learnt_[i].vlan) row.count("vlan_number", learnt_[i].vlan);
    row.text("port", info_.ports[sources_.value(sources_.lookup(learnt_[i])).port]);
  });
}

}  // namespace rocebox::switch_model::forward
