// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/sdk/device.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "runtime/engine/pipeline_device.h"
#include "runtime/process/eal.h"

namespace rocebox::libsdr {
namespace {

constexpr std::uint64_t kPortMebibytes = 64;  // for what drivers of ports need

// What the caller's thread keeps while DPDK starts: the cores that it runs on; and its threads get no signal that is
// the program's, but faults, which the DPA's own threads have handlers for.
class CallersThread {
 public:
  CallersThread() {
    pthread_getaffinity_np(pthread_self(), sizeof cores_, &cores_);
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGRTMAX - 3}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
  }
  ~CallersThread() {
    pthread_setaffinity_np(pthread_self(), sizeof cores_, &cores_);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  }
  CallersThread(const CallersThread&) = delete;
  CallersThread& operator=(const CallersThread&) = delete;

 private:
  cpu_set_t cores_{};
  sigset_t signals_{};
};

config::RunConfig load(Registry& registry) {
  const char* file = std::getenv("SDR_CONFIG");
  if (!file || !*file)
    throw ConfigError("SDR_CONFIG names no file: it is to be a configuration of `rocebox run` that has the device");
  config::Mistakes mistakes(file);
  config::RunConfig config = config::load(file, registry, mistakes);
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  return config;
}

}  // namespace

Device::Device(std::string name, nic_model::Host& host)
    : name_(std::move(name)),
      host_(host),
      program_(host.submit(*this)),
      event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Device::~Device() {
  if (event_ >= 0) close(event_);
}

void Device::push(Call& call) {
  Call* first = calls_.load(std::memory_order_relaxed);
  do {
    call.next = first;
  } while (!calls_.compare_exchange_weak(first, &call, std::memory_order_seq_cst, std::memory_order_relaxed));
  if (sleeps_.load(std::memory_order_seq_cst)) eventfd_write(event_, 1);
}

bool Device::poll(Nanos) {
  if (!calls_.load(std::memory_order_acquire)) return false;
  Call* newest = calls_.exchange(nullptr, std::memory_order_acquire);
  Call* oldest = nullptr;
  while (newest) {
    Call* const next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  Call** end = &taken_;
  while (*end) end = &(*end)->next;
  *end = oldest;
  host_.start_again(program_);
  return true;
}

void Device::wake_on(bool on) {
  sleeps_.store(on, std::memory_order_seq_cst);
  if (on && calls_.load(std::memory_order_seq_cst)) eventfd_write(event_, 1);
  eventfd_t count;
  if (!on && event_ >= 0) eventfd_read(event_, &count);
}

void Device::on_start(nic_model::Host& host) {
  while (taken_) {
    Call& call = *std::exchange(taken_, taken_->next);
    call.run(call.closure, host);
    call.done.store(1, std::memory_order_release);
    call.done.notify_one();  // it may be gone by now; only its address counts
  }
}

sdr::Backend& Device::take_backend(nic_model::Host& host, std::uint32_t workers, std::uint32_t senders) {
  for (auto at = idle_.begin(); at != idle_.end(); ++at)
    if ((*at)->workers() == workers && (*at)->senders() == senders) {
      sdr::Backend& one = **at;
      idle_.erase(at);
      return one;
    }
  backends_.push_back(std::make_unique<sdr::Backend>(host, workers, sdr::kQueuePairsMax, senders));
  std::uint64_t salt = 0;
  if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) != sizeof salt)
    salt = static_cast<std::uint64_t>(getpid()) << 32 ^ static_cast<std::uint64_t>(host.now());
  backends_.back()->set_salt(salt);
  return *backends_.back();
}

Machine& Machine::get() {
  static std::mutex once;
  static Machine* machine = nullptr;
  const std::lock_guard lock(once);
  if (machine) return *machine;
  machine = new Machine;
  std::atexit([] { delete machine; });  // said after DPDK has said the same, and so done before it
  return *machine;
}

Machine::Machine() : config_(load(registry_)) {
  const std::vector<unsigned> cores = choose_cores("", config_.live);
  if (cores.size() != 1) throw ConfigError(config_.file + ": a NIC runs on one core; leave out `live: cores:`");
  {
    const CallersThread kept;
    start_eal({.mebibytes = config::eal_mebibytes(config_) + kPortMebibytes, .cores = cores, .hugepages = true});
    pool_ = std::make_unique<Pool>(config_.pool, PacketsInMemory::kPacked);
    live_ = std::make_unique<Live>(config_, *pool_, cores);
  }
  Shard& shard = *live_->shards()[0];
  for (const config::DeviceConfig& device : config_.devices)
    if (auto* host =
            dynamic_cast<nic_model::Host*>(shard.testbed().device(shard.testbed().number(device.name)).host_side())) {
      devices_.push_back(std::make_unique<Device>(device.name, *host));
      shard.add_source(*devices_.back());
    }
  live_->start();
}

Machine::~Machine() { live_.reset(); }

Device& Machine::device(const std::string& name) {
  std::string names;
  for (const auto& one : devices_) {
    if (one->name() == name) return *one;
    names += (names.empty() ? "" : ", ") + one->name();
  }
  throw ConfigError(fmt::format("{} has no NIC `{}`; it has {}", config_.file, name, names.empty() ? "none" : names));
}

}  // namespace rocebox::libsdr
