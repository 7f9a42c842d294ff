// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/instance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"

namespace rocebox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "rocebox-", kSocket = "dpdk_telemetry.v2";
constexpr std::size_t kSocketPathMax = sizeof(sockaddr_un::sun_path) - 1;

// The value of a variable, up to the first colon: systemd lists several directories so, and EAL takes one.
std::string directory_in(const char* variable) {
  const char* value = std::getenv(variable);
  const std::string text = value ? value : "";
  return text.substr(0, text.find(':'));
}

// As EAL chooses it.
std::string runtime_directory() {
  if (std::string given = directory_in("RUNTIME_DIRECTORY"); !given.empty()) return given;
  if (getuid() == 0) return "/var/run";
  const std::string given = directory_in("XDG_RUNTIME_DIR");
  return given.empty() ? "/tmp" : given;
}

bool is_name(const std::string& name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; };
  return !name.empty() && name.size() <= kInstanceNameMax && std::isalnum(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), fits);
}

std::string name_from(const std::string& file) {
  std::string name = fs::path(file).stem().string().substr(0, kInstanceNameMax - 8);
  for (char& c : name)
    if (!is_name(std::string("x") + c)) c = '_';
  return is_name(name) ? name : "run" + name;
}

// Who listens may be busy, or not ours to ask: only a refusal says that nobody does.
int knock(const std::string& path) {
  sockaddr_un address{};
  if (path.size() > kSocketPathMax) return ENAMETOOLONG;
  const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kSocketPathMax);
  const int error = connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  close(descriptor);
  return error;
}

// The folder of this process, removed when it ends. A lock on it lasts as long as the process does, however it ends.
std::string& own_folder() {
  static std::string folder;
  return folder;
}

void remove_own_folder() {
  std::error_code ignored;
  fs::remove_all(own_folder(), ignored);
}

void add_instances(const fs::path& parent, std::set<std::string>& seen, std::vector<RunningInstance>& found) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const fs::path path = entry->path() / kSocket;
    const fs::path real = fs::canonical(path, error);
    if (error || !seen.insert(real.string()).second || !somebody_listens(path.string())) {
      error.clear();
      continue;
    }
    found.push_back({name.substr(kPrefix.size()), path.string()});
  }
}

}  // namespace

bool somebody_listens(const std::string& socket) {
  const int error = knock(socket);
  return error == 0 || error == EAGAIN;
}

std::vector<RunningInstance> running_instances() {
  std::vector<RunningInstance> found;
  std::set<std::string> seen;
  std::vector<fs::path> directories = {runtime_directory()};
  if (directory_in("RUNTIME_DIRECTORY").empty()) {
    directories.insert(directories.end(), {"/var/run", directory_in("XDG_RUNTIME_DIR"), "/tmp"});
    std::error_code error;
    for (fs::directory_iterator entry("/run", error), end; !error && entry != end; entry.increment(error))
      if (entry->path().filename().string().starts_with(kPrefix)) directories.push_back(entry->path());  // services
  }
  for (const fs::path& directory : directories)
    if (!directory.empty()) add_instances(directory / "dpdk", seen, found);
  std::sort(found.begin(), found.end(),
            [](const RunningInstance& a, const RunningInstance& b) { return a.name < b.name; });
  return found;
}

void remove_dead_instances(const std::string& prefix) {
  const fs::path parent = fs::path(runtime_directory()) / "dpdk";
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(std::string(kPrefix) + prefix)) folders.push_back(entry->path());
  for (const fs::path& folder : folders) {
    const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) continue;
    // A process that was killed has its lock and socket until its last thread is gone, a moment later.
    const auto is_over = [&] {
      return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && !somebody_listens(folder / kSocket);
    };
    int looks = 100;
    while (!is_over() && --looks > 0) usleep(20'000);
    if (looks > 0) fs::remove_all(folder, error);  // with the lock held: no run takes the folder meanwhile
    close(descriptor);
  }
}

Instance::Claim Instance::claim(const std::string& name) {
  name_ = name;
  directory_ = runtime_directory();
  const fs::path folder = fs::path(directory_) / "dpdk" / (std::string(kPrefix) + name);
  const std::string socket = folder / kSocket;
  if (socket.size() > kSocketPathMax) {
    why_not_ = fmt::format("{} is too long for a socket's path, by {} bytes", socket, socket.size() - kSocketPathMax);
    return Claim::kImpossible;
  }
  for (int attempt = 0; attempt < 3; attempt++) {
    mkdir(folder.parent_path().c_str(), 0700);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) break;
    const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) break;
    struct stat held {
    }, there{};
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || somebody_listens(socket)) {
      close(descriptor);
      return Claim::kTaken;
    }
    // Whoever had it may have removed it before the lock was ours.
    if (fstat(descriptor, &held) == 0 && stat(folder.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
        held.st_uid == geteuid()) {
      own_folder() = folder;
      std::atexit(remove_own_folder);         // before EAL is up, so that DPDK's own end comes first
      std::at_quick_exit(remove_own_folder);  // see leave_process()
      return Claim::kMine;                    // the descriptor stays open, and with it the lock
    }
    close(descriptor);
    errno = EBUSY;
  }
  why_not_ = fmt::format("no folder for telemetry sockets can be made: {}: {}", folder.string(), std::strerror(errno));
  return Claim::kImpossible;
}

Instance Instance::named(const std::string& name) {
  if (!is_name(name))
    throw ConfigError(
        fmt::format("--name {}: a name is up to {} letters, digits and -_. that begin with a letter or digit", name,
                    kInstanceNameMax));
  Instance instance;
  if (instance.claim(name) == Claim::kTaken)
    throw ConfigError(fmt::format(
        "--name {}: a run of this name is going on (rocebox top {}); choose another name or end it", name, name));
  return instance;
}

Instance Instance::of_file(const std::string& file) {
  const std::string name = name_from(file);
  Instance instance;
  if (instance.claim(name) != Claim::kTaken) return instance;
  for (unsigned number = 2;; number++)
    if (instance.claim(fmt::format("{}-{}", name, number)) != Claim::kTaken) return instance;
}

}  // namespace rocebox
