// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

// "0@(0,3,5)": one lcore on all CPUs that the process may use, so a pinned or limited sandbox is respected.
std::string lcore_map() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return "0@0";
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed)) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  return "0@(" + cpus + ")";
}

// EAL makes a run-time folder for its file prefix even when it shares nothing; an empty folder is still litter.
void remove_runtime_folder() {
  const char* folder = rte_eal_get_runtime_dir();
  if (folder) rmdir(folder);
}

}  // namespace

void start_eal(std::uint64_t mebibytes) {
  static bool started = false;
  if (started) return;
  std::vector<std::string> words = {"rocebox",
                                    "--no-huge",
                                    "--no-shconf",
                                    "--no-pci",
                                    "--no-telemetry",
                                    "-m",
                                    std::to_string(mebibytes),
                                    "--lcores",
                                    lcore_map(),
                                    "--iova-mode",
                                    "va",
                                    "--file-prefix",
                                    "rocebox-" + std::to_string(getpid()),
                                    "--log-level",
                                    "*:warning"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int result = rte_eal_init(static_cast<int>(words.size()), argv.data());
  remove_runtime_folder();
  if (result < 0)
    throw ConfigError(std::string("DPDK's environment did not start: ") + rte_strerror(rte_errno) + " (asked for " +
                      std::to_string(mebibytes) + " MiB of memory)");
  std::atexit([] { rte_eal_cleanup(); });
  started = true;
}

}  // namespace rocebox
