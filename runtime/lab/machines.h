// SPDX-License-Identifier: BSD-3-Clause
// The hosts of a lab that are virtual machines. Each is a QEMU in its host's namespace, started and spoken to by vm.py;
// so it ends with the namespace, as all that runs there.
#pragma once
#include <string>
#include <vector>

#include "runtime/lab/interrupts.h"
#include "runtime/lab/lab_config.h"
#include "runtime/lab/process.h"

namespace rocebox::lab {

class Machines {
 public:
  /// `folder`: the lab's, for what belongs to them.
  Machines(const LabConfig& lab, std::string folder) : lab_(lab), folder_(std::move(folder)) {}

  /// Finds what they boot, or has it made: the first time on a computer that takes a minute and a download. Throws
  /// ConfigError naming what is missing here, std::runtime_error when it fails otherwise; Interrupted.
  void find_image(Interrupts& interrupts);
  /// Boots all at once, waits until they run commands, and gives them their routes, neighbours and sysctls. Their TAPs
  /// are there, in their namespaces. Throws ConfigError with the place of a setting that a machine does not take,
  /// std::runtime_error with what a machine said that does not boot; Interrupted.
  void boot(Interrupts& interrupts);

 private:
  void await(std::vector<Process>& processes, Interrupts& interrupts) const;
  std::vector<std::string> start_words(const HostConfig& host) const;
  void give_settings(const HostConfig& host) const;
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  const LabConfig& lab_;
  std::string folder_, image_;
};

/// What virtual machines take, as require_tools() has it for the rest of a lab. Throws ConfigError naming what is
/// missing and the mend; a lab without machines takes nothing.
void require_machine_tools(const LabConfig& lab);

/// The words that run a command in a machine of the lab whose folder that is, for at most so long.
std::vector<std::string> in_machine(const std::string& lab_folder, const std::string& host, Nanos timeout,
                                    const std::vector<std::string>& words);
/// A command for a machine's shell that ends when something there listens on that TCP port.
std::string until_listening(std::int64_t port);

}  // namespace rocebox::lab
