// SPDX-License-Identifier: BSD-3-Clause
// Engine: the DPA of one NIC: its threads, who of them runs, and what they ask of the NIC. It works in the NIC's own
// calls, on the core that the NIC has, as host programs do.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nic_model/dpa/config.h"
#include "nic_model/dpa/environment.h"
#include "nic_model/dpa/process.h"
#include "nic_model/dpa/thread.h"
#include "nic_model/dpa/watch.h"
#include "runtime/kernel/report.h"
#include "runtime/kernel/timer.h"

namespace rocebox::nic_model::dpa {

class Engine {
 public:
  Engine(Environment& environment, const DpaConfig& config);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// A process of the program in `path`. Throws ConfigError when it cannot be loaded.
  Process& create_process(const std::string& path) { return create_process(path, Program::read(path)); }
  /// The same of a file that was read.
  Process& create_process(const std::string& path, std::string_view program);
  const std::vector<std::unique_ptr<Process>>& processes() const { return processes_; }
  Environment& environment() { return environment_; }
  const DpaConfig& config() const { return config_; }

  // For the NIC.

  /// A queue of ours has CQEs that it had not; `event`: it was armed for them.
  void on_published(CompletionQueue& cq, bool event);
  /// A host's program was called: it may have written what threads look at.
  void host_acted();
  /// The NIC has been called, and may have written memory: threads that wait for that look.
  void on_call() {
    if (looking_) look(false);
  }
  /// Gives every thread that can run its turn, until there is none. Whether there was any.
  bool run();
  void on_timer(const Timer& timer);
  Nanos now() const;
  void report(Report& report) const;

 private:
  friend class Process;
  friend class Thread;
  static void set_current(Thread* thread);

  Thread& add_thread(Process& process, std::string name, Thread::Function function);
  DeviceCq& add_cq(std::uint32_t number, Process& process, Thread* thread);
  void activate(Thread& thread);
  void due();
  void begin(Thread& thread);
  void finish(Thread& thread);
  void make_ready(Thread& thread);
  void wake_pollers(DeviceCq& cq);
  void turn(Thread& thread);
  bool serve(Thread& thread);
  void end(Thread& thread, Thread::State state);
  void wait(Thread& thread);
  void take_time(Thread& thread, std::uint32_t cycles, std::uint32_t instructions);
  Nanos end_busy();
  void poll(Thread& thread, DeviceCq& cq);
  void look(bool also_polling);
  void stop(Process& process, const Thread& thread);
  void progressed(const Thread& thread);

  Environment& environment_;
  const DpaConfig config_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;  // by number
  std::vector<std::unique_ptr<DeviceCq>> cqs_;    // by number of the queue; null: not ours
  std::vector<Thread*> ready_;                    // a ring
  std::size_t ready_first_ = 0, ready_count_ = 0;
  std::size_t polling_ = 0, looking_ = 0, locked_ = 0, busy_ = 0;  // threads in these states
  bool is_running_ = false, has_progressed_ = false;
  Nanos look_after_ = kLookAfter;
  Timing timing_;
  Timer timer_, busy_timer_;
};

}  // namespace rocebox::nic_model::dpa
