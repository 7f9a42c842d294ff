// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/kernel/kernel.h"
#include "runtime/lab/namespaces.h"

namespace rocebox::lab {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kTries = 100, kTryMicroseconds = 10'000;
constexpr const char* kOwner = "owner";  // the number of the process that holds the lock, for messages

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

ConfigError stands_already(const std::string& lab) {
  return ConfigError(
      fmt::format("lab `{0}` stands already, or something is left of it: take it down with `rocebox lab down {0}`, or "
                  "build another beside it with --name",
                  lab));
}

}  // namespace

std::string lab_folder(const std::string& lab) { return fmt::format("{}/{}", kLabsFolder, lab); }

std::vector<std::string> standing_labs() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kLabsFolder, ignored)) names.insert(entry.path().filename().string());
  for (std::string& name : labs_with_namespaces()) names.insert(std::move(name));
  return {names.begin(), names.end()};
}

Claim::Claim(const std::string& lab, For what) : lab_(lab), folder_(lab_folder(lab)) {
  if (what == For::kNew) make();
  if (what == For::kOld && fs::exists(folder_)) take();
}

Claim::~Claim() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Claim::make() {
  if (!namespaces_of(lab_).empty() && !fs::exists(folder_)) throw stands_already(lab_);
  std::error_code failed;
  fs::create_directories(kLabsFolder, failed);
  if (mkdir(folder_.c_str(), 0755) != 0) {
    const int why = errno;
    if (why != EEXIST) throw ConfigError(fmt::format("{}: cannot be made: {}", folder_, std::strerror(why)));
    take();  // says who has it, when someone has
    close(std::exchange(descriptor_, -1));
    throw stands_already(lab_);
  }
  // Another who wants the name may look into the folder before this one has it, for a moment.
  for (unsigned tries = 0; tries < kTries && !try_take(); tries++) usleep(kTryMicroseconds);
  if (descriptor_ < 0) take();
}

bool Claim::try_take() {
  descriptor_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) throw ConfigError(fmt::format("{}: cannot be opened: {}", folder_, std::strerror(errno)));
  struct stat ours {
  }, there{};
  const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (locked && fstat(descriptor_, &ours) == 0 && stat(folder_.c_str(), &there) == 0 && ours.st_ino == there.st_ino) {
    std::ofstream(fmt::format("{}/{}", folder_, kOwner)) << getpid() << '\n';
    return true;
  }
  close(descriptor_);
  descriptor_ = -1;
  return false;
}

void Claim::take() {
  if (try_take()) return;
  const std::string owner = first_line(fmt::format("{}/{}", folder_, kOwner));
  throw ConfigError(fmt::format("lab `{}` is in the hands of process {}: wait for it, or end it with `kill -INT {}`",
                                lab_, owner.empty() ? "unknown" : owner, owner.empty() ? "PID" : owner));
}

void Claim::remove() {
  std::error_code failed;
  fs::remove_all(folder_, failed);
  if (failed) throw std::runtime_error(fmt::format("{}: stays behind: {}", folder_, failed.message()));
}

}  // namespace rocebox::lab
