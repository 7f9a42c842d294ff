// SPDX-License-Identifier: BSD-3-Clause
// What threads ask of the engine, each answered outside of their fibers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "nic_model/dpa/engine.h"

namespace rocebox::nic_model::dpa {

// Whether the thread goes on at once.
bool Engine::serve(Thread& thread) {
  Request& request = thread.request_;
  request.result = 0;
  switch (request.kind) {
    case Request::Kind::kPoll:
      poll(thread, *request.cq);
      return thread.state_ == Thread::State::kRunning;
    case Request::Kind::kBusy:
      take_time(thread, request.value, request.number);
      return false;
    case Request::Kind::kFence:
      if (thread.fences_ >= thread.fences_max_) wait(thread);
      return false;
    case Request::Kind::kLock:
      thread.state_ = Thread::State::kLocked;
      locked_++;
      return false;
    case Request::Kind::kRing:
      request.result = environment_.ring_send_doorbell(thread.process_.domain_, request.number,
                                                       static_cast<std::uint16_t>(request.value))
                           ? 0
                           : 1;
      progressed(thread);
      return true;
    case Request::Kind::kArm: {
      DeviceCq* cq = request.number < cqs_.size() ? cqs_[request.number].get() : nullptr;
      if (!cq || cq->process != &thread.process_) return request.result = 1, true;
      cq->cq->arm_at(request.value);
      if (cq->cq->take_event() && cq->thread) activate(*cq->thread);
      return true;
    }
    case Request::Kind::kZeroCqe: {
      DeviceCq* cq = request.number < cqs_.size() ? cqs_[request.number].get() : nullptr;
      if (!cq || cq->process != &thread.process_) return request.result = 1, true;
      environment_.publish_nothing(*cq->cq);
      return true;
    }
    case Request::Kind::kActivate:
      if (request.number < threads_.size() && &threads_[request.number]->process_ == &thread.process_)
        activate(*threads_[request.number]);
      return true;
    case Request::Kind::kPrint:
      thread.process_.on_message(thread);
      return true;
    case Request::Kind::kReschedule:
    case Request::Kind::kRetrigger:
    case Request::Kind::kFinish:
    case Request::Kind::kProcessFinish:
    case Request::Kind::kStopped:
      finish(thread);
      return false;
  }
  return false;
}

// An activation has ended.
void Engine::finish(Thread& thread) {
  const Request::Kind how = thread.request_.kind;
  end(thread, how == Request::Kind::kFinish ? Thread::State::kFinished : Thread::State::kIdle);
  if (thread.is_call_) {
    auto done = std::exchange(thread.process_.on_called_, {});
    if (done) done(thread.result_);
    return;
  }
  if (how == Request::Kind::kProcessFinish) {
    for (const auto& one : threads_)
      if (&one->process_ == &thread.process_) {
        if (one->state_ == Thread::State::kReady) continue;  // ends when its turn comes
        end(*one, Thread::State::kFinished);
      }
    thread.process_.is_finished_ = true;
    return;
  }
  if (how == Request::Kind::kFinish) return;
  const bool again = std::exchange(thread.activate_again_, false);
  if (again) return activate(thread);
  if (how != Request::Kind::kRetrigger) return;
  // One that begins again and again without seeing anything is one that looks at memory.
  thread.fences_++;
  begin(thread);
  if (thread.fences_ >= thread.fences_max_)
    wait(thread);
  else
    make_ready(thread);
}

// It has come to a queue that is empty. One that looks at many goes round: it waits once it comes to one a second time
// and has seen nothing in between.
void Engine::poll(Thread& thread, DeviceCq& cq) {
  const auto end = thread.polled_.begin() + static_cast<std::ptrdiff_t>(thread.polled_count_);
  if (std::find(thread.polled_.begin(), end, &cq) == end) {
    if (thread.polled_count_ < kPolledMax) {
      thread.polled_[thread.polled_count_++] = &cq;
      return;
    }
    if (++thread.fences_ % kFencesOfLook == 0) wait(thread);
    return;
  }
  thread.state_ = Thread::State::kPolling;
  polling_++;
  for (std::size_t i = 0; i < thread.polled_count_; i++) thread.polled_[i]->waiting.set(thread.id_);
}

// Back to back, what follows begins when what was before has ended, to the fraction of a nanosecond.
void Engine::take_time(Thread& thread, std::uint32_t cycles, std::uint32_t instructions) {
  const auto now = static_cast<double>(environment_.now());
  const double begin = now - thread.free_at_ < 1 ? thread.free_at_ : now;
  const std::size_t core = thread.id_ / static_cast<std::size_t>(config_.threads_per_core) % Timing::kCores;
  thread.free_at_ = timing_.take(core, begin, cycles, instructions);
  thread.busy_cycles_ += cycles;
  thread.state_ = Thread::State::kBusy;
  busy_++;
}

// Those are ready whose time has passed. When the next one's has; kNever: nobody's.
Nanos Engine::end_busy() {
  Nanos next = kNever;
  for (const auto& thread : threads_) {
    if (thread->state_ != Thread::State::kBusy) continue;
    const auto at = static_cast<Nanos>(std::ceil(thread->free_at_));
    if (at <= environment_.now())
      make_ready(*thread);
    else
      next = std::min(next, at);
  }
  return next;
}

void Engine::wait(Thread& thread) {
  thread.state_ = Thread::State::kLooking;
  looking_++;
}

}  // namespace rocebox::nic_model::dpa
