// SPDX-License-Identifier: BSD-3-Clause
// Device: the host of one NIC in a live drive, and how calls of other threads come to it. Machine: the drive.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/sdr/backend/backend.h"
#include "nic_model/host/host.h"
#include "runtime/component/registry.h"
#include "runtime/config/config.h"
#include "runtime/drives/live/live.h"
#include "runtime/packet/pool.h"

namespace rocebox::libsdr {

/// Calls go through a lock-free list to the NIC's core, which polls it between two bursts; the caller waits until its
/// call was made. What only reads goes past it, in place.
class Device final : public nic_model::HostProgram, public Source {
 public:
  Device(std::string name, nic_model::Host& host);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }

  /// Has `what(Host&)` done in a call of the NIC. On any thread but the NIC's.
  template <class What>
  void call(What&& what) {
    Call one;
    one.closure = &what;
    one.run = [](void* closure, nic_model::Host& host) {
      (*static_cast<std::remove_reference_t<What>*>(closure))(host);
    };
    push(one);
    one.done.wait(0, std::memory_order_acquire);
  }

  /// A backend with so many workers and transmit workers, one that is not used any more where there is such. In calls
  /// of the NIC. Throws ConfigError.
  sdr::Backend& take_backend(nic_model::Host& host, std::uint32_t workers, std::uint32_t senders);
  void give_back(sdr::Backend& backend) { idle_.push_back(&backend); }

  // Source, for the shard.
  bool poll(Nanos now) override;
  int wake_descriptor() override { return event_; }
  void wake_on(bool on) override;
  // HostProgram.
  void on_start(nic_model::Host& host) override;

 private:
  struct Call {
    Call* next = nullptr;
    void (*run)(void*, nic_model::Host&) = nullptr;
    void* closure = nullptr;
    std::atomic<std::uint32_t> done{0};
  };
  void push(Call& call);

  const std::string name_;
  nic_model::Host& host_;
  std::uint32_t program_;
  int event_;              // an eventfd; -1: the system has none to give
  Call* taken_ = nullptr;  // in order
  std::vector<std::unique_ptr<sdr::Backend>> backends_;
  std::vector<sdr::Backend*> idle_;
  alignas(64) std::atomic<Call*> calls_{nullptr};  // the newest first
  std::atomic<bool> sleeps_{false};
};

/// The live drive of the configuration that SDR_CONFIG names; one in a process, until it ends.
class Machine {
 public:
  /// Starts it, the first time. Throws ConfigError.
  static Machine& get();
  /// Throws ConfigError: the configuration has no such NIC.
  Device& device(const std::string& name);
  ~Machine();

 private:
  Machine();
  Registry registry_;
  config::RunConfig config_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Live> live_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace rocebox::libsdr
