// SPDX-License-Identifier: BSD-3-Clause
// The ingress control: Themis-S, and the way of ACKs and NACKs to the pipe where Themis-D judges them.
#pragma once
#include <array>
#include <optional>

#include "kernels/themis/nack_packet.h"
#include "kernels/themis/shared.h"
#include "runtime/roce/icrc.h"
#include "switch_model/forward/flow_bytes.h"
#include "switch_model/hash.h"
#include "switch_model/tables/copied_table.h"

namespace rocebox::themis {

class Ingress {
 public:
  Ingress(const Config& config, const switch_model::Build& build, Shared& shared, ControlPlane& control,
          Counters& count);

  template <class Access>
  void run(Access& access, Pass& pass) {
    if (shared_.spray == Spray::kOff) return;
    if (control_.waits()) [[unlikely]]
      control_.wake(pass);
    std::array<PacketState*, kBatchMax> packets;
    std::array<QpKey, kBatchMax> keys;
    std::array<std::uint32_t, kBatchMax> psns, entries;
    unsigned count = 0;
    for (PacketState& p : pass) {
      QpWords::clear(p, shared_.word);
      if (p.drop_reason || !roce::is_roce(p.packet)) continue;
      const roce::OpcodeInfo& info = roce::opcode_info(p.packet);
      if (info.service == roce::Service::kRc) {
        const auto [qpn, psn] = roce::qpn_and_psn(p.packet);
        keys[count].read(p.packet, qpn);
        psns[count] = psn;
        packets[count++] = &p;
      } else if (info.service == roce::Service::kUd && roce::bth(p.packet).destination_qp == kManagementQpn) {
        control_.management(pass, p);
      }
    }
    access.lookup_bulk({packets.data(), count}, shared_.ingress_qps, {keys.data(), count}, {entries.data(), count},
                       [&](std::size_t i, std::uint32_t entry) { prefetch(access, *packets[i], entry, psns[i]); });
    for (unsigned i = 0; i < count; i++) {
      if (entries[i] == kMiss)
        control_.unknown(pass, *packets[i]);
      else
        known(access, pass, *packets[i], entries[i], psns[i]);
    }
  }

  void set_path_map(const Config& config);

 private:
  static constexpr std::uint32_t kManagementQpn = 1;

  template <class Access>
  void prefetch(Access& access, const PacketState& p, std::uint32_t number, std::uint32_t psn) {
    const QpEntry& entry = shared_.ingress_qps.value(number);
    if (entry.outbound == roce::opcode_info(p.packet).has(roce::kIsRequest))
      shared_.source.prefetch(access, p, entry.slot.number, psn);
  }

  template <class Access>
  void known(Access& access, Pass& pass, PacketState& p, std::uint32_t number, std::uint32_t psn) {
    const QpEntry& entry = shared_.ingress_qps.value(number);
    if (p.instance == switch_model::Instance::kNormal) {
      access.write(p, shared_.hits, entry.connection, true);
      if (entry.watched && !watched(pass, p, entry, number)) return;
      if (entry.path_mtu == 0) control_.path_mtu(pass, entry, path_mtu_of(p.packet));
    }
    if (roce::opcode_info(p.packet).has(roce::kIsRequest)) {
      if (entry.outbound) return spray(access, pass, p, entry, psn);
      QpWords::store(p, shared_.word, number, entry.generation);
      if (!entry.begun) control_.first_request(pass, entry, psn);
      return;
    }
    const Response response = response_of(p.packet);
    if (response.kind == ResponseKind::kNone) return;
    if (entry.outbound) {
      QpWords::store(p, shared_.word, number, entry.generation);
      turn(p, entry);
    } else if (response.kind == ResponseKind::kNack) {
      nack(access, pass, p, entry, psn);
    }
  }

  // Equation 1 and its exceptions.
  template <class Access>
  void spray(Access& access, Pass& pass, PacketState& p, const QpEntry& entry, std::uint32_t psn) {
    if (!shared_.sprayed[p.packet.meta().opcode]) return;
    if (p.ingress_port != entry.port) return count_.request_wrong_port.add();
    std::uint32_t base = 0;
    const switch_model::EcmpGroup* group = nullptr;
    if (shared_.spray == Spray::kEgressPort) {
      group = next_hops_.group_of(p.metadata);
      if (!group || group->count != shared_.source.paths()) return count_.not_sprayed_group.add();
      base = p.metadata[next_hops_.hop_word] - 1 - group->first;
    }
    const PathChoice choice =
        shared_.source.data(access, p, entry.slot.number, psn, base, [&pass] { return pass.random(); });
    count_.sprayed.add();
    if (choice.rerouted) [[unlikely]] {
      if (choice.rerouted & kReroutedNacked) count_.rerouted_nacked.add();
      if (choice.rerouted & kReroutedAgain) count_.rerouted_again.add();
      if (choice.rerouted & kReroutedAvoided) count_.rerouted_avoided.add();
    }
    if (!group) return change_source_port(access, p, access.read(p, path_map_, choice.path));
    leave_by(access, p, group->first + choice.path);
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
    leave_by(access, p, group->pick(access.hash(p, *ecmp_, {bytes, size}), ecmp_->width()));
  }
  template <class Access>
  void leave_by(Access& access, PacketState& p, std::uint32_t hop) {
    p.metadata[next_hops_.hop_word] = hop + 1;
    p.egress_port = hops_.value(access.lookup(p, hops_, hop)).port;
  }

  // A NACK on its way to the NIC in this rack.
  template <class Access>
  void nack(Access& access, Pass& pass, PacketState& p, const QpEntry& entry, std::uint32_t psn) {
    if (p.egress_port != entry.port) return count_.answer_wrong_port.add();
    if (p.pipe != entry.pipe) {
      if (p.instance != switch_model::Instance::kRecirculated) TaskWord{Task::kRecirculate}.store(p, shared_.word);
      return;
    }
    if (roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) return count_.answer_bad_icrc.add();
    roce::Bth& bth = roce::bth(p.packet);
    const bool avoid = bth.fecn_becn_resv6 & shared_.avoidance_mask;
    const bool believed = shared_.source.nack(access, p, entry.slot.number, psn, avoid);
    if (!avoid) return;
    bth.fecn_becn_resv6 &= static_cast<std::uint8_t>(~shared_.avoidance_mask);  // not covered by the ICRC
    if (!believed) return count_.avoidance_refused.add();
    count_.avoidance_signals.add();
    pass.note(p, "avoid");
  }

  void turn(PacketState& p, const QpEntry& entry);
  bool watched(Pass& pass, PacketState& p, const QpEntry& entry, std::uint32_t number);

  Shared& shared_;
  ControlPlane& control_;
  Counters& count_;
  const switch_model::SwitchInfo& info_;
  const switch_model::NextHops& next_hops_;
  RegisterArray<std::uint16_t> path_map_;
  switch_model::CopiedTable<switch_model::NextHop> hops_;  // forward's, for the hop that is taken in place of its own
  std::optional<switch_model::HashUnit> ecmp_;             // forward's, once more
  std::uint8_t turned_class_;
};

}  // namespace rocebox::themis
