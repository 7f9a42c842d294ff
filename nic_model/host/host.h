// SPDX-License-Identifier: BSD-3-Clause
// Host: a NIC's side towards its host, in verbs' terms and structures: post, poll, events. What runs on the host is a
// program, which the NIC calls in its own calls; so a host has no thread and no clock either.
#pragma once
#include <infiniband/verbs.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nic_model/core.h"
#include "nic_model/dpa/engine.h"
#include "nic_model/host/connections.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/progress.h"

namespace rocebox::nic_model {

class Host;

/// What runs on a host. Its calls come in the NIC's calls, one at a time.
class HostProgram {
 public:
  virtual ~HostProgram() = default;
  virtual void on_start(Host& /*host*/) {}
  /// An event of a completion queue that was armed; it is armed no more.
  virtual void on_completion(Host& /*host*/, CompletionQueue& /*cq*/) {}
  virtual void on_timer(Host& /*host*/, Timer& /*timer*/) {}
  virtual void on_async_event(Host& /*host*/, const AsyncEvent& /*event*/) {}
  virtual void on_connection_event(Host& /*host*/, const ConnectionEvent& /*event*/) {}
};

/// An address of datagrams, as ibv_create_ah makes it.
struct AddressHandle {
  mlx5_wqe_av address{};
};

class Host final : public HostSide, public dpa::Environment {
 public:
  Host(Core& core, ConnectionManager& manager, Neighbors& neighbors, std::function<void(Context&, Qp&)> resolve);

  /// Adds a program, which outlives the device; it is started in the device's next call, and before that
  /// HostSide::set_waker's waker is called. Its number.
  std::uint32_t submit(HostProgram& program);
  /// Calls `program`'s on_start again in the device's next call: something outside of the device's calls has changed.
  void start_again(std::uint32_t program);

  // For programs, in their calls. What can fail returns 0 or an errno, as verbs do.

  Nanos now() const override { return context_->now(); }
  std::uint64_t random() { return context_->random(); }
  std::uint32_t alloc_pd() override { return core_.memory.new_domain(); }
  Memory& memory() override { return core_.memory; }
  /// ibv_create_cq. `program`, whose on_completion() is called, stands for verbs' completion channel, arm() for
  /// ibv_req_notify_cq, and that call for ibv_get_cq_event, which needs no acknowledgement here.
  CompletionQueue* create_cq(std::uint32_t entries, std::uint32_t program);
  /// ibv_modify_cq with IBV_CQ_ATTR_MODERATE: an armed queue's event comes after `count` completions, or `period_us`
  /// microseconds after the first of them; 0: not by that. Both 0: at once. Errors do not wait. Completions that wait
  /// for their event are told by the new rule. EINVAL: beyond 16 bits.
  int modify_cq(CompletionQueue& cq, std::uint32_t count, std::uint32_t period_us);
  /// EBUSY while a queue pair uses it; EINVAL: a device program has it, whose process keeps it. Not in a callback of
  /// complete_all() with it.
  int destroy_cq(CompletionQueue& cq);
  ReceiveQueue* create_srq(const ibv_srq_init_attr& attributes);
  /// EBUSY while a queue pair uses it.
  int destroy_srq(ReceiveQueue& shared);
  /// Null, and errno says why: too many, or what the capacities cannot be.
  Qp* create_qp(const QpInit& init) override;
  void destroy_qp(Qp& qp);
  /// Counts queue pairs that somebody is going to create and keep, before anything runs; returns how many all have
  /// counted.
  std::uint64_t plan_queue_pairs(std::uint64_t count) { return planned_queue_pairs_ += count; }
  /// ibv_modify_qp: EINVAL for a transition that there is not, for attributes that are missing or out of range, or for
  /// a peer of whose address's family the NIC has none.
  int modify_qp(Qp& qp, const ibv_qp_attr& attributes, int mask);
  /// mlx5dv_modify_qp_udp_sport: which of equal paths its packets take from now on. EINVAL: port 0, or no connected
  /// queue pair that can send.
  int modify_udp_source_port(Qp& qp, std::uint16_t port);
  /// How a queue pair recovers from loss, in place of what the NIC's options say, which it has again when it is reset.
  /// Its peer's must be alike. EINVAL: it is no reliable one, or not in RESET or INIT; a value that the NIC's options
  /// could not have, or another `how` than go-back-N where the NIC counts credits.
  int modify_loss_recovery(Qp& qp, const LossRecovery& recovery);
  /// Whether the way to a connected queue pair's peer is still being asked for, which Linux's ibv_modify_qp waits for.
  bool is_resolving(const Qp& qp) const;
  int post_send(Qp& qp, const ibv_send_wr* list, const ibv_send_wr** bad, const AddressHandle* address = nullptr);
  int post_receive(Qp& qp, const ibv_recv_wr* list, const ibv_recv_wr** bad);
  int post_receive(ReceiveQueue& shared, const ibv_recv_wr* list, const ibv_recv_wr** bad);
  int poll(CompletionQueue& cq, std::span<ibv_wc> completions);
  void arm(CompletionQueue& cq, bool solicited_only = false) { cq.arm(solicited_only); }
  /// The timer's tag is replaced: `whose` stays in its low 32 bits.
  void arm_timer(std::uint32_t program, Timer& timer, Nanos at);
  void cancel_timer(Timer& timer);
  AddressHandle create_ah(const roce::Mac& mac, const roce::IpAddress& destination, std::uint32_t qpn,
                          std::uint32_t qkey, std::uint8_t traffic_class = 0, std::uint8_t hop_limit = 64) const;
  /// ibv_create_ah: the way to `destination` is looked up. A group's has the MAC address that is made of it, and
  /// kMulticastQpn where `qpn` is 0. 0, or EAGAIN: its next hop was asked for, and has not answered yet; EINVAL: the
  /// NIC has no address of its family.
  int create_ah(AddressHandle& handle, const roce::IpAddress& destination, std::uint32_t qpn, std::uint32_t qkey,
                std::uint8_t traffic_class = 0, std::uint8_t hop_limit = 64);
  /// ibv_attach_mcast: datagrams to `group` come to `qp`, too. 0 where they do already; EINVAL: it is a reliable one,
  /// or that is no group; ENOMEM: too many groups, or queue pairs of one.
  int attach_mcast(Qp& qp, const roce::IpAddress& group);
  /// Of a queue pair of type UC that is attached: where WRITEs to its groups go that name that window; an extension.
  /// EINVAL: it has none; ENOMEM: too many.
  int set_group_window(Qp& qp, const GroupWindow& window);
  void clear_group_window(Qp& qp, std::uint32_t name) { qp.responder.group_writes().clear(name); }
  int detach_mcast(Qp& qp, const roce::IpAddress& group) { return core_.groups.detach(group, qp.number()); }
  /// Of a program: its queue pairs, connections and timers, and the queue pairs of its device program. Its timers do
  /// not count while a queue pair has requests that nothing is due for.
  Progress progress(std::uint32_t program, const dpa::Process* device = nullptr) const;
  const NicConfig& config() const { return core_.config; }
  Connections& connections() { return connections_; }
  /// The NIC's DPA, which takes memory only once it is asked for.
  dpa::Engine& dpa();

