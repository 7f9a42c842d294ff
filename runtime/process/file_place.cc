// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/file_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

namespace rocebox {
namespace {

namespace fs = std::filesystem;
constexpr int kLinksMax = 40;  // as many as the kernel follows

}  // namespace

bool FilePlace::status(struct stat& status) const {
  return (descriptor >= 0 ? fstat(descriptor, &status) : stat(path.c_str(), &status)) == 0;
}

FilePlace follow(const std::string& path, int dash) {
  if (path == "-" || (dash == STDOUT_FILENO && is_dash(path))) return {path, dash};
  const std::string own_descriptors = fmt::format("/proc/{}/fd", getpid());
  fs::path at = path;
  for (int links = 0; links < kLinksMax; links++) {
    std::error_code error;
    const fs::path folder = fs::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
    if (error) return {at.string()};
    at = folder / at.filename();
    const std::string number = at.filename().string();
    if (folder == own_descriptors && !number.empty() && number.size() < 6 &&
        number.find_first_not_of("0123456789") == std::string::npos)
      return {at.string(), std::stoi(number)};
    if (folder.string().starts_with("/proc")) return {at.string()};  // its links are no paths
    const fs::path link = fs::read_symlink(at, error);
    if (error) return {at.string()};
    at = link.is_absolute() ? link : folder / link;
  }
  return {path, -1, true};
}

std::string file_key(const std::string& path, int dash) {
  const FilePlace place = follow(path, dash);
  struct stat status {};
  if (!place.status(status)) return "path " + place.path;
  // A terminal or /dev/null: what `-` means is still one stream.
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))
    return place.descriptor >= 0 ? fmt::format("descriptor {}", place.descriptor) : std::string();
  return fmt::format("inode {} {}", status.st_dev, status.st_ino);
}

std::string shown_file(const std::string& path) { return path == "-" ? "standard input" : path; }
std::string shown_output(const std::string& path) { return is_dash(path) ? "standard output" : path; }

}  // namespace rocebox
