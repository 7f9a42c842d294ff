// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/live.h"

#include <fmt/format.h>
#include <rte_launch.h>
#include <rte_pause.h>

#include <algorithm>
#include <utility>

#include "runtime/config/printable.h"
#include "runtime/drives/live/eth_port.h"
#include "runtime/drives/live/mtus.h"
#include "runtime/drives/live/raw_port.h"
#include "runtime/flows/zeroed_array.h"
#include "runtime/process/eal.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox {
namespace {

// The entries of the shortest indirection table, when every port can spread packets over as many queues; else 0.
unsigned common_hash_entries(const std::vector<std::unique_ptr<LivePort>>& ports, unsigned shards) {
  unsigned entries = ~0u;
  for (const auto& port : ports)
    entries = port->ability().queues < shards ? 0 : std::min(entries, port->ability().hash_entries);
  return ports.empty() ? 0 : entries;
}

}  // namespace

Live::Live(const config::RunConfig& config, Pool& pool, const std::vector<unsigned>& cores, ExtraOutputs outputs)
    : config_(config), pool_(pool), cores_(cores), captures_(config, std::move(outputs), pool, clock_, ports_) {
  make_ports();
  const auto shards = static_cast<unsigned>(cores.size());
  const unsigned entries = shards > 1 ? common_hash_entries(ports_, shards) : 0;
  if (shards > 1 && entries == 0)
    rss_ = std::make_unique<SoftwareRss>(
        shards, ports_.size(),
        config_.live.idle == config::Idle::kInterrupt ? SoftwareRss::Readers::kSleep : SoftwareRss::Readers::kAwake);
  check_pool();
  for (const auto& port : ports_) port->set_up(rss_ ? 1 : shards, entries, pool);
  check_pool();  // again: a driver may have taken packets for itself, net_pcap's infinite_rx its whole capture
  check_mtus(config, ports_);
  for (unsigned shard = 0; shard < shards; shard++) {
    // The first packets of a flow must not wait for pages: what comes meanwhile would be missed.
    const flows::TouchedWhenMade touched(kTouchedAtStartBytes);
    shards_.push_back(std::make_unique<Shard>(shard, config, pool, ports_, rss_.get(), clock_));
  }
  if (shards > 1 && !config.workloads.empty())
    throw ConfigError(fmt::format("{}: workloads run on one core, and {} were asked for",
                                  config.place_text(config.workloads[0].place), shards));
  link_watch_ = std::make_unique<LinkWatch>(
      ports_, clock_, config.live.port_lost == config::PortLost::kEnd,
      [](const std::string& line) { fmt::print(stderr, "rocebox: {}\n", config::printable(line)); });
  captures_.open();
}

void Live::make_ports() {
  if (config_.live_ports.empty() &&
      std::all_of(config_.captures.begin(), config_.captures.end(), [](const auto& b) { return b.in.empty(); }))
    throw ConfigError(
        fmt::format("{}: packets come from nowhere: no port is bound to anything live, nor to a capture; give such as "
                    "`ports: {{PORT: {{af_packet: eth0}}}}` or `{{pcap: {{in: FILE}}}}`",
                    config_.file));
  for (const config::LiveBinding& binding : config_.live_ports) {
    const std::string by = config_.bound_by(binding.place);
    if (binding.live.kind == config::PortKind::kAfPacket)
      ports_.push_back(std::make_unique<RawPort>(binding, by));
    else
      ports_.push_back(std::make_unique<EthPort>(binding, by, static_cast<unsigned>(ports_.size()), rings_));
  }
  refuse_shared();
  std::stable_sort(ports_.begin(), ports_.end(), [](const auto& a, const auto& b) {
    return std::pair(a->place().line, a->place().column) < std::pair(b->place().line, b->place().column);
  });
}

