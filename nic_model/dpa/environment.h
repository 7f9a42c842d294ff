// SPDX-License-Identifier: BSD-3-Clause
// Environment: what an engine needs of the device that it is in: the time, timers, memory, queues. A NIC's host side is
// one; an observer of passing packets, which has no queue pairs, is another.
#pragma once
#include <cstdint>

#include "runtime/kernel/timer.h"
#include "runtime/packet/packet.h"

namespace rocebox::nic_model {

class CompletionQueue;
class Memory;
class Qp;
struct CqMemory;
struct QpInit;

namespace dpa {

/// All calls are made in calls of the device.
class Environment {
 public:
  virtual Nanos now() const = 0;
  virtual void arm_device_timer(Timer& timer, Nanos at) = 0;
  virtual std::uint32_t alloc_pd() = 0;
  virtual Memory& memory() = 0;
  virtual CompletionQueue* create_cq(std::uint32_t entries, const CqMemory& memory) = 0;
  /// Null, and errno says why.
  virtual Qp* create_qp(const QpInit& init) = 0;
  /// A program of that protection domain has posted up to `producer`. False: it has no such queue pair.
  virtual bool ring_send_doorbell(std::uint32_t domain, std::uint32_t qpn, std::uint16_t producer) = 0;
  /// Writes a CQE that tells nothing but that it is there.
  virtual void publish_nothing(CompletionQueue& cq) = 0;

 protected:
  ~Environment() = default;
};

}  // namespace dpa
}  // namespace rocebox::nic_model
