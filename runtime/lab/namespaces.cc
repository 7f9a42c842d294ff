// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/namespaces.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/lab/interrupts.h"
#include "runtime/lab/pidfd.h"
#include "runtime/lab/process.h"

namespace rocebox::lab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFolder = "/run/netns";  // where iproute2 keeps them
constexpr const char* kPrefix = "rocebox.";
constexpr Nanos kKillPatience = 5 * kSecond;

using Identity = std::pair<dev_t, ino_t>;

// What stat() tells a namespace by; {} when there is none.
Identity identity(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? Identity(status.st_dev, status.st_ino) : Identity();
}

std::set<Identity> identities(const std::vector<std::string>& spaces) {
  std::set<Identity> all;
  for (const std::string& space : spaces)
    if (const Identity one = identity(fmt::format("{}/{}", kFolder, space)); one != Identity()) all.insert(one);
  return all;
}

bool lives_in(const std::string& process, const std::set<Identity>& spaces) {
  const Identity one = identity(fmt::format("/proc/{}/ns/net", process));
  return one != Identity() && spaces.contains(one);
}

// A process that cannot become another one while this lives.
class Held {
 public:
  explicit Held(const std::string& process) : id_(std::stoi(process)), descriptor_(pidfd_open(id_, 0)) {}
  ~Held() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Held(Held&& other) noexcept : id_(other.id_), descriptor_(std::exchange(other.descriptor_, -1)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  bool good() const { return descriptor_ >= 0; }
  int id() const { return id_; }
  void signal(int number) const { pidfd_send_signal(descriptor_, number, nullptr, 0); }

 private:
  int id_, descriptor_;
};

std::vector<Held> processes_in(const std::set<Identity>& spaces) {
  std::vector<Held> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || !lives_in(name, spaces)) continue;
    Held held(name);
    if (held.good() && lives_in(name, spaces)) found.push_back(std::move(held));
  }
  return found;
}

std::vector<std::string> names_with(const std::string& prefix) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kFolder, ignored))
    if (std::string name = entry.path().filename().string(); name.starts_with(prefix)) names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string namespace_name(const std::string& lab, const std::string& node) {
  return fmt::format("{}{}.{}", kPrefix, lab, node);
}

std::vector<std::string> namespaces_of(const std::string& lab) { return names_with(namespace_name(lab, "")); }

std::vector<std::string> labs_with_namespaces() {
  std::set<std::string> labs;
  for (const std::string& name : names_with(kPrefix)) {
    const std::string rest = name.substr(std::string_view(kPrefix).size());
    labs.insert(rest.substr(0, rest.find('.')));
  }
  return {labs.begin(), labs.end()};
}

std::vector<std::string> within(const std::string& space, const std::vector<std::string>& words) {
  std::vector<std::string> all = {"ip", "netns", "exec", space};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

bool is_within(const std::vector<std::string>& spaces) { return lives_in("self", identities(spaces)); }

unsigned end_processes(const std::vector<std::string>& spaces, Nanos patience) {
  const std::set<Identity> all = identities(spaces);
  const Nanos begin = steady_now();
  std::set<int> asked, killed;
  while (true) {
    const std::vector<Held> left = processes_in(all);
    if (left.empty()) return static_cast<unsigned>(killed.size());
    const Nanos waited = steady_now() - begin;
    if (waited > patience + kKillPatience)
      throw std::runtime_error(
          fmt::format("process {} in {} does not end, not even by SIGKILL", left[0].id(), fmt::join(spaces, ", ")));
    for (const Held& each : left) {
      if (waited >= patience) {
        each.signal(SIGKILL);
        killed.insert(each.id());
      } else if (asked.insert(each.id()).second) {
        each.signal(SIGTERM);
        each.signal(SIGCONT);
      }
    }
    poll(nullptr, 0, 20);
  }
}

void delete_namespaces(const std::vector<std::string>& spaces) {
  std::string failed;
  for (const std::string& space : spaces)
    if (const CallResult done = call({"ip", "netns", "del", space}); done.status != 0)
      failed += fmt::format("{}{}: {}", failed.empty() ? "" : "\n", space, done.said);
  if (!failed.empty()) throw std::runtime_error("namespaces stay behind: " + failed);
}

}  // namespace rocebox::lab
