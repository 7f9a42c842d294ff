// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/host.h"
#include "runtime/roce/multicast.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocebox::nic_model {

namespace {

std::uint32_t program_of(const Timer& timer) { return static_cast<std::uint32_t>(timer_whose(timer.tag()) >> 32); }

}  // namespace

// The context of a call of the device, for as long as it goes on.
class Host::InCall {
 public:
  InCall(Host& host, Context& context) : host_(host), before_(std::exchange(host.context_, &context)) {}
  ~InCall() { host_.context_ = before_; }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  Host& host_;
  Context* before_;
};

Host::Host(Core& core, ConnectionManager& manager, Neighbors& neighbors, std::function<void(Context&, Qp&)> resolve)
    : core_(core),
      manager_(manager),
      neighbors_(neighbors),
      connections_(*this, manager),
      resolve_(std::move(resolve)) {}

std::uint32_t Host::submit(HostProgram& program) {
  programs_.push_back(&program);
  armed_.emplace_back();
  const auto number = static_cast<std::uint32_t>(programs_.size() - 1);
  start_again(number);
  return number;
}

void Host::start_again(std::uint32_t program) {
  to_start_.push_back(program);
  if (waker_) waker_();
}

void Host::tell_port(bool up) {
  constexpr std::uint32_t kPort = 1;
  core_.tell({up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, kPort});
  port_has_changed_ = true;
  if (waker_) waker_();
}

void Host::start_programs(Context& context) {
  const InCall call(*this, context);
  port_has_changed_ = false;
  while (!to_start_.empty()) {
    const std::vector<std::uint32_t> now = std::exchange(to_start_, {});
    for (const std::uint32_t program : now) programs_[program]->on_start(*this);
  }
  if (dpa_) dpa_->host_acted();
}

void Host::fire(Context& context, Timer& timer) {
  const InCall call(*this, context);
  const std::uint32_t program = program_of(timer);
  forget_timer(timer);
  timer.set_tag(timer.tag() & UINT32_MAX);  // its own part, as its owner gave it
  programs_[program]->on_timer(*this, timer);
  if (dpa_) dpa_->host_acted();
}

void Host::arm_timer(std::uint32_t program, Timer& timer, Nanos at) {
  timer.set_tag(timer_tag(TimerOf::kProgram, std::uint64_t{program} << 32 | (timer.tag() & UINT32_MAX)));
  if (!timer.armed()) armed_[program].push_back(&timer);
  context_->arm(timer, at);
}

void Host::cancel_timer(Timer& timer) {
  if (!timer.armed()) return;
  forget_timer(timer);
  context_->cancel(timer);
}

// There are few of one program.
void Host::forget_timer(const Timer& timer) { std::erase(armed_[program_of(timer)], &timer); }

Progress Host::progress(std::uint32_t program, const dpa::Process* device) const {
  Progress sum = manager_.progress(program);
  bool is_stuck = false;
  for (const std::unique_ptr<Qp>& qp : core_.qps) {
    if (!qp) continue;
    const CompletionQueue& cq = *qp->init.send_cq;
    if (cq.is_devices() ? !device || qp->init.domain != device->domain() : cq.program() != program) continue;
    sum.add(qp->requester.steps(), qp->can_send() ? qp->requester.waits_until() : 0);
    if (is_resolving(*qp))
      sum.add(neighbors_.progress());
    else
      is_stuck = is_stuck || (qp->can_send() && qp->requester.waits_for_nothing());
  }
  // What it still means to do may not help what waits, and would hide it for as long as its farthest timer.
  if (!is_stuck)
    for (const Timer* timer : armed_[program]) sum.add(0, timer->at());
  return sum;
}

void Host::settle_all(Context& context) {
  const InCall call(*this, context);
  if (dpa_) dpa_->on_call();
  do {
    tell_programs();
  } while (dpa_ && dpa_->run());
}

