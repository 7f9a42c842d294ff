// SPDX-License-Identifier: BSD-3-Clause
// Station: one thread of the engine with the queues that a program is told of (struct endpoint): its completion queue
// is written, receives have buffers, and what it sends goes nowhere.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "nic_model/dpa/process.h"
#include "nic_model/dpa/programs/endpoint.h"

namespace rocebox::dpa_observer {

struct StationOptions {
  std::string handler;
  std::uint32_t cq_entries = 256, buffer_bytes = 64;
  std::uint64_t host_address = 0, host_bytes = 0;  ///< that the process's first window shows
  std::uint32_t host_key = 0, window = 0, count = 1;
};

class Station {
 public:
  /// Throws ConfigError: the program has no such handler.
  Station(nic_model::dpa::Process& process, const StationOptions& options);

  nic_model::CompletionQueue& cq() const { return *cq_; }
  const ::endpoint& shared() const { return *shared_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(shared_); }
  /// The number of a receive that a message goes into; those before it keep their buffers for as many more as there
  /// are.
  std::uint16_t take_receive() { return receives_++; }
  /// Puts bytes of a message at `offset` into the buffer of its receive, as far as there is room.
  void place(std::uint16_t receive, std::uint32_t offset, std::span<const std::uint8_t> bytes) const;

 private:
  nic_model::CompletionQueue* cq_ = nullptr;
  ::endpoint* shared_ = nullptr;
  std::uint8_t* buffers_ = nullptr;
  std::uint32_t buffer_bytes_, stride_;
  std::uint16_t receives_ = 0;
};

}  // namespace rocebox::dpa_observer
