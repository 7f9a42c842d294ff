// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/eal.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <system_error>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

bool hugepages_used = false;
std::string telemetry_folder;

// "0@(0,3,5)": lcore 0 on all CPUs that the process may use, so a pinned or limited sandbox is respected; then one each
// for the cores that are asked for: "1@3,2@5".
std::string lcore_map(const std::vector<unsigned>& cores) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_SET(0, &allowed);
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed)) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  std::string map = "0@(" + cpus + ")";
  for (std::size_t i = 0; i < cores.size(); i++) map += fmt::format(",{}@{}", i + 1, cores[i]);
  return map;
}

// EAL makes a run-time folder even when it shares nothing, at a place that it takes from the environment; here it is
// one that is gone again when EAL is up. Where none can be made EAL goes without.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent && *parent ? parent : "/tmp") + "/rocebox-XXXXXX";
    if (!mkdtemp(path_.data())) path_.clear();
    if (const char* was = std::getenv(kName)) was_ = was;
    if (!path_.empty()) setenv(kName, path_.c_str(), 1);
  }
  ~RuntimeFolder() {
    was_ ? setenv(kName, was_->c_str(), 1) : unsetenv(kName);
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

 private:
  static constexpr const char* kName = "RUNTIME_DIRECTORY";
  std::string path_;
  std::optional<std::string> was_;
};

// Whether as much memory is free in hugepages of the default size.
bool hugepages_suffice(std::uint64_t mebibytes) {
  std::ifstream file("/proc/meminfo");
  std::uint64_t free = 0, kibibytes = 0;
  for (std::string word; file >> word;) {
    if (word == "HugePages_Free:") file >> free;
    if (word == "Hugepagesize:") file >> kibibytes;
  }
  return free * kibibytes / 1024 >= mebibytes;
}

std::vector<std::string> eal_arguments(const EalOptions& options) {
  std::vector<std::string> words = {"rocebox",
                                    "-m",
                                    std::to_string(options.mebibytes),
                                    "--lcores",
                                    lcore_map(options.cores),
                                    "--main-lcore",
                                    "0",
                                    "--iova-mode",
                                    "va",
                                    "--log-level",
                                    "*:warning"};
  auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  hugepages_used = options.hugepages && hugepages_suffice(options.mebibytes);
  // --in-memory is meant for hugepages; without them EAL refuses it, and these two come to the same.
  if (hugepages_used)
    add({"--in-memory"});
  else
    add({"--no-huge", "--no-shconf"});
  if (options.instance.empty())
    add({"--no-telemetry", "--file-prefix", fmt::format("rocebox-{}", getpid())});
  else
    add({"--file-prefix", "rocebox-" + options.instance});
  if (options.pci.empty()) add({"--no-pci"});
  for (const std::string& address : options.pci) add({"-a", address});
  words.insert(words.end(), options.more.begin(), options.more.end());
  return words;
}

// Removes what EAL leaves of its telemetry.
void remove_telemetry_folder() {
  std::error_code ignored;
  if (!telemetry_folder.empty()) std::filesystem::remove_all(telemetry_folder, ignored);
}

}  // namespace

DpdkLog::DpdkLog() : stream_(open_memstream(&text_, &size_)) { rte_openlog_stream(stream_); }
DpdkLog::~DpdkLog() {
  rte_openlog_stream(nullptr);
  std::fclose(stream_);
  std::free(text_);
}
std::string DpdkLog::text() {
  std::fflush(stream_);
  return {text_, size_};
}

bool eal_has_hugepages() { return hugepages_used; }
std::string eal_folder() { return telemetry_folder; }

void start_eal(const EalOptions& options) {
  static bool started = false;
  if (started) return;
  if (access("/sys/devices/system/cpu", R_OK) != 0)  // EAL would print its usage
    throw ConfigError(
        "DPDK finds the CPUs in /sys/devices/system/cpu, which is not there: mount sysfs in this sandbox");
  std::vector<std::string> words = eal_arguments(options);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::optional<RuntimeFolder> folder;
  if (options.instance.empty()) folder.emplace();
  DpdkLog log;
  if (rte_eal_init(static_cast<int>(words.size()), argv.data()) < 0)
    throw ConfigError(fmt::format("DPDK's environment did not start: {} (asked for {} MiB of memory)\n{}",
                                  rte_strerror(rte_errno), options.mebibytes, log.text()));
  if (!options.instance.empty()) telemetry_folder = rte_eal_get_runtime_dir();
  std::atexit([] {
    rte_eal_cleanup();
    remove_telemetry_folder();
  });
  started = true;
}

}  // namespace rocebox
