// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

constexpr std::size_t kOutputBufferBytes = std::size_t{1} << 20;  // one system call for many packets
constexpr int kPartNamesMax = 100;                                // leftovers of runs that were killed

// Outputs in the making, and leftovers of runs that were killed: the first is what most ever see.
std::string part_name(const std::string& path, int number) {
  return path + (number == 1 ? ".part" : fmt::format(".part{}", number));
}

std::string cannot_be_written(const std::string& name, int error) {
  const char* why = error == ENXIO       ? "nobody reads from this pipe"
                    : error == ECANCELED ? "nobody came to read from this pipe before the run was to end"
                    : error == ETIMEDOUT ? "its reader has stopped reading"
                                         : std::strerror(error);
  return fmt::format("{}: cannot be written: {}", name, why);
}

}  // namespace

OutputFile::OutputFile(const std::string& path, Waiting waiting) : name_(shown_output(path)) {
  refuse_packed_name(path);
  buffer_.resize(kOutputBufferBytes);  // first: without memory for it nothing was begun that would be left behind
  const FilePlace place = follow(path, STDOUT_FILENO);
  path_ = place.path;
  struct stat status {};
  const bool exists = place.status(status);
  if (exists && S_ISDIR(status.st_mode)) throw ConfigError(name_ + ": is a folder; give the name of a file");
  if (place.descriptor >= 0) {
    waiting.patience = Patience::kEndless;  // what is open has its reader
    open_direct(dup(place.descriptor), waiting);
  } else if (place.endless) {
    errno = ELOOP;
  } else if (exists && access(path_.c_str(), W_OK) != 0) {
    // An old file that may not be written must not be replaced behind the user's back.
  } else if (exists && S_ISFIFO(status.st_mode)) {
    open_direct(open_fifo(path_, waiting), waiting);
  } else if ((exists && !S_ISREG(status.st_mode)) || path_.starts_with("/proc/")) {
    open_direct(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY), waiting);
  } else {
    open_part(exists ? status.st_mode & 0777 : 0);
  }
  if (!file_ && errno == ECANCELED) throw std::runtime_error(cannot_be_written(name_, errno));
  if (!file_) throw ConfigError(cannot_be_written(name_, errno));
  std::setvbuf(file_, buffer_.data(), _IOFBF, buffer_.size());
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

// `mode`: permissions of the file that it will replace, 0: none.
void OutputFile::open_part(unsigned mode) {
  int descriptor = -1;
  for (int number = 1; number <= kPartNamesMax && descriptor < 0; number++) {
    part_ = part_name(path_, number);
    descriptor = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) return part_.clear();
  flock(descriptor, LOCK_EX | LOCK_NB);  // while this holds, somebody writes it: see left_behind()
  if (mode != 0) fchmod(descriptor, mode);
  file_ = fdopen(descriptor, "wb");
}

void OutputFile::open_direct(int descriptor, Waiting waiting) {
  if (descriptor < 0) return;
  direct_ = std::make_unique<DirectStream>(descriptor, waiting);
  file_ = direct_->open_file();
}

void OutputFile::keep_error() {
  if (error_ == 0) error_ = errno ? errno : EIO;
}

std::string OutputFile::failed() const { return error_ ? cannot_be_written(name_, error_) : std::string(); }

void OutputFile::close() {
  flush();
  if (std::fclose(std::exchange(file_, nullptr)) != 0) keep_error();
  direct_.reset();  // its reader sees the end
  if (error_) throw std::runtime_error(failed());
}

void OutputFile::publish() {
  if (part_.empty()) return;
  if (std::rename(part_.c_str(), path_.c_str()) != 0) {
    keep_error();
    throw std::runtime_error(failed());
  }
  part_.clear();
}

std::vector<std::string> left_behind(const std::string& path) {
  std::vector<std::string> found;
  const FilePlace place = follow(path, STDOUT_FILENO);
  if (place.descriptor >= 0 || place.endless) return found;
  for (int number = 1; number <= kPartNamesMax; number++) {
    const std::string part = part_name(place.path, number);
    const int descriptor = ::open(part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    struct stat status {};
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
      found.push_back(part);
    ::close(descriptor);
  }
  return found;
}

void refuse_packed_name(const std::string& path) {
  for (const char* suffix : {".gz", ".zst"})
    if (path.ends_with(suffix))
      throw ConfigError(
          fmt::format("{}: outputs are written unpacked; leave `{}` out, or write into a pipe: "
                      "`>({} >{})`",
                      path, suffix, std::string_view(suffix) == ".gz" ? "gzip" : "zstd", path));
}

bool is_standard_output(const std::string& path) {
  return !path.empty() && follow(path, STDOUT_FILENO).descriptor == STDOUT_FILENO;
}

}  // namespace rocebox
