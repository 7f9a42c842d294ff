// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/shard.h"

#include <algorithm>

namespace rocebox {
namespace {

// Loops between two looks at the stop flag; one burst each at most.
constexpr unsigned kLoopsPerRound = 64;

bool has_kernels(const config::RunConfig& config) {
  return !config.links.empty() || std::any_of(config.devices.begin(), config.devices.end(),
                                              [](const auto& device) { return !device.kernels.empty(); });
}

// Nothing looks at packets but for where they come from.
bool is_bare(const config::RunConfig& config, const TransmitQueues& queues) {
  for (std::size_t i = 0; i < queues.ports(); i++)
    if (queues.port(i).fills_metadata()) return false;
  return !has_kernels(config);
}

// By port: whether its packets may leave by another one as they have come.
std::vector<bool> can_pass(const config::RunConfig& config, const TransmitQueues& queues, bool spread) {
  const bool bare = is_bare(config, queues) && !spread;
  std::vector<bool> can;
  for (std::size_t i = 0; i < queues.ports(); i++)
    can.push_back(bare && !queues.port(i).tolerates_waiting() && !finishes_checksums(queues.port(i)));
  return can;
}

}  // namespace

Shard::Shard(unsigned number, const config::RunConfig& config, Pool& pool,
             const std::vector<std::unique_ptr<LivePort>>& ports, SoftwareRss* rss, const Clock& clock)
    : number_(number),
      rss_(rss),
      clock_(clock),
      counters_(ports.size()),
      sample_(clock, ports.size()),
      queues_(number, ports, rss, static_cast<unsigned>(config.live.burst), sample_, counters_),
      devices_(number, config, pool, clock_, queues_, sample_),
      relay_(number, static_cast<unsigned>(config.live.burst), can_pass(config, queues_, rss != nullptr), devices_,
             queues_, counters_),
      idler_(config.live.idle, config.live.idle_sleep) {
  add_sources(config);
  if (number == 0 && !config.workloads.empty())
    workloads_ = std::make_unique<SimWorkloads>(config, testbed(), clock.now());
}

void Shard::add_sources(const config::RunConfig& config) {
  const auto burst = static_cast<unsigned>(config.live.burst);
  const bool bare = is_bare(config, queues_);
  sources_.push_back(&mailbox_);  // first: what it has done takes time, which idling must not add to
  for (std::size_t i = 0; i < queues_.ports(); i++) {
    if (!rss_ || rss_->owner(i) == number_) {
      const bool untouched = bare && !finishes_checksums(queues_.port(i));
      ports_.push_back(
          std::make_unique<PortSource>(i, rss_ ? 0 : number_, burst, untouched, devices_, queues_, rss_, counters_[i]));
      sources_.push_back(ports_.back().get());
    }
    if (!rss_) continue;
    handed_over_.push_back(std::make_unique<HandoverSource>(i, number_, burst, devices_, queues_, *rss_));
    sources_.push_back(handed_over_.back().get());
  }
  for (unsigned device = 0; device < testbed().device_count(); device++) {
    HostSide* host = testbed().device(device).host_side();
    if (!host) continue;
    hosts_.push_back(std::make_unique<HostSource>(device, *host, devices_));
    sources_.push_back(hosts_.back().get());
  }
  if (config.live.idle == config::Idle::kInterrupt)
    for (Source* source : sources_) idler_.watch(*source);
}

void Shard::run(const std::atomic<bool>& stop, Nanos drain) {
  idler_.start();
  clock_.read();
  devices_.start();
  while (!stop.load(std::memory_order_relaxed)) {
    if (relay_.is_open()) {
      if (!loop()) continue;
      sample_.stop();
      const WireRelay::Loops loops = relay_.run(kLoopsPerRound - 1);
      loops_.add(loops.done);
      busy_loops_.add(loops.busy);
      clock_.count_busy();
      continue;
    }
    for (unsigned i = 0; i < kLoopsPerRound; i++)
      if (!loop()) break;
  }
  let_go(drain);
}

void Shard::change(unsigned device, unsigned kernel, Change& change) {
  change.apply(testbed().device(device).kernel(kernel), clock_.now());
}

// Starts what is due. Whether something was.
bool Shard::run_workloads() {
  if (workloads_->all_finished()) workloads_finished_.store(true, std::memory_order_relaxed);
  if (workloads_->next_start() > clock_.now()) return false;
  workloads_->start_due(clock_.now());
  return true;
}

// One burst from every source. False when the core has slept, and other things than packets may have come to pass.
bool Shard::loop() {
  const Nanos now = clock_.read();
  sample_.begin_loop(loops_.read());
  bool busy = workloads_ && run_workloads();
  for (Source* source : sources_) busy |= source->poll(now);
  devices_.run_timers();
  queues_.flush();
  sample_.end_loop();
  loops_.add();
  if (busy) {
    clock_.count_busy();
    busy_loops_.add();
    idler_.busy();
    return true;
  }
  const Nanos next = next_event();
  idler_.idle(next == kNever ? kSecond : std::max<Nanos>(next - now, 0));
  return false;
}

Nanos Shard::next_event() const {
  Nanos next = devices_.next_deadline();
  if (workloads_) next = std::min(next, workloads_->next_start());
  for (const Source* source : sources_) next = std::min(next, source->next_due());
  return next;
}

// Nothing is taken from the ports any more. What other shards still hand in comes in, what the devices hold leaves in
// its own time, and what other shards hand out is sent; these one after the other, so that none can come too late.
void Shard::let_go(Nanos drain) {
  // What shards hand to each other is there at once, unless a core does not get to run.
  constexpr Nanos kHandOver = kSecond;
  const Nanos end = clock_.clock().now() + drain;
  sample_.stop();
  const auto close = [this](SoftwareRss::Direction direction, Nanos limit) {
    if (!rss_) return;
    rss_->close(direction);
    run_until(limit, [&] { return rss_->closed(direction) && rss_->empty(direction, number_); });
  };
  close(SoftwareRss::Direction::kIn, clock_.clock().now() + kHandOver);
  run_until(end, [&] { return testbed().fabric().held() == 0; });
  queues_.flush();
  close(SoftwareRss::Direction::kOut, std::max(end, clock_.clock().now()) + kHandOver);
  send_rest();
  mailbox_.close();
}

template <class Done>
void Shard::run_until(Nanos limit, Done done) {
  while (clock_.read() < limit && !done()) {
    mailbox_.poll(clock_.now());
    bool busy = false;
    for (const auto& source : handed_over_) busy |= source->poll(clock_.now());
    busy |= devices_.run_timers();
    queues_.flush();
    if (!busy) idler_.idle(std::clamp<Nanos>(devices_.next_deadline() - clock_.now(), 0, kMillisecond));
  }
}

void Shard::send_rest() {
  // What a port does not take for so long at the end is lost: it is down, or nobody is at its other side.
  constexpr Nanos kLastSend = 100 * kMillisecond;
  const Nanos end = clock_.clock().now() + kLastSend;
  for (queues_.flush(); queues_.congested() && clock_.clock().now() < end; queues_.flush()) idler_.idle(kMillisecond);
  queues_.drop_all();
}

}  // namespace rocebox
