// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic_model/core.h"
#include "nic_model/dpa/engine.h"

namespace rocebox::nic_model::dpa {
namespace {

constexpr std::uint32_t kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kLogEntriesMax = 22, kLogWorksMax = 14;

}  // namespace

Process::Process(Engine& engine, const std::string& path, std::string_view program)
    : engine_(engine), program_(path, program), heap_(static_cast<std::size_t>(engine.config().heap)) {
  domain_ = engine.environment().alloc_pd();
  heap_key_ = engine.environment().memory().add(domain_, heap_.data(), heap_.size(), kAccess);
}

Process::~Process() = default;

std::uint64_t Process::alloc(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < bytes || rounded > heap_.size() - heap_used_) return 0;
  const auto address = reinterpret_cast<std::uintptr_t>(heap_.data() + heap_used_);
  heap_used_ += rounded;
  return address;
}

std::uint64_t Process::copy_from_host(const void* from, std::size_t bytes) {
  const std::uint64_t address = alloc(bytes);
  if (address) std::memcpy(at(address, bytes), from, bytes);
  return address;
}

std::uint8_t* Process::at(std::uint64_t address, std::size_t bytes) const {
  auto* first = reinterpret_cast<std::uint8_t*>(address);
  return heap_.holds(first) && bytes <= heap_.size() - static_cast<std::size_t>(first - heap_.data()) ? first : nullptr;
}

Mapping Process::map(std::uint64_t address, std::size_t bytes) const {
  std::uint8_t* const memory = at(address, bytes);
  return memory ? engine_.environment().memory().map(domain_, memory, bytes, kAccess) : Mapping();
}

Thread* Process::create_thread(const std::string& function) {
  void* const found = program_.find(function);
  if (!found || engine_.threads_.size() >= engine_.config_.threads()) return nullptr;
  return &engine_.add_thread(*this, function, reinterpret_cast<Thread::Function>(found));
}

void Process::run(Thread& thread, std::uint64_t argument) {
  if (stopped() || thread.state_ != Thread::State::kNew) return;
  thread.arguments_[0] = argument;
  thread.state_ = Thread::State::kIdle;
  for (DeviceCq* cq : cqs_)
    if (cq->thread == &thread) {
      cq->cq->arm_at(0);
      if (cq->cq->take_event()) engine_.activate(thread);
    }
}

CqAddresses Process::create_cq(std::uint32_t log_entries, Thread* thread) {
  CqAddresses made;
  if (log_entries > kLogEntriesMax) return made;
  const std::uint32_t entries = 1u << log_entries;
  made.ring = alloc(std::size_t{entries} * sizeof(mlx5_cqe64));
  made.doorbell = alloc(2 * sizeof(__be32));
  if (!made.ring || !made.doorbell) return made;
  made.cq = engine_.environment().create_cq(
      entries, CqMemory{at(made.ring, 1), reinterpret_cast<const __be32*>(at(made.doorbell, 8))});
  made.number = made.cq->number();
  made.log_entries = log_entries;
  cqs_.push_back(&engine_.add_cq(made.number, *this, thread));
  cqs_.back()->cq = made.cq;
  return made;
}

QpAddresses Process::create_qp(QpInit init, std::uint32_t log_send_blocks, std::uint32_t log_receives) {
  QpAddresses made;
  if (log_send_blocks > kLogWorksMax || log_receives > kLogWorksMax) return made;
  QueueMemory memory;
  memory.send_blocks = 1u << log_send_blocks;
  memory.receive_requests = 1u << log_receives;
  made.send_ring = alloc(std::size_t{memory.send_blocks} * MLX5_SEND_WQE_BB);
  made.receive_ring = alloc(std::size_t{memory.receive_requests} * sizeof(mlx5_wqe_data_seg));
  made.doorbell = alloc(2 * sizeof(__be32));
  if (!made.send_ring || !made.receive_ring || !made.doorbell) return made;
  memory.send_ring = at(made.send_ring, 1);
  memory.receive_ring = at(made.receive_ring, 1);
  memory.doorbell = reinterpret_cast<const __be32*>(at(made.doorbell, 8));
  init.domain = domain_;
  init.device_memory = memory;
  made.qp = engine_.environment().create_qp(init);
  if (made.qp) made.number = made.qp->number();
  made.log_send_blocks = log_send_blocks;
  made.log_receives = log_receives;
  return made;
}