  // HostSide.
  bool has_posted() const override { return !to_start_.empty() || port_has_changed_; }
  void set_waker(std::function<void()> waker) override { waker_ = std::move(waker); }

  // For the NIC.

  /// modify_qp() in a call of the NIC that is no program's.
  int modify_qp_in(Context& context, Qp& qp, const ibv_qp_attr& attributes, int mask);
  /// Programs are told, in the NIC's next call, that its port is up or down.
  void tell_port(bool up);
  /// Calls programs that are to be started.
  void start_programs(Context& context);
  void fire(Context& context, Timer& timer);
  /// Tells programs of completions and asynchronous events until there is none.
  void settle(Context& context) {
    if (core_.completed.empty() && core_.events.empty() && !manager_.has_events() && !dpa_) [[likely]]
      return;
    settle_all(context);
  }
  /// Brings nearer what settle() looks at.
  void prefetch() const {
    prefetch_far_lines(&to_start_, this + 1);
    prefetch_far_line(&manager_);
  }
  void report(Report& report) const;
  void on_device_timer(Context& context, const Timer& timer);

  // For the DPA, in calls of the device.

  CompletionQueue* create_cq(std::uint32_t entries, const CqMemory& memory) override;
  Qp* find_qp(std::uint32_t qpn) const { return core_.find(qpn); }
  /// Who posts by itself has posted up to `producer`.
  void ring_send_doorbell(Qp& qp, std::uint16_t producer);
  bool ring_send_doorbell(std::uint32_t domain, std::uint32_t qpn, std::uint16_t producer) override;
  void publish_nothing(CompletionQueue& cq) override { core_.complete_nothing(*context_, cq); }
  void arm_device_timer(Timer& timer, Nanos at) override { context_->arm(timer, at); }

 private:
  friend class Connections;
  class InCall;
  int decode(CompletionQueue& cq, const mlx5_cqe64& cqe, ibv_wc& completion);
  int move(Qp& qp, const ibv_qp_attr& attributes, int mask);
  void leave_lists(Qp& qp);
  void reset(Qp& qp);
  void forget_timer(const Timer& timer);
  void forget_events(bool (*is_its)(ibv_event_type), std::uint32_t number);
  void fetch_posted(Qp& qp);
  void tell_programs();
  void settle_all(Context& context);

  Core& core_;
  ConnectionManager& manager_;
  Neighbors& neighbors_;
  Connections connections_;
  std::function<void(Context&, Qp&)> resolve_;  // finds the way to a queue pair's peer
  std::function<void()> waker_;
  std::uint64_t planned_queue_pairs_ = 0;
  std::vector<HostProgram*> programs_;
  std::vector<std::vector<const Timer*>> armed_;  // by program, in no order
  std::vector<std::uint32_t> to_start_;
  bool port_has_changed_ = false;                   // programs have not been told yet
  Context* context_ = nullptr;                      // of the call that goes on
  std::vector<CompletionQueue*> completed_;         // that are being told of; null: it was destroyed since
  std::vector<std::optional<AsyncEvent>> telling_;  // events that are being told; empty: its object was destroyed since
  std::size_t first_free_ = 0;                      // of the places of queue pairs: none before it is free
  std::unique_ptr<dpa::Engine> dpa_;
};

}  // namespace rocebox::nic_model