// Those that the configuration calls by different names.
void Live::refuse_shared() const {
  for (std::size_t i = 0; i < ports_.size(); i++)
    for (std::size_t j = 0; j < i; j++)
      if (ports_[i]->interface_index() >= 0 && ports_[i]->interface_index() == ports_[j]->interface_index())
        ports_[i]->refuse(
            fmt::format("this interface is that of port `{}` ({}), too", ports_[j]->port().text(), ports_[j]->text()));
}

void Live::claim_interfaces(const std::string& run) {
  claims_ = std::make_unique<InterfaceClaims>(run);
  for (const auto& port : ports_)
    if (const int index = port->interface_index(); index >= 0)
      for (const std::string& other : claims_->claim(index))
        fmt::print(stderr, "rocebox: {}\n",
                   config::printable(fmt::format(
                       "port `{}` ({}): {} uses this interface, too: what arrives there comes into both runs",
                       port->port().text(), port->text(), other)));
}

std::string Live::lost() const {
  const LivePort* port = config_.live.port_lost == config::PortLost::kEnd ? link_watch_->lost() : nullptr;
  if (!port) return "";
  return fmt::format("port `{}` ({}): its interface is gone, and `live: port_lost:` is `end`", port->port().text(),
                     port->text());
}

void Live::check_pool() const {
  const auto shards = static_cast<unsigned>(cores_.size());
  std::uint64_t needed = rss_ ? std::uint64_t{2} * shards * ports_.size() * kHandoverPackets / 4 : 0;
  for (const auto& port : ports_) needed += port->packets_needed(rss_ ? 1 : shards);
  needed += pool_.in_use();
  if (needed > config_.pool.small)
    throw ConfigError(
        fmt::format("{}: the ports and their queues can hold {} packets; raise `pool: small:` from {} to at "
                    "least that, or lower `rx_descriptors:` and `tx_descriptors:`",
                    config_.file, needed, config_.pool.small));
}

Live::~Live() {
  if (running_) stop();
  shards_.clear();
}

void Live::start() {
  const std::lock_guard lock(control_);
  for (const auto& port : ports_) port->start();
  pool_idle_ = pool_.in_use();
  launches_.clear();
  launched_ = 0;
  ended_ = 0;
  for (const auto& shard : shards_) launches_.push_back({shard.get(), &stop_, &ended_, config_.drain});
  for (const auto& shard : shards_) shard->mailbox().open();
  {
    const std::lock_guard observed(observer_);  // a report that has begun ends before
    running_ = true;
  }
  captures_.start();
  started_ = clock_.now();
  const auto run = [](void* argument) {
    const auto* launch = static_cast<const Launch*>(argument);
    launch->shard->run(*launch->stop, launch->drain);
    launch->ended->fetch_add(1, std::memory_order_release);
    return 0;
  };
  for (unsigned i = 0; i < launches_.size(); i++)
    if (rte_eal_remote_launch(run, &launches_[i], i + 1) == 0) launched_++;
}

void Live::stop() {
  {
    const std::lock_guard lock(control_);
    stop_ = true;
    link_watch_->stop();
    captures_.stop_reading();
  }
  for (unsigned i = 0; i < shards_.size(); i++) rte_eal_wait_lcore(i + 1);  // which serve to the end
  // It has ended by now; but ThreadSanitizer does not look into DPDK's library, and would not know what that orders.
  while (ended_.load(std::memory_order_acquire) < launched_) rte_pause();
  const std::lock_guard observed(observer_);
  stopped_ = clock_.now();
  captures_.finish_writing();
  running_ = false;
}

void Live::for_each_shard(const std::function<void(Shard&)>& work) {
  const std::lock_guard lock(control_);
  for (const auto& shard : shards_) shard->mailbox().have_done([&] { work(*shard); });
}

std::vector<Shard*> Live::shards() {
  std::vector<Shard*> all;
  for (const auto& shard : shards_) all.push_back(shard.get());
  return all;
}

void Live::publish(const Json& report) {
  captures_.publish([&report] { return json_text(report); });
}

Histogram Live::port_latency(std::size_t port) const {
  Histogram all;
  for (const auto& shard : shards_) all.add(shard->latency(port));
  return all;
}

}  // namespace rocebox
