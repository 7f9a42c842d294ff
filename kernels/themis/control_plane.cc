// SPDX-License-Identifier: BSD-3-Clause
// What the control plane overhears. What it changes stands in connections.cc and ageing.cc.
#include "kernels/themis/control_plane.h"

#include "kernels/themis/answers.h"
#include "runtime/kernel/stimulus.h"
#include "runtime/roce/address.h"
#include "runtime/roce/icrc.h"

namespace rocebox::themis {
namespace {

constexpr std::size_t kStimuliMax = 4;

roce::Pairing::Limits pairing_limits(const Config& config) {
  // Twice what can have state: handshakes and connections that are not paired yet name halves, too.
  return {.halves = static_cast<std::uint32_t>(4 * config.qps)};
}

}  // namespace

ControlPlane::ControlPlane(const Config& config, const switch_model::SwitchInfo& info, State state, Counters& count)
    : info_(info),
      state_(state),
      count_(count),
      stash_timeout_(config.stash_timeout),
      qp_timeout_(config.qp_timeout),
      window_(static_cast<std::uint32_t>(config.window)),
      learning_(config.learning),
      pairing_(pairing_limits(config)),
      notes_(static_cast<std::size_t>(4 * config.qps)),
      free_slots_(info.pipes) {
  const std::uint32_t slots = config.slots_per_pipe(info);
  for (auto& free : free_slots_)
    for (std::uint32_t slot = slots; slot-- > 0;) free.push_back(slot);
  const auto all = static_cast<std::uint32_t>(config.qps);
  connections_.resize(all);
  free_connections_.reserve(all);
  for (std::uint32_t number = all; number-- > 0;) free_connections_.push_back(number);
  for (auto* changes : {&ingress_changes_, &egress_changes_, &carried_out_}) changes->reserve(2 * kChangesMax);
  stashes_.reserve(all);
  for (const ConnectionConfig& row : config.connections) {
    pairing_.connect(row.local_address, static_cast<std::uint32_t>(row.local_qpn), row.remote_address,
                     static_cast<std::uint32_t>(row.remote_qpn), roce::PairSource::kConfig);
    if (stimuli_.size() < kStimuliMax) {
      stimuli_.push_back({{row.remote_address, row.local_address}, static_cast<std::uint32_t>(row.local_qpn)});
      stimuli_.push_back({{row.local_address, row.remote_address}, static_cast<std::uint32_t>(row.remote_qpn)});
    }
    if (row.first_psn < 0) continue;
    HalfNotes& inbound =
        notes_[pairing_.find({{row.remote_address, row.local_address}, static_cast<std::uint32_t>(row.local_qpn)})];
    inbound.first_psn = static_cast<std::uint32_t>(row.first_psn);
    inbound.first_psn_known = true;
  }
}

// The port of the NIC in this rack, of a packet that crosses the rack's border; kNoPort for others.
Port ControlPlane::local_port(const PacketState& p) const {
  const bool from_host = state_.is_host[p.ingress_port];
  const bool to_host = state_.is_host[p.egress_port];
  if (from_host == to_host || p.multicast_group) return switch_model::kNoPort;
  return from_host ? p.ingress_port : p.egress_port;
}

// Tells the pairing what a packet says. False when it says nothing.
bool ControlPlane::observe(const PacketState& p, std::uint32_t half) {
  const roce::OpcodeInfo& info = roce::opcode_info(p.packet);
  const auto psn = static_cast<std::uint32_t>(roce::bth(p.packet).psn);
  if (info.has(roce::kIsRequest)) {
    const std::uint32_t width = request_width(p.packet, path_mtu_of_half(half));
    pairing_.request(half, psn, roce::psn_add(psn, std::int64_t{width} - 1));
    return true;
  }
  const Answer answer = answer_of(p.packet);
  if (answer.kind == AnswerKind::kNone || roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return false;
  const bool ack = answer.kind == AnswerKind::kAck;
  // A pair is not guessed from a NACK: to guess wrongly there would be to judge by another QP's state.
  if (pairing_.partner(half) == roce::Pairing::kNone && (!learning_ || !ack)) return false;
  pairing_.answer(half, psn, ack ? roce::AnswerKind::kReceived : roce::AnswerKind::kNotReceived);
  return true;
}

// Both directions of a connection have one path MTU.
std::uint16_t ControlPlane::path_mtu_of_half(std::uint32_t half) const {
  const std::uint32_t partner = pairing_.partner(half);
  const std::uint16_t own = notes_[half].path_mtu;
  return own || partner == roce::Pairing::kNone ? own : notes_[partner].path_mtu;
}

void ControlPlane::unknown(Pass& pass, const PacketState& p) {
  const Port port = local_port(p);
  if (port == switch_model::kNoPort) return;
  if (answer_of(p.packet).kind == AnswerKind::kNack) count_.nack_unpaired.add();
  const HalfKey key{roce::addresses(p.packet), static_cast<std::uint32_t>(roce::bth(p.packet).destination_qp)};
  const std::uint32_t half = pairing_.add(key);
  if (half == roce::Pairing::kNone) return count_.pairing_full.add();
  HalfNotes& notes = notes_[half];
  notes.used = true;
  notes.seen = pass.now();
  if (notes.path_mtu == 0) notes.path_mtu = path_mtu_of(p.packet);
  arm_ageing(pass);
  observe(p, half);
  const std::uint32_t partner = pairing_.partner(half);
  if (partner == roce::Pairing::kNone || !pairing_.confirmed(half) || notes.refused) return;
  ask(pass, ingress_changes_, {What::kMake, port, false, state_.is_host[p.ingress_port] ? half : partner, 0});
}

void ControlPlane::learnt(Pass& pass, const PacketState& p, const QpEntry& entry) {
  const Connection& c = connections_[entry.connection];
  observe(p, entry.outbound ? c.outbound : c.inbound);
  if (pairing_.partner(c.outbound) != c.inbound || !pairing_.confirmed(c.outbound))
    ask(pass, ingress_changes_, {What::kUndo, 0, false, entry.connection, 0});
}

void ControlPlane::management(Pass& pass, const PacketState& p) {
  if (roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return;
  const roce::Pairing::News news = pairing_.observe_mad(p.packet);
  if (!news.begins && !news.ends) return;
  const Port port = local_port(p);
  for (unsigned i = 0; i < 2; i++) {
    if (news.halves[i] == roce::Pairing::kNone) continue;
    HalfNotes& notes = notes_[news.halves[i]];
    notes.used = true;
    notes.seen = pass.now();
    notes.refused = false;
    if (notes.connection) ask(pass, ingress_changes_, {What::kEnd, 0, news.ends, notes.connection - 1, 0});
    notes.first_psn_known = news.begins;
    notes.first_psn = news.psns[i];
    if (news.begins || pairing_.source(news.halves[i]) == roce::PairSource::kConfig) pairing_.restart(news.halves[i]);
  }
  arm_ageing(pass);
  if (!news.begins || port == switch_model::kNoPort) return;
  // halves[0] goes the way of this packet, a REP.
  ask(pass, ingress_changes_, {What::kMake, port, false, news.halves[state_.is_host[p.ingress_port] ? 0 : 1], 0});
}

void ControlPlane::path_mtu(Pass& pass, const QpEntry& entry, std::uint16_t bytes) {
  if (bytes) ask(pass, ingress_changes_, {What::kPathMtu, 0, false, entry.connection, bytes});
}

void ControlPlane::first_request(Pass& pass, const QpEntry& entry, std::uint32_t psn) {
  ask(pass, ingress_changes_, {What::kBegin, 0, false, entry.connection, psn});
}

void ControlPlane::begins_anew(Pass& pass, const QpEntry& entry, std::uint32_t psn, bool sprayed) {
  ask(pass, egress_changes_, {What::kAnew, 0, sprayed, entry.connection, psn});
}

void ControlPlane::jumps(Pass& pass, const QpEntry& entry, std::uint32_t to) {
  ask(pass, egress_changes_, {What::kJump, 0, false, entry.connection, to});
}

void ControlPlane::stashed(Pass& pass, const QpEntry& entry, Packet nack) {
  Connection& c = connections_[entry.connection];
  c.nack_underlay = roce::reversed_underlay(nack);  // and turned again: as it was on its way
  std::swap(c.nack_underlay.source_mac, c.nack_underlay.destination_mac);
  std::swap(c.nack_underlay.addresses.source, c.nack_underlay.addresses.destination);
  const roce::Bth& bth = roce::bth(nack);
  c.pkey = static_cast<std::uint16_t>(bth.pkey);
  c.mig_req = bth.mig_req();
  if (stash_timeout_ == 0) return;
  if (!c.stash_watched) stashes_.push_back(entry.connection);
  c.stash_watched = true;
  // Not armed here: the order of timers must not depend on which control is called first.
  if (!stashes_armed_) arm_work(pass);
}

void ControlPlane::stimuli(std::vector<Stimulus>& all) const {
  std::vector<Stimulus> ways(all);
  std::erase_if(ways, [](const Stimulus& way) { return !way.frame.empty(); });  // not of RoCE
  if (ways.empty()) ways.resize(1);
  for (Stimulus& way : ways)
    for (const roce::HalfKey& half : stimuli_) {
      way.underlay.addresses = half.addresses;
      way.underlay.ip_version = roce::is_ipv4(half.addresses.source) ? 4 : 6;
      way.destination_qp = half.destination_qp;
      all.push_back(way);
    }
}

// One timer for the changes of an instant, whichever control asks first.
void ControlPlane::ask(Pass& pass, std::vector<Change>& changes, const Change& change) {
  if (changes.size() == kChangesMax) return count_.changes_lost.add();
  changes.push_back(change);
  if (change.what != What::kMake) changes.back().half = connections_[change.number].outbound;
  arm_work(pass);
}

void ControlPlane::arm_work(Pass& pass) {
  if (work_armed_) return;
  work_armed_ = true;
  pass.arm(pass.now(), kWorkTimer);
}

}  // namespace rocebox::themis
