// SPDX-License-Identifier: BSD-3-Clause
// Surroundings: what an engine has around it where no NIC is: the time and timers of a kernel, completion queues and
// memory, and no queue pairs.
#pragma once
#include <memory>
#include <vector>

#include "kernels/dpa/counters.h"
#include "nic_model/dpa/environment.h"
#include "nic_model/memory/memory.h"
#include "nic_model/queues/completion_queue.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::dpa_observer {

class Surroundings final : public nic_model::dpa::Environment {
 public:
  explicit Surroundings(Counters& counters) : counters_(counters) {}

  /// A call of the kernel begins; what its context can is there until it ends.
  void enter(Context& context) {
    context_ = &context;
    now_ = context.now();
  }
  void leave() { context_ = nullptr; }

  Nanos now() const override { return now_; }
  /// Outside of a call nothing waits: the next one looks again.
  void arm_device_timer(Timer& timer, Nanos at) override {
    if (context_) context_->arm(timer, at);
  }
  std::uint32_t alloc_pd() override { return memory_.new_domain(); }
  nic_model::Memory& memory() override { return memory_; }
  nic_model::CompletionQueue* create_cq(std::uint32_t entries, const nic_model::CqMemory& memory) override {
    cqs_.push_back(
        std::make_unique<nic_model::CompletionQueue>(static_cast<std::uint32_t>(cqs_.size()), entries, memory));
    return cqs_.back().get();
  }
  nic_model::Qp* create_qp(const nic_model::QpInit&) override { return nullptr; }
  bool ring_send_doorbell(std::uint32_t, std::uint32_t, std::uint16_t) override {
    counters_.doorbells.add();
    return false;
  }
  void publish_nothing(nic_model::CompletionQueue& cq) override {
    if (cq.unconsumed() >= cq.entries()) return counters_.cqes_lost.add();
    cq.publish(cq.next(), MLX5_CQE_REQ, false);
    zero_cqes_ = true;
  }
  /// A thread has had a CQE of nothing written, which its engine has not been told of.
  bool take_zero_cqes() { return std::exchange(zero_cqes_, false); }
  const std::vector<std::unique_ptr<nic_model::CompletionQueue>>& cqs() const { return cqs_; }

 private:
  Counters& counters_;
  Context* context_ = nullptr;
  Nanos now_ = 0;
  bool zero_cqes_ = false;
  nic_model::Memory memory_;
  std::vector<std::unique_ptr<nic_model::CompletionQueue>> cqs_;
};

}  // namespace rocebox::dpa_observer
