// SPDX-License-Identifier: BSD-3-Clause
// DpaReceiver: a subgroup's receive datapath on the NIC's DPA (V-B, Appendix C): a worker in C with queues, staging
// ring and bitmaps in the device's memory. The host looks at them when the workers have set its flag, and when chunks
// are missing.
#pragma once
#include <array>
#include <vector>

#include "kernels/allgather/dpa/worker.h"
#include "kernels/allgather/host/options.h"
#include "nic_model/dpa/engine.h"
#include "nic_model/host/host.h"

namespace rocebox::allgather {

class Communicator;
class Slot;
struct TeamCounters;

class DpaReceiver {
 public:
  /// Throws ConfigError: the DPA has too little memory or too few threads.
  DpaReceiver(Communicator& communicator, unsigned number, nic_model::dpa::Process& process);

  nic_model::Qp& qp() { return *qp_; }
  /// Of datagrams alone.
  nic_model::Qp& loopback() { return *loopback_; }
  /// Ready for datagrams of those senders, once all ranks have their queue pairs.
  void run();
  /// The worker has a part in the collective from now on, or none any more.
  void open(const Slot& slot, std::uint64_t team);
  void close(const Slot& slot);
  /// What of the collective has come and landed since, is told to its reassembly.
  void sync(Slot& slot);
  /// Chunks that the host has fetched come no more.
  void mark(const Slot& slot, std::uint32_t block, std::uint32_t index, std::uint32_t count);
  void count(TeamCounters& into) const;
  void stop(nic_model::Host& host);

 private:
  template <class T>
  T* alloc(std::size_t count, std::uint64_t& address);
  void make_queues();
  bool is_uc() const;

  // What one slot has in the device's memory, as large as it ever was.
  struct Part {
    std::uint64_t bitmap = 0, landed = 0;
    std::size_t words = 0, blocks = 0;
    std::vector<std::uint32_t> seen;  // of `landed`
  };
  Communicator& communicator_;
  const unsigned number_;
  nic_model::dpa::Process& process_;
  nic_model::dpa::Thread* thread_ = nullptr;
  nic_model::Qp* qp_ = nullptr;
  nic_model::Qp* loopback_ = nullptr;
  allgather_worker* worker_ = nullptr;
  allgather_sender* senders_ = nullptr;
  std::uint64_t address_ = 0;
  std::array<Part, ALLGATHER_OPERATIONS_MAX> parts_;
};

/// The program of the workers.
inline constexpr char kReceiveProgram[] = "allgather_receive";

}  // namespace rocebox::allgather