void Host::tell_programs() {
  bool called = false;
  while (!core_.completed.empty() || !core_.events.empty() || manager_.has_events()) {
    // Two vectors take turns, for their capacity.
    completed_.clear();
    completed_.swap(core_.completed);
    for (CompletionQueue* cq : completed_) {
      if (!cq) continue;  // destroyed by a program that was told before
      const bool event = cq->take_event();
      if (event) context_->cancel(cq->timer);
      if (cq->is_devices())
        dpa_->on_published(*cq, event);
      else if (event)
        programs_[cq->program()]->on_completion(*this, *cq), called = true;
    }
    called = called || !core_.events.empty() || manager_.has_events();
    telling_.assign(core_.events.begin(), core_.events.end());
    core_.events.clear();
    for (const std::optional<AsyncEvent>& event : telling_)
      for (HostProgram* program : programs_)
        if (event) program->on_async_event(*this, AsyncEvent(*event));
    for (std::size_t due = manager_.events(); due && manager_.has_events(); due--) {
      const ConnectionEvent event = manager_.take_event();
      programs_[event.program]->on_connection_event(*this, event);
    }
  }
  if (called && dpa_) dpa_->host_acted();
}

void Host::on_device_timer(Context& context, const Timer& timer) {
  const InCall call(*this, context);
  dpa_->on_timer(timer);
}

void Host::report(Report& report) const {
  if (dpa_) dpa_->report(report);
}

dpa::Engine& Host::dpa() {
  if (!dpa_) dpa_ = std::make_unique<dpa::Engine>(*this, core_.config.dpa);
  return *dpa_;
}

int Host::post_send(Qp& qp, const ibv_send_wr* list, const ibv_send_wr** bad, const AddressHandle* address) {
  const ibv_qp_state state = qp.attributes.state;
  int error = state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;
  for (; list && !error; list = error ? list : list->next)
    error = qp.send_queue.post(*list, address ? &address->address : nullptr);
  if (error && bad) *bad = list;
  qp.send_queue.ring_doorbell();
  // Who was given up is asked for again.
  if (!error && !qp.path_known && !qp.is(IBV_QPT_UD)) resolve_(*context_, qp);
  fetch_posted(qp);
  return error;
}

void Host::fetch_posted(Qp& qp) {
  if (qp.flushes_requests()) {
    qp.requester.flush(*context_);
  } else if (qp.requester.fetch()) {
    core_.wake(*context_, qp);
  }
}

bool Host::ring_send_doorbell(std::uint32_t domain, std::uint32_t qpn, std::uint16_t producer) {
  Qp* qp = find_qp(qpn);
  if (!qp || qp->init.domain != domain || !qp->send_queue.is_devices()) return false;
  ring_send_doorbell(*qp, producer);
  return true;
}

void Host::ring_send_doorbell(Qp& qp, std::uint16_t producer) {
  qp.send_queue.ring_doorbell(producer);
  if (qp.can_send() || qp.flushes_requests()) fetch_posted(qp);
}

int Host::post_receive(Qp& qp, const ibv_recv_wr* list, const ibv_recv_wr** bad) {
  if (qp.init.shared_receive_queue || qp.attributes.state == IBV_QPS_RESET) return EINVAL;
  const int error = post_receive(qp.own_receive_queue, list, bad);
  if (qp.attributes.state == IBV_QPS_ERR) qp.responder.flush(*context_);
  return error;
}

int Host::post_receive(ReceiveQueue& queue, const ibv_recv_wr* list, const ibv_recv_wr** bad) {
  int error = 0;
  for (; list && !error; list = error ? list : list->next) error = queue.post(*list);
  if (error && bad) *bad = list;
  queue.ring_doorbell();
  return error;
}

int Host::poll(CompletionQueue& cq, std::span<ibv_wc> completions) {
  int count = 0;
  while (static_cast<std::size_t>(count) < completions.size()) {
    const mlx5_cqe64* cqe = cq.peek();
    if (!cqe) break;
    count += decode(cq, *cqe, completions[static_cast<std::size_t>(count)]);
    cq.advance();
  }
  return count;
}

