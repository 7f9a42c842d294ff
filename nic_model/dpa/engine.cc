// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "nic_model/core.h"

namespace rocebox::nic_model::dpa {

Engine::Engine(Environment& environment, const DpaConfig& config)
    : environment_(environment),
      config_(config),
      ready_(kThreadsMax),
      timing_(config.timing),
      timer_(timer_tag(TimerOf::kDpa)),
      busy_timer_(timer_tag(TimerOf::kDpa, 1)) {
  threads_.reserve(kThreadsMax);
}

Engine::~Engine() = default;

Process& Engine::create_process(const std::string& path, std::string_view program) {
  processes_.push_back(std::make_unique<Process>(*this, path, program));
  return *processes_.back();
}

Thread& Engine::add_thread(Process& process, std::string name, Thread::Function function) {
  const auto id = static_cast<std::uint32_t>(threads_.size());
  threads_.push_back(
      std::make_unique<Thread>(*this, process, id, std::move(name), function, static_cast<std::size_t>(config_.stack)));
  return *threads_.back();
}

DeviceCq& Engine::add_cq(std::uint32_t number, Process& process, Thread* thread) {
  if (number >= cqs_.size()) cqs_.resize(number + 1);
  cqs_[number] = std::make_unique<DeviceCq>();
  cqs_[number]->process = &process;
  cqs_[number]->thread = thread;
  return *cqs_[number];
}

void Engine::make_ready(Thread& thread) {
  if (thread.state_ == Thread::State::kReady) return;
  if (thread.state_ == Thread::State::kPolling) {
    polling_--;
    for (std::size_t i = 0; i < thread.polled_count_; i++) thread.polled_[i]->waiting.reset(thread.id_);
    thread.polled_count_ = 0;
  }
  if (thread.state_ == Thread::State::kLooking) looking_--;
  if (thread.state_ == Thread::State::kLocked) locked_--;
  if (thread.state_ == Thread::State::kBusy) busy_--;
  thread.state_ = Thread::State::kReady;
  ready_[(ready_first_ + ready_count_++) % ready_.size()] = &thread;
}

void Engine::activate(Thread& thread) {
  if (thread.process_.stopped() || thread.process_.is_finished_) return;
  if (thread.active_) {
    thread.activate_again_ = true;
    return;
  }
  if (thread.state_ != Thread::State::kIdle) return;
  thread.has_seen();
  begin(thread);
  if (config_.timing.cycles_per_activation)
    return take_time(thread, static_cast<std::uint32_t>(config_.timing.cycles_per_activation), 0), due();
  make_ready(thread);
}

// What is busy is ready in its time.
void Engine::due() {
  if (busy_)
    if (const Nanos next = end_busy(); next != kNever) environment_.arm_device_timer(busy_timer_, next);
}

void Engine::begin(Thread& thread) {
  thread.active_ = true;
  thread.activations_++;
  thread.polled_count_ = 0;
  thread.last_cqe_ = nullptr;
  thread.fiber_.start(&Thread::enter, &thread);
}

Nanos Engine::now() const { return environment_.now(); }

void Engine::wake_pollers(DeviceCq& cq) {
  if (cq.waiting.none()) return;
  for (const auto& thread : threads_)
    if (cq.waiting.test(thread->id_)) make_ready(*thread);
}

void Engine::on_published(CompletionQueue& cq, bool event) {
  DeviceCq* ours = cq.number() < cqs_.size() ? cqs_[cq.number()].get() : nullptr;
  if (!ours) return;
  wake_pollers(*ours);
  if (event && ours->thread) activate(*ours->thread);
}

void Engine::host_acted() {
  for (const auto& process : processes_) process->progress_by_many_ = true;
  has_progressed_ = true;
}

// What a thread did may be what another waits for in memory.
void Engine::progressed(const Thread& thread) {
  Process& process = thread.process_;
  if (process.progress_by_ && process.progress_by_ != &thread) process.progress_by_many_ = true;
  process.progress_by_ = &thread;
  has_progressed_ = true;
}

bool Engine::run() {
  if (is_running_) return false;
  bool any = false;
  is_running_ = true;
  unsigned turns = 0;
  while (ready_count_ && turns++ < kTurnsOfCall) {
    Thread& thread = *ready_[ready_first_];
    ready_first_ = (ready_first_ + 1) % ready_.size();
    ready_count_--;
    turn(thread);
    any = true;
    if (locked_)
      for (const auto& one : threads_)
        if (one->state_ == Thread::State::kLocked && *one->request_.lock == 0) {
          one->has_seen();
          progressed(*one);
          make_ready(*one);
          break;  // it takes it
        }
  }
  is_running_ = false;
  due();
  // In the same instant, behind the NIC's other work.
  if (ready_count_) return environment_.arm_device_timer(timer_, environment_.now()), any;
  const bool somebody_may_see =
      polling_ && has_progressed_ && std::ranges::any_of(threads_, [](const auto& thread) {
        return thread->state_ == Thread::State::kPolling && thread->process_.may_show(*thread);
      });
  if ((looking_ || somebody_may_see) && !timer_.armed())
    environment_.arm_device_timer(timer_, environment_.now() + look_after_);
  return any;
}

void Engine::on_timer(const Timer& timer) {
  if (&timer == &busy_timer_) return due();
  if (ready_count_) return;  // it was armed to go on
  look_after_ = std::exchange(has_progressed_, false) ? kLookAfter : std::min(look_after_ * 2, kSecond);
  look(true);
}

// Threads that wait for something in memory are run: they look, and wait again.
void Engine::look(bool also_polling) {
  for (const auto& thread : threads_) {
    const bool looks = thread->state_ == Thread::State::kLooking;
    const bool polls = also_polling && thread->state_ == Thread::State::kPolling && thread->process_.may_show(*thread);
    if (!looks && !polls) continue;
    thread->fences_ = 0;
    // Who goes on with something long that has fences in it gets more and more of its time.
    thread->fences_max_ = also_polling ? thread->look_fences_ : kFencesOfLook;
    if (also_polling) thread->look_fences_ = std::min(thread->look_fences_ * 2, kFences);
    make_ready(*thread);
  }
  if (!also_polling) return;
  for (const auto& process : processes_) {
    process->progress_by_ = nullptr;
    process->progress_by_many_ = false;
  }
}

// One thread, until it gives way.
void Engine::turn(Thread& thread) {
  if (thread.process_.stopped()) return end(thread, Thread::State::kStopped);
  if (thread.process_.is_finished_) return end(thread, Thread::State::kFinished);
  thread.state_ = Thread::State::kRunning;
  thread.calls_ = 0;
  thread.turns_++;
  Watch& watch = Watch::of_this_thread();
  const std::uint64_t seen = thread.cqes_;
  do {
    set_current(&thread);
    watch.resume(thread.fiber_, &Thread::stopped, config_.watchdog);
    set_current(nullptr);
    if (thread.request_.kind == Request::Kind::kStopped) {
      stop(thread.process_, thread);
      return end(thread, Thread::State::kStopped);
    }
  } while (serve(thread) && ++thread.calls_ < kTurnCalls);
  if (thread.cqes_ != seen || !thread.active_) progressed(thread);
  if (thread.state_ == Thread::State::kRunning) make_ready(thread);  // its turn is over
}

// The thread's process ends, and with it all its threads.
void Engine::stop(Process& process, const Thread& thread) {
  const Stop& why = Watch::of_this_thread().stop();
  std::string what = thread.error_ ? fmt::format("error {} of its own", thread.error_) : why.text();
  if (!thread.error_ && why.is_watchdog) what += " without giving way";
  if (!thread.error_ && process.heap_.guards(why.address)) what += ", right behind or before the heap";
  process.error_ = fmt::format("thread {} (`{}` of {}): {}, in {}", thread.id_, thread.name_, process.name(), what,
                               process.program_.place_of(why.instruction));
  for (const auto& one : threads_)
    if (&one->process_ == &process && one->state_ != Thread::State::kReady && one.get() != &thread)
      end(*one, Thread::State::kStopped);
}

void Engine::end(Thread& thread, Thread::State state) {
  if (thread.state_ == Thread::State::kPolling) {
    polling_--;
    for (std::size_t i = 0; i < thread.polled_count_; i++) thread.polled_[i]->waiting.reset(thread.id_);
  }
  if (thread.state_ == Thread::State::kLooking) looking_--;
  if (thread.state_ == Thread::State::kLocked) locked_--;
  if (thread.state_ == Thread::State::kBusy) busy_--;
  thread.state_ = state;
  thread.active_ = false;
  thread.polled_count_ = 0;
}

void Engine::report(Report& report) const {
  constexpr const char* kStates[] = {"new",     "running", "idle",   "ready",    "polling",
                                     "looking", "busy",    "locked", "finished", "stopped"};
  report.table("dpa_processes", processes_.size(), [&](Report& r, std::size_t i) {
    const Process& process = *processes_[i];
    r.text("program", process.name());
    r.count("messages", static_cast<std::int64_t>(process.messages_in_all()));
    r.text("error", process.error());
  });
  report.table("dpa_threads", threads_.size(), [&](Report& r, std::size_t i) {
    const Thread& thread = *threads_[i];
    r.count("thread_number", thread.id_);
    r.text("handler", thread.name_);
    r.text("program", thread.process_.name());
    r.text("state", kStates[static_cast<unsigned>(thread.state_)]);
    r.count("activations", static_cast<std::int64_t>(thread.activations_));
    r.count("cqes", static_cast<std::int64_t>(thread.cqes_));
    r.count("cycles", static_cast<std::int64_t>(thread.busy_cycles_));
    r.count("turns", static_cast<std::int64_t>(thread.turns_));
  });
}

}  // namespace rocebox::nic_model::dpa
