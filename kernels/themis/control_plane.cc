// SPDX-License-Identifier: BSD-3-Clause
// What the control plane overhears, but for the connection manager: handshakes.cc. What it changes stands in
// connections.cc and ageing.cc.
#include "kernels/themis/control_plane.h"

#include <algorithm>

#include "kernels/themis/responses.h"
#include "runtime/kernel/stimulus.h"
#include "runtime/roce/address.h"
#include "runtime/roce/icrc.h"

namespace rocebox::themis {
namespace {

flows::Pairing::Limits pairing_limits(const Config& config) {
  // Twice what can have state: handshakes and connections that are not paired yet name directions, too.
  return {.directions = static_cast<std::uint32_t>(4 * config.qps),
          .candidates = kCandidatesMax,
          .window = static_cast<std::uint32_t>(config.window),
          // No sender has more packets unacknowledged: so many behind an ACK are no silence.
          .silence = static_cast<std::uint16_t>(std::clamp<std::int64_t>(config.window, 16, UINT16_MAX)),
          .keep_recent = true};
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
  placed_.resize(info.pipes);
  told_.reserve(all);
  stimuli_.reserve(std::size_t{2} * kStimuliMax);
  released_.reserve(all);
  tell(config.connections);
}

// The port of the NIC in this rack, of a packet that crosses the rack's border; kNoPort for others.
Port ControlPlane::local_port(const PacketState& p) const {
  const bool from_host = state_.is_host[p.ingress_port];
  const bool to_host = state_.is_host[p.egress_port];
  if (from_host == to_host || p.multicast_group) return switch_model::kNoPort;
  return from_host ? p.ingress_port : p.egress_port;
}

// Tells the pairing what a packet says. False when it says nothing.
bool ControlPlane::observe(const PacketState& p, std::uint32_t direction) {
  const roce::OpcodeInfo& info = roce::opcode_info(p.packet);
  const auto psn = static_cast<std::uint32_t>(roce::bth(p.packet).psn);
  if (info.has(roce::kIsRequest)) {
    const std::uint32_t width = request_width(p.packet, path_mtu_of_direction(direction));
    pairing_.request(direction, psn, roce::psn_add(psn, std::int64_t{width} - 1));
    return true;
  }
  const Response response = response_of(p.packet);
  if (response.kind == ResponseKind::kNone || roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return false;
  const bool ack = response.kind == ResponseKind::kAck;
  // A pair is not guessed from a NACK: to guess wrongly there would be to judge by another QP's state.
  if (pairing_.partner(direction) == flows::Pairing::kNone && (!learning_ || !ack)) return false;
  pairing_.response(direction, psn, ack ? flows::ResponseKind::kReceived : flows::ResponseKind::kNotReceived);
  return true;
}

// Both directions of a connection have one path MTU.
std::uint16_t ControlPlane::path_mtu_of_direction(std::uint32_t direction) const {
  const std::uint32_t partner = pairing_.partner(direction);
  const std::uint16_t own = notes_[direction].path_mtu;
  return own || partner == flows::Pairing::kNone ? own : notes_[partner].path_mtu;
}

void ControlPlane::unknown(Pass& pass, const PacketState& p) {
  const Port port = local_port(p);
  if (port == switch_model::kNoPort) return;
  if (response_of(p.packet).kind == ResponseKind::kNack) count_.nack_unpaired.add();
  const DirectionKey key{roce::addresses(p.packet), static_cast<std::uint32_t>(roce::bth(p.packet).destination_qp)};
  std::uint32_t direction = pairing_.find(key);
  if (direction == flows::Pairing::kNone && make_room(1, pass.now())) direction = pairing_.add(key);
  if (direction == flows::Pairing::kNone) return count_.pairing_full.add();
  meet(pass, p, direction, port);
}

void ControlPlane::first(Pass& pass, const PacketState& p, const QpEntry& entry) {
  const Port port = local_port(p);
  if (port == switch_model::kNoPort) return;
  if (response_of(p.packet).kind == ResponseKind::kNack) count_.nack_unpaired.add();
  const Connection& c = connections_[entry.connection];
  meet(pass, p, entry.outbound ? c.outbound : c.inbound, port);
}

// A packet of a direction without state: it may be what makes its pair sure.
void ControlPlane::meet(Pass& pass, const PacketState& p, std::uint32_t direction, Port port) {
  heard(direction, port, pass.now());
  DirectionNotes& notes = notes_[direction];
  if (notes.path_mtu == 0) notes.path_mtu = path_mtu_of(p.packet);
  arm_ageing(pass);
  observe(p, direction);
  const std::uint32_t partner = pairing_.partner(direction);
  if (partner == flows::Pairing::kNone || !pairing_.confirmed(direction) || notes.refused) return;
  ask(pass, ingress_changes_, {What::kMake, port, false, state_.is_host[p.ingress_port] ? direction : partner, 0});
}

void ControlPlane::doubted(Pass& pass, const PacketState& p, const QpEntry& entry) {
  const Connection& c = connections_[entry.connection];
  observe(p, entry.outbound ? c.outbound : c.inbound);
  if (pairing_.partner(c.outbound) != c.inbound || !pairing_.confirmed(c.outbound))
    ask(pass, ingress_changes_, {What::kUndo, 0, false, entry.connection, 0});
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

void ControlPlane::left(Pass& pass, const QpEntry& entry, Port port, std::uint32_t psn, bool sprayed,
                        std::uint32_t width) {
  if (entry.port != switch_model::kNoPort) return;  // its first PSN is not known, or it has ended
  ask(pass, egress_changes_, {What::kLeft, port, sprayed, entry.connection, psn, 0, width});
}

void ControlPlane::jumps(Pass& pass, const QpEntry& entry, std::uint32_t to) {
  ask(pass, egress_changes_, {What::kJump, 0, false, entry.connection, to});
}

void ControlPlane::stashed(Pass& pass, const QpEntry& entry, Packet nack) {
  Connection& c = connections_[entry.connection];
  const roce::Bth& bth = roce::bth(nack);
  NackHeaders& headers = c.nack_headers;
  headers = {roce::reversed_underlay(nack), static_cast<std::uint16_t>(bth.pkey), bth.mig_req()};
  std::swap(headers.underlay.source_mac, headers.underlay.destination_mac);  // as it was on its way
  std::swap(headers.underlay.addresses.source, headers.underlay.addresses.destination);
  if (stash_timeout_ == 0) return;
  if (!c.stash_watched) stashes_.push_back(entry.connection);
  c.stash_watched = true;
  // Not armed here: the order of timers must not depend on which control is called first.
  if (!stash_timer_.armed()) arm_work(pass);
}

void ControlPlane::stimuli(std::vector<Stimulus>& all) const {
  std::vector<Stimulus> ways(all);
  std::erase_if(ways, [](const Stimulus& way) { return !way.frame.empty(); });  // not of RoCE
  if (ways.empty()) ways.resize(1);
  for (Stimulus& way : ways)
    for (const flows::DirectionKey& direction : stimuli_) {
      way.underlay.addresses = direction.addresses;
      way.underlay.ip_version = roce::is_ipv4(direction.addresses.source) ? 4 : 6;
      way.destination_qp = direction.destination_qp;
      all.push_back(way);
    }
}

// One timer for the changes of an instant, whichever control asks first.
void ControlPlane::ask(Pass& pass, std::vector<Change>& changes, const Change& change) {
  if (changes.size() == kChangesMax) return count_.changes_lost.add();
  changes.push_back(change);
  if (change.what != What::kMake) changes.back().direction = connections_[change.number].outbound;
  arm_work(pass);
}

void ControlPlane::arm_work(Pass& pass) {
  if (!work_timer_.armed()) pass.arm(work_timer_, pass.now());
}

}  // namespace rocebox::themis
