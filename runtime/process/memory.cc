// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

namespace rocebox {
namespace {

// The number behind `name` in a file of "name value" lines; `otherwise` when there is none.
std::uint64_t value_of(const std::string& file, const std::string& name, std::uint64_t otherwise) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return otherwise;
}

// The number that a file holds; `otherwise` when it is `max` or not there.
std::uint64_t number_in(const std::string& file, std::uint64_t otherwise) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  return stream >> value ? value : otherwise;
}

struct GroupFiles {
  const char *limit, *usage, *cache;  // cache: the key of memory.stat
};
constexpr GroupFiles kVersion1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_cache"};
constexpr GroupFiles kVersion2 = {"/memory.max", "/memory.current", "file"};

// What the limits of a group and of those above it leave. In a container the group's path may be one of the host's,
// and the limits stand at the mount point itself, which is looked at last.
std::uint64_t group_bytes(const std::string& mount, std::string path, const GroupFiles& files) {
  std::uint64_t least = UINT64_MAX;
  while (true) {
    if (path == "/") path.clear();
    const std::string folder = mount + path;
    if (const std::uint64_t limit = number_in(folder + files.limit, UINT64_MAX); limit != UINT64_MAX) {
      const std::uint64_t usage = number_in(folder + files.usage, 0);
      const std::uint64_t held = usage - std::min(usage, value_of(folder + "/memory.stat", files.cache, 0));
      least = std::min(least, limit - std::min(limit, held));
    }
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

std::uint64_t address_space_bytes(const std::string& root) {
  std::ifstream limits(root + "/proc/self/limits");
  constexpr std::string_view kName = "Max address space";
  for (std::string line; std::getline(limits, line);) {
    std::uint64_t limit = 0;  // "unlimited" is no number
    if (!line.starts_with(kName) || !(std::istringstream(line.substr(kName.size())) >> limit)) continue;
    const std::uint64_t used = value_of(root + "/proc/self/status", "VmSize:", 0) << 10;
    return limit - std::min(limit, used);
  }
  return UINT64_MAX;
}

std::uint64_t available_memory_bytes(const std::string& root) {
  std::uint64_t least = UINT64_MAX;
  const std::uint64_t kibibytes = value_of(root + "/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10);
  if (kibibytes != UINT64_MAX >> 10) least = std::min(least, kibibytes << 10);
  std::ifstream groups(root + "/proc/self/cgroup");  // "ID:CONTROLLERS:PATH"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, group_bytes(root + "/sys/fs/cgroup", path, kVersion2));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, group_bytes(root + "/sys/fs/cgroup/memory", path, kVersion1));
  }
  return least;
}

}  // namespace rocebox
