// SPDX-License-Identifier: BSD-3-Clause
// The ingress control: Themis-S, and the way of answers to the pipe where Themis-D judges them.
#pragma once
#include <optional>

#include "kernels/themis/nack_packet.h"
#include "kernels/themis/shared.h"
#include "runtime/roce/icrc.h"
#include "switch_model/forward/flow_bytes.h"
#include "switch_model/hash.h"

namespace rocebox::themis {

class Ingress {
 public:
  Ingress(const Config& config, const switch_model::Build& build, Shared& shared, ControlPlane& control,
          Counters& count);

  template <class Access>
  void run(Access& access, Pass& pass) {
    if (shared_.spray == Spray::kOff) return;
    Selection selection;
    for (PacketState& p : pass) {
      if (p.drop_reason || !roce::is_roce(p.packet)) continue;
      const roce::OpcodeInfo& info = roce::opcode_info(p.packet);
      if (info.service == roce::Service::kRc)
        selection.add(p);
      else if (info.service == roce::Service::kUd && roce::bth(p.packet).destination_qp == kManagementQpn)
        control_.management(pass, p);
    }
    selection.lookup(access, shared_.ingress_qps);
    for (unsigned i = 0; i < selection.count; i++)
      if (selection.entries[i] != kMiss) prefetch(access, *selection.packets[i], selection.entries[i]);
    for (unsigned i = 0; i < selection.count; i++) {
      PacketState& p = *selection.packets[i];
      if (selection.entries[i] == kMiss)
        control_.unknown(pass, p, selection.keys[i]);
      else
        known(access, pass, p, shared_.ingress_qps.value(selection.entries[i]));
    }
  }

  void set_path_map(const Config& config);

 private:
  static constexpr std::uint32_t kManagementQpn = 1;

  template <class Access>
  void prefetch(Access& access, const PacketState& p, std::uint32_t number) {
    const QpEntry& entry = shared_.ingress_qps.value(number);
    access.prefetch(p, shared_.hits, entry.connection);
    if (entry.outbound == roce::opcode_info(p.packet).has(roce::kIsRequest))
      shared_.source.prefetch(access, p, entry.slot.number, static_cast<std::uint32_t>(roce::bth(p.packet).psn));
  }

  template <class Access>
  void known(Access& access, Pass& pass, PacketState& p, const QpEntry& entry) {
    if (p.instance == switch_model::Instance::kNormal) {
      access.write(p, shared_.hits, entry.connection, true);
      if (entry.learnt) control_.learnt(pass, p, entry);
      if (entry.path_mtu == 0) control_.path_mtu(pass, entry, path_mtu_of(p.packet));
    }
    if (roce::opcode_info(p.packet).has(roce::kIsRequest)) {
      if (entry.outbound)
        spray(access, pass, p, entry);
      else if (!entry.begun)
        control_.first_request(pass, entry, static_cast<std::uint32_t>(roce::bth(p.packet).psn));
      return;
    }
    const Answer answer = answer_of(p.packet);
    if (answer.kind == AnswerKind::kNone) return;
    if (entry.outbound)
      turn(p, entry);
    else if (answer.kind == AnswerKind::kNack)
      nack(access, pass, p, entry);
  }

  // Equation 1 and its exceptions.
  template <class Access>
  void spray(Access& access, Pass& pass, PacketState& p, const QpEntry& entry) {
    if (!shared_.sprayed[p.packet.meta().opcode]) return;
    if (p.ingress_port != entry.port) return count_.request_wrong_port.add();
    const std::uint64_t draw = pass.random();
    const auto psn = static_cast<std::uint32_t>(roce::bth(p.packet).psn);
    std::uint32_t base = 0;
    const switch_model::EcmpGroup* group = nullptr;
    if (shared_.spray == Spray::kEgressPort) {
      group = next_hops_.group_of(p.metadata);
      if (!group || group->count != shared_.source.paths()) return count_.not_sprayed_group.add();
      base = p.metadata[next_hops_.hop_word] - 1 - group->first;
    }
    const PathChoice choice = shared_.source.data(access, p, entry.slot.number, psn, base, draw);
    count_.sprayed.add();
    if (choice.rerouted_nacked) count_.rerouted_nacked.add();
    if (choice.rerouted_again) count_.rerouted_again.add();
    if (choice.rerouted_avoided) count_.rerouted_avoided.add();
    if (!group) return change_source_port(access, p, access.read(p, path_map_, choice.path));
    leave_by(p, group->first + choice.path);
  }

  // The new flow may have another way out of this switch already: ECMP chooses among its own next hops anew.
  template <class Access>
  void change_source_port(Access& access, PacketState& p, std::uint16_t delta) {
    const auto* udp = p.packet.header<roce::Udp>(p.packet.meta().udp_offset);
    roce::edit_number<2>(p.packet, p.packet.meta().udp_offset, udp->source_port ^ delta);
    const switch_model::EcmpGroup* group = next_hops_.filled ? next_hops_.group_of(p.metadata) : nullptr;
    if (!group || group->count == 1) return;
    std::uint8_t bytes[switch_model::forward::kFlowBytesMax];
    const unsigned size = switch_model::forward::flow_bytes(p.packet, bytes);
    leave_by(p, group->pick(access.hash(p, *ecmp_, {bytes, size}), ecmp_->width()));
  }
  void leave_by(PacketState& p, std::uint32_t hop) {
    p.metadata[next_hops_.hop_word] = hop + 1;
    p.egress_port = next_hops_.hops[hop].port;
  }

  // A NACK on its way to the NIC in this rack.
  template <class Access>
  void nack(Access& access, Pass& pass, PacketState& p, const QpEntry& entry) {
    if (p.egress_port != entry.port) return count_.answer_wrong_port.add();
    if (p.pipe != entry.pipe) {
      if (p.instance != switch_model::Instance::kRecirculated) TaskWord{Task::kRecirculate}.store(p, shared_.word);
      return;
    }
    if (roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return count_.answer_bad_icrc.add();
    roce::Bth& bth = roce::bth(p.packet);
    const bool avoid = bth.fecn_becn_resv6 & shared_.avoidance_mask;
    const bool believed = shared_.source.nack(access, p, entry.slot.number, static_cast<std::uint32_t>(bth.psn), avoid);
    if (!avoid) return;
    bth.fecn_becn_resv6 &= static_cast<std::uint8_t>(~shared_.avoidance_mask);  // not covered by the ICRC
    if (!believed) return count_.avoidance_refused.add();
    count_.avoidance_signals.add();
    pass.note(p, "avoid");
  }

  void turn(PacketState& p, const QpEntry& entry);

  Shared& shared_;
  ControlPlane& control_;
  Counters& count_;
  const switch_model::SwitchInfo& info_;
  const switch_model::NextHops& next_hops_;
  RegisterArray<std::uint16_t> path_map_;
  std::optional<switch_model::HashUnit> ecmp_;  // forward's, once more
  std::uint8_t turned_class_;
};

}  // namespace rocebox::themis