int Host::decode(CompletionQueue&, const mlx5_cqe64& cqe, ibv_wc& wc) {
  const CqeWords words(cqe);
  const std::uint8_t opcode = words.opcode;
  const bool failed = words.failed();
  Qp* qp = core_.find(words.qpn);
  if (!qp) return 0;
  std::memset(&wc, 0, sizeof wc);
  wc.qp_num = qp->number();
  wc.status = failed ? status_of(reinterpret_cast<const ErrorCqe&>(cqe).syndrome) : IBV_WC_SUCCESS;
  wc.byte_len = failed ? 0 : be32toh(cqe.byte_cnt);
  if (words.sends()) {
    wc.wr_id = qp->send_queue.retire(words.wqe_counter);
    switch (words.send_opcode) {
      case MLX5_OPCODE_RDMA_WRITE:
      case MLX5_OPCODE_RDMA_WRITE_IMM:
        wc.opcode = IBV_WC_RDMA_WRITE;
        break;
      case MLX5_OPCODE_RDMA_READ:
        wc.opcode = IBV_WC_RDMA_READ;
        break;
      case MLX5_OPCODE_ATOMIC_CS:
        wc.opcode = IBV_WC_COMP_SWAP;
        break;
      case MLX5_OPCODE_ATOMIC_FA:
        wc.opcode = IBV_WC_FETCH_ADD;
        break;
      case MLX5_OPCODE_LOCAL_INVAL:
        wc.opcode = IBV_WC_LOCAL_INV;
        break;
      case MLX5_OPCODE_UMR:
        wc.opcode = IBV_WC_BIND_MW;
        break;
      default:
        wc.opcode = IBV_WC_SEND;
    }
    return 1;
  }
  wc.wr_id = qp->receive_queue().retire(words.wqe_counter);
  wc.opcode = IBV_WC_RECV;
  if (failed) return 1;
  wc.src_qp = be32toh(cqe.flags_rqpn) & 0xFFFFFF;
  if (be32toh(cqe.flags_rqpn) >> 28 & 3) wc.wc_flags |= IBV_WC_GRH;
  if (opcode == MLX5_CQE_RESP_WR_IMM) wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  if (opcode == MLX5_CQE_RESP_WR_IMM || opcode == MLX5_CQE_RESP_SEND_IMM) {
    wc.wc_flags |= IBV_WC_WITH_IMM;
    wc.imm_data = cqe.imm_inval_pkey;
  } else if (opcode == MLX5_CQE_RESP_SEND_INV) {
    wc.wc_flags |= IBV_WC_WITH_INV;
    wc.invalidated_rkey = be32toh(cqe.imm_inval_pkey);
  }
  return 1;
}

AddressHandle Host::create_ah(const roce::Mac& mac, const roce::IpAddress& destination, std::uint32_t qpn,
                              std::uint32_t qkey, std::uint8_t traffic_class, std::uint8_t hop_limit) const {
  AddressHandle handle;
  mlx5_wqe_av& av = handle.address;
  av.key.qkey.qkey = htobe32(qkey);
  av.dqp_dct = htobe32(MLX5_EXTENDED_UD_AV | qpn);
  av.tclass = traffic_class;
  av.hop_limit = hop_limit;
  std::copy(mac.begin(), mac.end(), av.rmac);
  std::copy(destination.begin(), destination.end(), av.rgid);
  return handle;
}

int Host::create_ah(AddressHandle& handle, const roce::IpAddress& destination, std::uint32_t qpn, std::uint32_t qkey,
                    std::uint8_t traffic_class, std::uint8_t hop_limit) {
  if (!core_.config.has_source_for(destination)) return EINVAL;
  const bool is_group = roce::is_multicast(destination);
  const roce::Mac* mac = is_group ? nullptr : neighbors_.resolve(*context_, destination);
  if (!is_group && !mac) return EAGAIN;
  handle = create_ah(is_group ? roce::multicast_mac(destination) : *mac, destination,
                     is_group && qpn == 0 ? kMulticastQpn : qpn, qkey, traffic_class, hop_limit);
  return 0;
}

bool Host::is_resolving(const Qp& qp) const { return !qp.path_known && !neighbors_.has_given_up(qp.attributes.remote); }

int Host::attach_mcast(Qp& qp, const roce::IpAddress& group) {
  return qp.is(IBV_QPT_RC) ? EINVAL : core_.groups.attach(group, qp.number());
}

int Host::set_group_window(Qp& qp, const GroupWindow& window) {
  if (!qp.is(IBV_QPT_UC)) return EINVAL;
  return qp.responder.group_writes().set(window) ? 0 : ENOMEM;
}

}  // namespace rocebox::nic_model
