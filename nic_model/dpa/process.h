// SPDX-License-Identifier: BSD-3-Clause
// Process: a device program that runs: its code and data, memory, queues, threads and windows; what a host does with
// it, in FlexIO's terms. All calls are made in calls of the NIC, as those of Host are.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nic_model/dpa/guarded_memory.h"
#include "nic_model/dpa/program.h"
#include "nic_model/dpa/thread.h"
#include "nic_model/transport/qp.h"

namespace rocebox::nic_model::dpa {

/// Addresses that a device program is told of a completion queue.
struct CqAddresses {
  CompletionQueue* cq = nullptr;
  std::uint32_t number = 0, log_entries = 0;
  std::uint64_t ring = 0, doorbell = 0;
};

/// The same of a queue pair.
struct QpAddresses {
  Qp* qp = nullptr;
  std::uint32_t number = 0, log_send_blocks = 0, log_receives = 0;
  std::uint64_t send_ring = 0, receive_ring = 0, doorbell = 0;
};

class Process {
 public:
  /// `program` is what stands in the file `path`.
  Process(Engine& engine, const std::string& path, std::string_view program);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return program_.name(); }
  /// The protection domain of its memory and queue pairs.
  std::uint32_t domain() const { return domain_; }
  /// The key of its heap, for WQEs.
  std::uint32_t heap_key() const { return heap_key_; }

  /// Memory of the device, all zeros, aligned to 64 bytes; 0: the heap is full. It lasts as long as the process.
  std::uint64_t alloc(std::size_t bytes);
  /// A copy of what the host has in memory of the device; 0: the heap is full.
  std::uint64_t copy_from_host(const void* from, std::size_t bytes);
  /// Memory of the device, or null where that is not all of it the heap's.
  std::uint8_t* at(std::uint64_t address, std::size_t bytes) const;

  /// A key of memory of the device for peers, who may write, read and count there; key 0: it is not all of it the
  /// heap's, or there are too many regions.
  Mapping map(std::uint64_t address, std::size_t bytes) const;

  /// A handler of events, which `function` names; null: the program has no such function, or all threads are taken.
  Thread* create_thread(const std::string& function);
  /// It is activated from now on, with that argument; its queue is armed.
  void run(Thread& thread, std::uint64_t argument);
  /// A completion queue in the device's memory, whose events activate `thread`; null: it is only polled.
  CqAddresses create_cq(std::uint32_t log_entries, Thread* thread);
  /// A queue pair whose queues are in the device's memory. `init` says its type and completion queues.
  QpAddresses create_qp(QpInit init, std::uint32_t log_send_blocks, std::uint32_t log_receives);
  /// Calls a function of the program with up to six arguments. 0; ENOENT: there is none, EBUSY: a call goes on,
  /// ESRCH: the process has been stopped or has finished. `done` is called with its result when it returns, which may
  /// be in this call; it is not when the process finishes before.
  int call(const std::string& function, std::span<const std::uint64_t> arguments,
           std::function<void(std::uint64_t)> done = {});
  /// A window, which threads can have to memory of the host under a key of their choice.
  std::uint32_t create_window(std::uint32_t domain);
  /// Told of each message of the print stream.
  void set_on_message(std::function<void(const std::string&)> on_message) { on_message_ = std::move(on_message); }

  bool stopped() const { return !error_.empty(); }
  /// By a thread of its own.
  bool is_finished() const { return is_finished_; }
  /// Why it was stopped, with thread and place; empty: it was not.
  const std::string& error() const { return error_; }
  const std::vector<std::string>& messages() const { return messages_; }
  std::uint64_t messages_in_all() const { return messages_in_all_; }

  // For threads.

  DeviceCq* cq_at(const mlx5_cqe64* cqe) const;
  /// The host's memory under a thread's window; null: none, or not all of it may be used.
  std::uint8_t* window(const Thread& thread, int entity, std::uint64_t address, std::uint64_t bytes, bool writes) const;
  int configure(Thread& thread, int entity, std::uint32_t window, std::uint32_t key) const;
  int set_key(Thread& thread, int entity, std::uint32_t key) const;

 private:
  friend class Engine;
  void on_message(const Thread& thread);

  Engine& engine_;
  Program program_;
  GuardedMemory heap_;
  std::size_t heap_used_ = 0;
  std::uint32_t domain_ = 0, heap_key_ = 0;
  std::vector<DeviceCq*> cqs_;
  std::vector<std::uint32_t> windows_;  // their domains
  Thread* caller_ = nullptr;            // that runs what the host calls
  std::function<void(std::uint64_t)> on_called_;
  std::function<void(const std::string&)> on_message_;
  std::vector<std::string> messages_;
  std::uint64_t messages_in_all_ = 0;
  std::string error_;
  bool is_finished_ = false;
  const Thread* progress_by_ = nullptr;  // since waiting threads last looked
  bool progress_by_many_ = false;
  // Whether `thread` may see in memory what it had not when it last looked.
  bool may_show(const Thread& thread) const { return progress_by_many_ || (progress_by_ && progress_by_ != &thread); }
};

}  // namespace rocebox::nic_model::dpa
