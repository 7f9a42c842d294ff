// SPDX-License-Identifier: BSD-3-Clause
// The egress control: Themis-D, behind the queues, so that what it has counted the switch can no longer drop.
#pragma once
#include "kernels/themis/nack_packet.h"
#include "kernels/themis/shared.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/icrc.h"
#include "switch_model/tables/copied_table.h"

namespace rocebox::themis {

class Egress {
 public:
  Egress(const switch_model::Build& build, Shared& shared, ControlPlane& control, Counters& count);

  template <class Access>
  void run(Access& access, Pass& pass) {
    if (shared_.spray == Spray::kOff) return;
    std::array<PacketState*, kBatchMax> packets;
    std::array<std::uint32_t, kBatchMax> psns;
    unsigned count = 0;
    for (PacketState& p : pass) {
      if (p.drop_reason || is_own(p)) continue;
      if (p.instance == switch_model::Instance::kMirror) {
        mirror(access, pass, p);
      } else if (TaskWord::of(p, shared_.word).task == Task::kRecirculate) {
        recirculate(pass, p);
      } else if (QpWords::any(p, shared_.word)) {
        prefetch_line(&shared_.egress_qps.value(QpWords::entry(p, shared_.word)));
        psns[count] = roce::qpn_and_psn(p.packet).psn;
        packets[count++] = &p;
      }
    }
    for (unsigned i = 0; i < count; i++)
      shared_.destination.prefetch(access, *packets[i],
                                   shared_.egress_qps.value(QpWords::entry(*packets[i], shared_.word)).slot, psns[i]);
    for (unsigned i = 0; i < count; i++) known(access, pass, *packets[i], psns[i]);
  }

 private:
  // Made by the control plane, and done.
  static bool is_own(const PacketState& p) {
    return p.instance == switch_model::Instance::kGenerated && p.application == 0;
  }
  // A request to a NIC of the rack or a response from one, as ingress has found.
  template <class Access>
  void known(Access& access, Pass& pass, PacketState& p, std::uint32_t psn) {
    const std::uint32_t number = access.lookup(p, shared_.egress_qps, QpWords::entry(p, shared_.word));
    const QpEntry& entry = shared_.egress_qps.value(number);
    if (entry.generation != QpWords::generation(p, shared_.word)) return unjudged(pass, p);
    if (!entry.begun) [[unlikely]] {
      if (!entry.outbound) return left(pass, p, entry, psn);
      return unjudged(pass, p);
    }
    if (!entry.outbound) return data(access, pass, p, entry, psn);
    const Response response = response_of(p.packet);
    if (response.kind != ResponseKind::kNone) judge(access, pass, p, entry, response, psn);
  }

  template <class Access>
  void data(Access& access, Pass& pass, PacketState& p, const QpEntry& entry, std::uint32_t psn) {
    if (p.egress_port != entry.port) return count_.data_wrong_port.add();
    const bool sprayed = shared_.sprayed[p.packet.meta().opcode];
    const std::uint32_t width = request_width(p.packet, entry.path_mtu);
    const Decision decision = shared_.destination.data(access, p, entry.slot, psn, sprayed, width);
    if (decision.begins_anew) control_.begins_anew(pass, entry, psn, sprayed);
    if (!decision) return;
    count_.of_stash(decision.reason).add();
    if (decision.action == Action::kGenerate) generate(pass, p, decision);
  }

  // An ACK or NACK of the NIC in this rack.
  template <class Access>
  void judge(Access& access, Pass& pass, PacketState& p, const QpEntry& entry, const Response& response,
             std::uint32_t psn) {
    const TaskWord task = TaskWord::of(p, shared_.word);
    if (p.ingress_port != entry.port) {
      count_.answer_wrong_port.add();
      return go_on(pass, p, task);
    }
    if (p.pipe != entry.pipe) return;  // of what acknowledges only ACKs are turned back; what is judged is in its pipe
    if (roce::icrc_check(p.packet) != roce::IcrcStatus::kGood) {
      count_.answer_bad_icrc.add();
      return go_on(pass, p, task);
    }
    Decision decision;
    if (response.kind == ResponseKind::kNack) {
      const std::uint32_t qpn = static_cast<std::uint32_t>(roce::bth(p.packet).destination_qp);
      const Port exit = task.task == Task::kTurned ? task.exit : p.egress_port;
      decision = shared_.destination.nack(access, p, entry.slot, {psn, qpn, response.aeth, exit},
                                          ControlPlane::ticks(pass.now()));
    } else if (response.kind == ResponseKind::kOtherNak) {
      decision = shared_.destination.other_nak(access, p, entry.slot, psn);
    } else {
      decision = shared_.destination.ack(access, p, entry.slot, psn);
    }
    if (decision.begins_anew)
      control_.jumps(pass, entry, roce::psn_add(psn, response.kind == ResponseKind::kOtherNak ? 0 : 1));
    judged(pass, p, entry, task, decision);
  }

  // A request that leaves before its connection has begun.
  void left(Pass& pass, const PacketState& p, const QpEntry& entry, std::uint32_t psn) {
    control_.left(pass, entry, p.egress_port, psn, shared_.sprayed[p.packet.meta().opcode],
                  request_width(p.packet, entry.path_mtu));
  }

  // What was turned back goes on, whoever ended its connection meanwhile.
  void unjudged(Pass& pass, PacketState& p) {
    const TaskWord task = TaskWord::of(p, shared_.word);
    if (task.task != Task::kTurned) return;
    count_.turned_unjudged.add();
    go_on(pass, p, task);
  }
  void judged(Pass& pass, PacketState& p, const QpEntry& entry, const TaskWord& task, const Decision& decision);
  void go_on(Pass& pass, PacketState& p, const TaskWord& task);
  void generate(Pass& pass, PacketState& p, const Decision& decision);
  // A mirror that is to become a NACK. What was turned back, and another program's, is left alone.
  template <class Access>
  void mirror(Access& access, Pass& pass, PacketState& p) {
    const TaskWord task = TaskWord::of(p, shared_.word);
    if (task.task != Task::kGenerate) return;
    const std::uint32_t hop = next_hops_.routes ? p.metadata[next_hops_.hop_word] : 0;
    const bool routed = hop != 0 && hops_.value(access.lookup(p, hops_, hop - 1)).routed;
    make(pass, p, task, routed ? &neighbours_.value(access.lookup(p, neighbours_, task.exit)) : nullptr);
  }
  void make(Pass& pass, PacketState& p, const TaskWord& task, const switch_model::Mac* neighbour);
  void recirculate(Pass& pass, PacketState& p);

  Shared& shared_;
  ControlPlane& control_;
  Counters& count_;
  const switch_model::NextHops& next_hops_;
  switch_model::CopiedTable<switch_model::NextHop> hops_;    // whether the data were routed
  switch_model::CopiedTable<switch_model::Mac> neighbours_;  // by port
};

}  // namespace rocebox::themis