int Process::call(const std::string& function, std::span<const std::uint64_t> arguments,
                  std::function<void(std::uint64_t)> done) {
  if (stopped() || is_finished_) return ESRCH;
  void* const found = program_.find(function);
  if (!found || arguments.size() > 6) return found ? EINVAL : ENOENT;
  if (caller_ && caller_->active_) return EBUSY;
  // A thread of its own: its name, and with it its function, is that of the call.
  if (!caller_ || caller_->name_ != function) {
    if (caller_) caller_->state_ = Thread::State::kFinished;
    caller_ = nullptr;
    for (const auto& thread : engine_.threads_)
      if (thread->is_call_ && &thread->process_ == this && thread->name_ == function) caller_ = thread.get();
    if (!caller_) {
      if (engine_.threads_.size() >= kThreadsMax) return ENOMEM;
      caller_ = &engine_.add_thread(*this, function, reinterpret_cast<Thread::Function>(found));
      caller_->is_call_ = true;
    }
  }
  caller_->arguments_ = {};
  std::ranges::copy(arguments, caller_->arguments_.begin());
  caller_->state_ = Thread::State::kIdle;
  on_called_ = std::move(done);
  engine_.activate(*caller_);
  engine_.run();
  return 0;
}

std::uint32_t Process::create_window(std::uint32_t domain) {
  if (windows_.size() >= kWindowsMax) return 0;
  windows_.push_back(domain);
  return static_cast<std::uint32_t>(windows_.size());
}

DeviceCq* Process::cq_at(const mlx5_cqe64* cqe) const {
  for (DeviceCq* one : cqs_)
    if (one->holds(cqe)) return one;
  return nullptr;
}

int Process::configure(Thread& thread, int entity, std::uint32_t window, std::uint32_t key) const {
  if (entity < 0 || entity > 1 || window == 0 || window > windows_.size()) return 1;
  thread.entities_[static_cast<std::size_t>(entity)] = {window, key, true};
  return 0;
}

int Process::set_key(Thread& thread, int entity, std::uint32_t key) const {
  if (entity < 0 || entity > 1) return 1;
  // Before 24.10 a thread has its window from the host, the process's first.
  auto& one = thread.entities_[static_cast<std::size_t>(entity)];
  return configure(thread, entity, one.is_set ? one.window : 1, key);
}

std::uint8_t* Process::window(const Thread& thread, int entity, std::uint64_t address, std::uint64_t bytes,
                              bool writes) const {
  if (entity < 0 || entity > 1) return nullptr;
  const Thread::Entity& one = thread.entities_[static_cast<std::size_t>(entity)];
  if (!one.is_set) return nullptr;
  const Memory& memory = engine_.environment().memory();
  const Accessor by{windows_[one.window - 1]};
  if (memory.check(one.key, by, address, bytes, writes ? IBV_ACCESS_LOCAL_WRITE : 0) != MemoryError::kNone)
    return nullptr;
  const Region* region = memory.find(one.key);
  if (region->kind != Region::Kind::kDirect || !region->bytes) return nullptr;
  return region->bytes + (address - region->address);
}

void Process::on_message(const Thread& thread) {
  messages_in_all_++;
  if (on_message_) on_message_(thread.message_.data());
  if (messages_.size() < kMessagesKept) messages_.emplace_back(thread.message_.data());
}

}  // namespace rocebox::nic_model::dpa
