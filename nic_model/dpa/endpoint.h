// SPDX-License-Identifier: BSD-3-Clause
// Endpoint: a thread of the DPA with a completion queue and a queue pair of its own, receives posted: what the programs
// in programs/ are told by struct endpoint.
#pragma once
#include <cstdint>
#include <string>

#include "nic_model/dpa/process.h"
#include "nic_model/dpa/programs/endpoint.h"

namespace rocebox::nic_model::dpa {

struct EndpointOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::string handler;  ///< empty: nothing is activated, the queue is only polled
  std::uint32_t log_cq_entries = 8, log_send_blocks = 6, log_receives = 6;
  std::uint32_t buffer_bytes = 4096;
  // The host's memory that it has a window to.
  std::uint64_t host_address = 0, host_bytes = 0;
  std::uint32_t host_domain = 0, host_key = 0;
};

class Endpoint {
 public:
  /// Throws ConfigError: there is no such handler, or not so much memory. Its queue pair is in the state RESET.
  Endpoint(Process& process, const EndpointOptions& options);

  Process& process() const { return process_; }
  Qp& qp() const { return *qp_; }
  /// What the program is told, and what it says: in the device's memory.
  ::endpoint& shared() const { return *shared_; }
  /// Where peers may write: the buffers, under a key and an address that are the same in equal runs.
  const Mapping& buffers() const { return buffers_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(shared_); }
  /// From now on its events activate the handler.
  void run();

 private:
  Process& process_;
  Thread* thread_ = nullptr;
  Qp* qp_ = nullptr;
  ::endpoint* shared_ = nullptr;
  Mapping buffers_;
};

}  // namespace rocebox::nic_model::dpa
