// SPDX-License-Identifier: BSD-3-Clause
// swarm: random configurations under random traffic, each a function of its seed.
//   swarm [--seeds A..B] [--seed N] [--packets N]     N of the seeds 1 to N: environment ROCEBOX_SWARM_SEEDS
// For what goes wrong it prints seed and configuration. Exit status: 0 all held, 1 not, 2 bad arguments.
#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "runtime/kernel/model.h"
#include "runtime/process/eal.h"
#include "switch_model/program.h"
#include "tests/swarm/fabric.h"
#include "tests/swarm/judge.h"

namespace {

using namespace rocebox;

constexpr PoolSizes kSizes{.small = 16384, .large = 8192, .giant = 8};
constexpr std::uint64_t kTablesMebibytes = 1024;  // routes of two switches, and those of others
constexpr long kSecondsMax = 100;                 // of CPU time for one seed: some hundred times what one takes
constexpr std::uint64_t kSeedsForAll = 300;       // so many must reach every component
constexpr unsigned kFabricTries = 50;             // networks drawn for a seed until devices and workloads can be made

std::string current;  // what is said when the process is ended

void on_end(int signal) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, current.data(), current.size());
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void limit_time() {
  const itimerval limit{{0, 0}, {kSecondsMax, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

struct Arguments {
  std::uint64_t first = 1, last = 20;
  std::size_t packets = 3000;
  // Of a seed alone its configuration, whatever comes of it.
  void show(const std::string& yaml) const {
    if (first == last) fmt::print("{}---\n", yaml);
  }
};

bool number(const char* text, std::uint64_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  return end != text && *end == '\0';
}

bool read(int argc, char** argv, Arguments& a) {
  std::uint64_t value = 0;
  if (const char* seeds = std::getenv("ROCEBOX_SWARM_SEEDS"); seeds && !number(seeds, a.last)) return false;
#ifdef ROCEBOX_SANITIZED  // which take many times as long for a seed
  a.last = std::max<std::uint64_t>(a.last / 20, 20);
#endif
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], text = argv[i + 1];
    const std::size_t dots = text.find("..");
    if (option == "--seeds" && dots != std::string::npos) {
      if (!number(text.substr(0, dots).c_str(), a.first) || !number(text.substr(dots + 2).c_str(), a.last))
        return false;
    } else if (option == "--seed" && number(text.c_str(), a.first)) {
      a.last = a.first;
    } else if (option == "--packets" && number(text.c_str(), value) && value >= 16) {
      a.packets = value;
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && a.first <= a.last;
}

std::string run_seed(std::uint64_t seed, const Arguments& arguments, Pool& pool, std::set<std::string>& reached,
                     swarm::Looked& looked) {
  const auto scenario = swarm::make_scenario(seed);
  current = fmt::format("\nended in seed {} with\n{}", seed, scenario->yaml);
  const swarm::Traffic traffic = swarm::make_traffic(*scenario, seed, arguments.packets);
  std::string mistakes;
  try {
    mistakes = swarm::judge(*scenario, traffic, pool, looked);
  } catch (const ConfigError&) {
    return "";  // what only making the devices shows: strict programs without room
  } catch (const std::exception& error) {
    mistakes = fmt::format("  {}\n", error.what());
  }
  arguments.show(scenario->yaml);
  reached.insert(scenario->components.begin(), scenario->components.end());
  if (mistakes.empty()) return "";
  return fmt::format("seed {}:\n{}--- swarm --seed {} --packets {}\n{}---\n", seed, mistakes, seed, arguments.packets,
                     scenario->yaml);
}

// What only making devices and workloads shows leads to another draw.
std::string run_fabric_seed(std::uint64_t seed, const Arguments& arguments, Pool& pool, std::set<std::string>& reached,
                            swarm::Looked& looked) {
  std::string why;
  for (unsigned attempt = 0; attempt < kFabricTries; attempt++) {
    const auto scenario = swarm::make_fabric(seed, attempt);
    current = fmt::format("\nended in seed {} with\n{}", seed, scenario->yaml);
    std::string mistakes;
    try {
      mistakes = swarm::judge_fabric(*scenario, pool, looked);
    } catch (const ConfigError& error) {
      why = error.what();
      continue;
    } catch (const std::exception& error) {
      mistakes = fmt::format("  {}\n", error.what());
    }
    arguments.show(scenario->yaml);
    reached.insert(scenario->components.begin(), scenario->components.end());
    if (mistakes.empty()) return "";
    return fmt::format("seed {}:\n{}--- swarm --seed {}\n{}---\n", seed, mistakes, seed, scenario->yaml);
  }
  return fmt::format("seed {}: no network whose devices and workloads can be made; the last one: {}\n", seed, why);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read(argc, argv, arguments)) {
    std::fputs("usage: swarm [--seeds A..B] [--seed N] [--packets N]\n", stderr);
    return 2;
  }
  for (const int signal : {SIGABRT, SIGPROF}) std::signal(signal, on_end);
#ifndef ROCEBOX_SANITIZED
  std::signal(SIGSEGV, on_end);
#endif
  start_eal(kSizes.mebibytes() + kTablesMebibytes);
  Pool pool(kSizes);
  std::set<std::string> reached;
  swarm::Looked looked;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = arguments.first; seed <= arguments.last; seed++) {
    limit_time();
    const std::string said = swarm::draws_fabric(seed) ? run_fabric_seed(seed, arguments, pool, reached, looked)
                                                       : run_seed(seed, arguments, pool, reached, looked);
    if (!said.empty()) failed++;
    fmt::print("{}", said);
    std::fflush(stdout);
  }
  const std::uint64_t seeds = arguments.last - arguments.first + 1;
  if (seeds >= kSeedsForAll) {
    const auto need = [&](const char* name) {
      if (reached.contains(name)) return;
      fmt::print("no seed has reached `{}`\n", name);
      failed++;
    };
    for (const Component& component : in_tree_components())
      if (component.kind != std::string_view(kModelKind)) need(component.name);  // no packet meets a model
  }
  fmt::print(
      "swarm: seeds {} to {}, {} packets each: {} ran, {} packets left, {} payloads compared, {} of them in order, "
      "{} also cut into batches; {} networks, {} of them without faults, {} transfers, {} in which somebody gave up; "
      "{} "
      "failed\n",
      arguments.first, arguments.last, arguments.packets, looked.runs, looked.delivered, looked.payloads,
      looked.in_order, looked.cuts, looked.fabrics, looked.clean, looked.transfers, looked.gave_up, failed);
  return failed ? 1 : 0;
}
