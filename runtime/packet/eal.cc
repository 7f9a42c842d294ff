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
#include <optional>
#include <system_error>

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

// What EAL has to say while it starts: of use when it fails, noise when it does not.
class StartLog {
 public:
  StartLog() : stream_(open_memstream(&text_, &size_)) { rte_openlog_stream(stream_); }
  ~StartLog() {
    rte_openlog_stream(nullptr);
    std::fclose(stream_);
    std::free(text_);
  }
  StartLog(const StartLog&) = delete;
  StartLog& operator=(const StartLog&) = delete;
  std::string text() {
    std::fflush(stream_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

}  // namespace

void start_eal(std::uint64_t mebibytes) {
  static bool started = false;
  if (started) return;
  if (access("/sys/devices/system/cpu", R_OK) != 0)  // EAL would print its usage
    throw ConfigError(
        "DPDK finds the CPUs in /sys/devices/system/cpu, which is not there: mount sysfs in this sandbox");
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
  const RuntimeFolder folder;
  StartLog log;
  if (rte_eal_init(static_cast<int>(words.size()), argv.data()) < 0)
    throw ConfigError(fmt::format("DPDK's environment did not start: {} (asked for {} MiB of memory)\n{}",
                                  rte_strerror(rte_errno), mebibytes, log.text()));
  std::atexit([] { rte_eal_cleanup(); });
  started = true;
}

}  // namespace rocebox
