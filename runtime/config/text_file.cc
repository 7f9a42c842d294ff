// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/process/file_place.h"

namespace rocebox::config {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;  // at first; as much again when that is full
constexpr const char* kNeedsFile = "is a pipe or a device, and a regular file is needed here";

}  // namespace

std::string read_text_file(const std::string& path, Pipes pipes, std::size_t bytes_max) {
  const auto cannot = [&path](const std::string& why) {
    return ConfigError(fmt::format("{}: cannot be read: {}", shown_file(path), why));
  };
  // To open a named pipe by /dev/fd/N again would wait for another writer, although all that was written may be there.
  const int own = pipes == Pipes::kTaken ? follow(path, STDIN_FILENO).descriptor : -1;
  if (path == "-" && own < 0) throw cannot(kNeedsFile);
  // A pipe may have no writer yet: where pipes are refused, opening one must not wait for that.
  const int descriptor =
      own >= 0 ? dup(own) : open(path.c_str(), O_RDONLY | O_CLOEXEC | (pipes == Pipes::kRefused ? O_NONBLOCK : 0));
  if (descriptor < 0) throw cannot(std::strerror(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&descriptor, [](const int* open) { close(*open); });
  struct stat status {};
  if (pipes == Pipes::kRefused && fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode) &&
      !S_ISDIR(status.st_mode))
    throw cannot(kNeedsFile);
  std::string text;
  std::size_t size = 0;
  while (size <= bytes_max) {
    text.resize(std::min(bytes_max + 1, size + std::max(size, kReadBytes)));
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot(std::strerror(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  if (text.size() > bytes_max)
    throw ConfigError(fmt::format("{}: larger than {} bytes: {}", shown_file(path), bytes_max,
                                  bytes_max == kConfigBytesMax ? "not a configuration" : "more than is taken"));
  return text;
}

std::string beside(const std::string& file, const std::string& path) {
  if (path.empty() || path == "-" || path == "-.pcapng" || path.starts_with('/')) return path;
  for (const char* descriptors : {"/dev/fd/", "/dev/stdin", "/proc/"})
    if (file.starts_with(descriptors)) return std::filesystem::path(path).lexically_normal().string();
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

std::vector<std::string> data_folders(const std::string& built, const std::string& installed) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return {(own / built).string(), (own / "../share/rocebox" / installed).lexically_normal().string()};
}

}  // namespace rocebox::config
