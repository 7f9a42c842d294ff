// SPDX-License-Identifier: BSD-3-Clause
// Thread: one of the DPA: a function that an event, or a call of the host, activates.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <string>

#include "nic_model/dpa/config.h"
#include "nic_model/dpa/fiber.h"
#include "nic_model/queues/completion_queue.h"

namespace rocebox::nic_model::dpa {

class Engine;
class Process;
class Thread;

/// A completion queue of a device program.
struct DeviceCq {
  CompletionQueue* cq = nullptr;
  Process* process = nullptr;
  Thread* thread = nullptr;          ///< whom its events activate; null: nobody
  std::bitset<kThreadsMax> waiting;  ///< threads that have seen nothing in it, by number
  bool holds(const mlx5_cqe64* cqe) const { return cqe >= cq->ring() && cqe < cq->ring() + cq->entries(); }
};

/// What a thread asks for when it pauses.
struct Request {
  enum class Kind : std::uint8_t {
    kPoll,      ///< there is no CQE in `cq`
    kBusy,      ///< `value` cycles pass, with `number` instructions in them
    kFence,     ///< others may have their turn
    kLock,      ///< `lock` is taken
    kRing,      ///< doorbell of queue pair `number`: `value`
    kArm,       ///< event of CQ `number` behind CQE `value`
    kZeroCqe,   ///< a CQE of nothing in CQ `number`
    kActivate,  ///< thread `number`
    kPrint,     ///< the message
    kReschedule,
    kRetrigger,
    kFinish,
    kProcessFinish,
    kStopped
  };
  Kind kind;
  std::uint32_t number = 0, value = 0;
  DeviceCq* cq = nullptr;
  const volatile std::uint32_t* lock = nullptr;
  int result = 0;
};

class Thread {
 public:
  enum class State : std::uint8_t {
    kNew,       ///< its host has not let it run yet
    kRunning,   ///< has its turn
    kIdle,      ///< waits for its event
    kReady,     ///< in the list of those that run
    kPolling,   ///< has seen nothing in any of the queues that it looks at
    kLooking,   ///< has seen nothing in memory
    kBusy,      ///< takes its time
    kLocked,    ///< waits for a lock
    kFinished,  ///< is activated no more
    kStopped,   ///< by a mistake of its process
  };
  using Function = std::uint64_t (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                     std::uint64_t);

  Thread(Engine& engine, Process& process, std::uint32_t id, std::string name, Function function,
         std::size_t stack_bytes);

  // From the device API, on the fiber.

  /// The thread that runs on this thread of the operating system; null: none.
  static Thread* current();
  std::uint8_t owner_of(const volatile mlx5_cqe64* cqe);
  void fence();
  /// What it wrote through a window is on its way to the host.
  void write_window();
  int ask(const Request& request);
  [[noreturn]] void leave(Request::Kind how);
  /// Others have their turn; the thread has seen nothing.
  void give_way();
  /// The program ends its process with an error.
  [[noreturn]] void fail(std::uint64_t error);
  std::uint64_t cycles();
  std::uint64_t nanoseconds() const;
  char* message() { return message_.data(); }
  std::uint32_t id() const { return id_; }
  const std::string& name() const { return name_; }
  Process& process() const { return process_; }

  std::uint64_t local_storage = 0;  ///< what flexio_dev_get_thread_local_storage says

 private:
  friend class Engine;
  friend class Process;
  static void enter(void* thread);
  static void stopped();

  Engine& engine_;
  Process& process_;
  const std::uint32_t id_;
  const std::string name_;
  const Function function_;
  Fiber fiber_;
  std::array<std::uint64_t, 6> arguments_{};
  std::uint64_t result_ = 0;
  Request request_{};
  State state_ = State::kNew;
  bool active_ = false;          // in the midst of an activation
  bool activate_again_ = false;  // an event came meanwhile
  bool is_call_ = false;         // of the host, not of events
  unsigned calls_ = 0;           // of the device API in this turn
  unsigned fences_ = 0, fences_max_ = kFences;
  unsigned look_fences_ = kFencesOfLook;  // of the next look
  void has_seen() { fences_ = 0, fences_max_ = kFences, look_fences_ = kFencesOfLook; }
  DeviceCq* last_cq_ = nullptr;
  const volatile mlx5_cqe64* last_cqe_ = nullptr;
  std::uint8_t last_owner_ = 0;
  std::array<DeviceCq*, kPolledMax> polled_{};  // seen empty since it last saw anything
  std::size_t polled_count_ = 0;
  struct Entity {
    std::uint32_t window = 0, key = 0;
    bool is_set = false;
  };
  std::array<Entity, 2> entities_{};
  std::array<char, kMessageBytesMax> message_{};
  std::uint64_t error_ = 0;  // flexio_dev_error's
  // Counters.
  double free_at_ = 0;  // when it is done with what it has begun, by the timing model
  std::uint64_t busy_cycles_ = 0;
  std::uint64_t readings_ = 0;  // cycles that its readings of the counter took
  std::uint64_t activations_ = 0, cqes_ = 0, turns_ = 0;
};

}  // namespace rocebox::nic_model::dpa
