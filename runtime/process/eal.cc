// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/eal.h"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <system_error>

#include "runtime/kernel/kernel.h"
#include "runtime/process/kept_output.h"
#include "runtime/process/memory.h"

namespace rocebox {
namespace {

// Of address space: its drivers and its own threads; a thread for each core, with what its heap sets aside.
constexpr std::uint64_t kEalMebibytes = 160, kThreadMebibytes = 16;

bool hugepages_used = false;
bool telemetry_answers = false;

// "0@(0,3,5)": lcore 0 on the CPUs that the process may use, so a pinned or limited sandbox is respected; then one each
// for the cores that are asked for: "1@3,2@5". What runs on lcore 0 and all other threads (telemetry, metrics) keep off
// those cores, unless there are no others.
std::string lcore_map(const std::vector<unsigned>& cores) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_SET(0, &allowed);
  cpu_set_t others = allowed;
  for (const unsigned core : cores) CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0) others = allowed;
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &others)) cpus += (cpus.empty() ? "" : ",") + std::to_string(cpu);
  std::string map = "0@(" + cpus + ")";
  for (std::size_t i = 0; i < cores.size(); i++) map += fmt::format(",{}@{}", i + 1, cores[i]);
  return map;
}

// Where EAL puts its run-time folder, which it takes from the environment.
class RuntimeDirectory {
 public:
  explicit RuntimeDirectory(const std::string& path) {
    if (const char* was = std::getenv(kName)) was_ = was;
    if (!path.empty()) setenv(kName, path.c_str(), 1);
  }
  ~RuntimeDirectory() {
    if (was_)
      setenv(kName, was_->c_str(), 1);
    else
      unsetenv(kName);
  }
  RuntimeDirectory(const RuntimeDirectory&) = delete;
  RuntimeDirectory& operator=(const RuntimeDirectory&) = delete;

 private:
  static constexpr const char* kName = "RUNTIME_DIRECTORY";
  std::optional<std::string> was_;
};

// EAL makes that folder even when it shares nothing; here it is one that is gone again when EAL is up. Where none can
// be made EAL goes without.
class PassingFolder {
 public:
  PassingFolder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent && *parent ? parent : "/tmp") + "/rocebox-XXXXXX";
    if (!mkdtemp(path_.data())) path_.clear();
  }
  ~PassingFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
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

// DPDK itself does not always say that it got none; some of it ends the process.
void require_address_space(const EalOptions& options) {
  const std::uint64_t left = address_space_bytes() >> 20;
  const std::uint64_t memory = options.mebibytes + options.apart_mebibytes;
  const std::uint64_t needed = memory + kEalMebibytes + kThreadMebibytes * options.cores.size();
  if (left < needed)
    throw ConfigError(fmt::format(
        "the limit on this process' address space (`ulimit -v`) leaves {} MiB, and DPDK needs {}, {} of it for "
        "packets and its tables; what kernels keep of flows comes on top: raise the limit, or lower `pool:`",
        left, needed, memory));
}

// Why EAL does not start; empty: it has. Of wrong arguments it prints all its usage.
std::string init(const EalOptions& options, std::vector<char*>& argv) {
  DpdkLog log;
  KeptOutput out(STDOUT_FILENO), err(STDERR_FILENO);
  if (rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) >= 0) return "";
  const int error = rte_errno;
  const std::string said = err.text();
  if (out.text().find("Usage") != std::string::npos)
    return fmt::format("it does not take the arguments behind `--` ({}){}{}", fmt::join(options.more, " "),
                       said.empty() ? "" : ": ", said.substr(0, said.find('\n')));
  if (error == ENOMEM)
    return fmt::format("{} MiB of memory are not to be had; lower `pool:`\n{}{}", options.mebibytes, said, log.text());
  return fmt::format("{}\n{}{}", rte_strerror(error), said, log.text());
}

}  // namespace

void leave_process(int status) {
  if (!telemetry_answers) std::exit(status);
  std::fflush(nullptr);
  std::quick_exit(status);
}

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

void start_eal(const EalOptions& options) {
  static bool started = false;
  if (started) return;
  require_address_space(options);
  if (access("/sys/devices/system/cpu", R_OK) != 0)  // EAL would print its usage
    throw ConfigError(
        "DPDK finds the CPUs in /sys/devices/system/cpu, which is not there: mount sysfs in this sandbox");
  std::vector<std::string> words = eal_arguments(options);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::optional<PassingFolder> passing;
  if (options.instance.empty()) passing.emplace();
  const RuntimeDirectory directory(passing ? passing->path() : options.directory);
  if (const std::string why = init(options, argv); !why.empty())
    throw ConfigError(fmt::format("DPDK's environment did not start: {}", why));
  telemetry_answers = !options.instance.empty();
  if (!telemetry_answers) std::atexit([] { rte_eal_cleanup(); });
  started = true;
}

}  // namespace rocebox
