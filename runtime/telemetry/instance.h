// SPDX-License-Identifier: BSD-3-Clause
// Instances: the names of live runs on this machine, and where their telemetry sockets are.
#pragma once
#include <string>
#include <vector>

namespace rocebox {

/// A live run that answers on its telemetry socket.
struct RunningInstance {
  std::string name;
  std::string socket;  ///< path of the socket
};

/// Those that this user may talk to, by name: of this user, and of services (`rocebox@NAME`); where
/// $RUNTIME_DIRECTORY is set, those below it alone.
std::vector<RunningInstance> running_instances();
/// Whether somebody listens on a telemetry socket; a process that was killed leaves one where nobody does.
bool somebody_listens(const std::string& socket);

/// Removes the folders of runs whose names begin with `prefix` and that are over without having removed them: no
/// process has them locked and nobody listens in them. Looks where a run of this process would have its own. What
/// cannot be removed stays.
void remove_dead_instances(const std::string& prefix);

/// The name of this process' run, and the folder for its sockets, which is its own until the process ends and is
/// removed then. The folder is where DPDK looks: DIRECTORY/dpdk/rocebox-NAME, DIRECTORY being $RUNTIME_DIRECTORY (set
/// by systemd), else /var/run for root, else $XDG_RUNTIME_DIR or /tmp.
class Instance {
 public:
  /// Takes exactly `name`. Throws ConfigError when it is no name, or when a living process has it.
  static Instance named(const std::string& name);
  /// Takes a name made from that of a configuration file, or NAME-2, NAME-3... when it is taken.
  static Instance of_file(const std::string& file);

  const std::string& name() const { return name_; }
  /// DIRECTORY above; for EAL, which puts dpdk/rocebox-NAME below it.
  const std::string& directory() const { return directory_; }
  /// Why there can be no telemetry: no folder could be made. Empty when all is well.
  const std::string& why_not() const { return why_not_; }

 private:
  enum class Claim { kMine, kTaken, kImpossible };
  Instance() = default;
  Claim claim(const std::string& name);

  std::string name_, directory_, why_not_;
};

}  // namespace rocebox
