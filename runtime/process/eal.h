// SPDX-License-Identifier: BSD-3-Clause
// DPDK's environment layer, started once for the process.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace rocebox {

struct EalOptions {
  std::uint64_t mebibytes = 0;         ///< memory for pools and ports
  std::uint64_t apart_mebibytes = 0;   ///< what the pool will have beside that, for the limit on address space
  std::vector<unsigned> cores = {};    ///< CPUs of the polling lcores 1, 2, ...; lcore 0 floats over the others
  std::vector<std::string> pci = {};   ///< addresses of the NICs to take; none: the PCI bus is not looked at
  bool hugepages = false;              ///< use them when enough are free
  std::string instance = {};           ///< name of the telemetry socket's folder; empty: no telemetry
  std::string directory = {};          ///< what that folder is in: DIRECTORY/dpdk/rocebox-INSTANCE
  std::vector<std::string> more = {};  ///< the user's own EAL arguments
};

/// Starts EAL, once for the process; calling it again does nothing. It needs no hugepages, PCI device, root or
/// configuration file, and shares nothing with other processes, so any number of instances run side by side.
/// Without telemetry it leaves no file behind; with it, its socket, in a folder that is the caller's to remove when the
/// process ends. Threads that the caller makes afterwards keep off the polling cores, where there are others. Throws
/// ConfigError.
void start_eal(const EalOptions& options);
inline void start_eal(std::uint64_t mebibytes) { start_eal(EalOptions{.mebibytes = mebibytes}); }

/// Ends the process with `status` after main() is done, output flushed. With telemetry its threads may be answering,
/// and would find what they look at gone; so nothing is taken down under them then.
[[noreturn]] void leave_process(int status);

/// What DPDK has to say while this lives: of use when something fails, noise when it does not.
class DpdkLog {
 public:
  DpdkLog();
  ~DpdkLog();
  DpdkLog(const DpdkLog&) = delete;
  DpdkLog& operator=(const DpdkLog&) = delete;
  std::string text();

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

/// Whether EAL's memory is in hugepages.
bool eal_has_hugepages();

}  // namespace rocebox
