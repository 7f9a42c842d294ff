// SPDX-License-Identifier: BSD-3-Clause
// `rocebox run`: live traffic through a configuration, until a signal or for a stated time.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/cli/commands.h"
#include "runtime/config/units.h"
#include "runtime/drives/live/live.h"
#include "runtime/packet/eal.h"

namespace rocebox::cli {
namespace {

// Signals as events, for this thread alone: the cores are not to be disturbed.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC);
  }
  ~Signals() {
    close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal, or 0 when none came within that time; negative: for ever.
  int wait(Nanos nanos) {
    pollfd ready{descriptor_, POLLIN, 0};
    const Nanos milliseconds = std::min<Nanos>((nanos + kMillisecond - 1) / kMillisecond, 1 << 30);
    if (poll(&ready, 1, nanos < 0 ? -1 : static_cast<int>(milliseconds)) <= 0) return 0;
    signalfd_siginfo info{};
    return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_;
  int descriptor_;
};

// Every port keeps its receive queues full of packets from the pool.
void check_pool(const config::RunConfig& config, std::size_t shards) {
  std::uint64_t needed = 2 * kBatchMax * shards;
  for (const config::LiveBinding& binding : config.live_ports)
    needed += static_cast<std::uint64_t>(binding.live.rx_descriptors + binding.live.tx_descriptors) * shards;
  if (needed > config.pool.small)
    throw ConfigError(
        fmt::format("{}: the queues of the ports can hold {} packets; raise `pool: small:` from {} to at "
                    "least that, or lower `rx_descriptors:` and `tx_descriptors:`",
                    config.file, needed, config.pool.small));
}

}  // namespace

int run(const RunArguments& arguments) {
  Nanos duration = -1;
  if (!arguments.duration.empty()) {
    const auto parsed = config::parse_duration(arguments.duration);
    if (!parsed) throw ConfigError(fmt::format("--duration {}: write such as 10s", arguments.duration));
    duration = *parsed;
  }
  Registry registry = make_registry(arguments.plugins);
  config::RunConfig config = load_or_throw(arguments.config, registry);
  if (arguments.seed) config.seed = *arguments.seed;
  const std::vector<unsigned> cores = choose_cores(arguments.cores, config.live);
  check_pool(config, cores.size());
  Signals signals;
  EalOptions eal;
  eal.mebibytes = config.pool.mebibytes() + 64;
  eal.cores = cores;
  eal.hugepages = true;
  eal.more = arguments.eal;
  for (const config::LiveBinding& binding : config.live_ports)
    if (binding.live.kind == config::PortKind::kPci) eal.pci.push_back(binding.live.pci);
  start_eal(eal);
  Pool pool(config.pool);
  Live live(config, pool, cores);
  live.start();
  fmt::print(stderr, "rocebox run {}: {} port(s), {} shard(s) on core(s) {}, memory in {}\n", arguments.config,
             config.live_ports.size(), cores.size(), fmt::join(cores, ","),
             eal_has_hugepages() ? "hugepages" : "ordinary pages");
  for (int signal = signals.wait(duration); signal == SIGHUP;) signal = signals.wait(duration);
  live.stop();
  const Json report = live.report();
  if (arguments.json == "-")
    fmt::print("{}\n", report.dump(2));
  else
    fmt::print("{}", report_text(report));
  return 0;
}

}  // namespace rocebox::cli
