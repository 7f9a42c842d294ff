// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kOutputBufferBytes = std::size_t{1} << 20;  // one system call for many packets
constexpr int kLinksMax = 40;                                     // as many as the kernel follows
constexpr int kPartNamesMax = 100;                                // leftovers of runs that were killed

// Where a path leads, symbolic links followed as far as they go; the last step need not exist.
struct Place {
  std::string path;
  int descriptor = -1;   // an open descriptor of this process, as /dev/stdout and /dev/fd/N are
  bool endless = false;  // links that lead in a circle
};

Place follow(const std::string& path) {
  if (is_dash(path)) return {path, STDOUT_FILENO};
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

bool status_of(const Place& place, struct stat& status) {
  return (place.descriptor >= 0 ? fstat(place.descriptor, &status) : stat(place.path.c_str(), &status)) == 0;
}

std::string cannot_be_written(const std::string& name, int error) {
  const char* why = error == ENXIO       ? "nobody reads from this pipe"
                    : error == ETIMEDOUT ? "its reader has stopped reading"
                                         : std::strerror(error);
  return fmt::format("{}: cannot be written: {}", name, why);
}

}  // namespace

// A reader that takes nothing for that long must not hold up those who write to others: the first wait that is in vain
// is the last.
class BoundedPipe {
 public:
  explicit BoundedPipe(int descriptor) : descriptor_(descriptor) {}
  ~BoundedPipe() { ::close(descriptor_); }
  BoundedPipe(const BoundedPipe&) = delete;
  BoundedPipe& operator=(const BoundedPipe&) = delete;

  // How much was written; less than all, with errno, is the end.
  ssize_t write(const char* data, std::size_t size) {
    std::size_t done = 0;
    while (done < size && error_ == 0) {
      const ssize_t count = ::write(descriptor_, data + done, size - done);
      if (count >= 0)
        done += static_cast<std::size_t>(count);
      else if (errno == EAGAIN)
        wait();
      else if (errno != EINTR)
        error_ = errno;
    }
    errno = error_;
    return static_cast<ssize_t>(done);
  }

 private:
  void wait() {
    pollfd room{descriptor_, POLLOUT, 0};
    if (poll(&room, 1, kPatienceMilliseconds) == 0) error_ = ETIMEDOUT;
  }
  static constexpr int kPatienceMilliseconds = 2000;
  int descriptor_, error_ = 0;
};

OutputFile::OutputFile(const std::string& path, Patience patience) : name_(is_dash(path) ? "standard output" : path) {
  const Place place = follow(path);
  path_ = place.path;
  struct stat status {};
  const bool exists = status_of(place, status);
  if (exists && S_ISDIR(status.st_mode)) throw ConfigError(name_ + ": is a folder; give the name of a file");
  if (place.descriptor >= 0) {
    file_ = fdopen(dup(place.descriptor), "wb");
  } else if (place.endless) {
    errno = ELOOP;
  } else if (exists && access(path_.c_str(), W_OK) != 0) {
    // An old file that may not be written must not be replaced behind the user's back.
  } else if (exists && S_ISFIFO(status.st_mode) && patience == Patience::kBounded) {
    open_pipe();
  } else if ((exists && !S_ISREG(status.st_mode)) || path_.starts_with("/proc/")) {
    const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor >= 0) file_ = fdopen(descriptor, "wb");
  } else {
    open_part(exists ? status.st_mode & 0777 : 0);
  }
  if (!file_) throw ConfigError(cannot_be_written(name_, errno));
  buffer_.resize(kOutputBufferBytes);
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
    part_ = path_ + (number == 1 ? ".part" : fmt::format(".part{}", number));
    descriptor = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) return part_.clear();
  if (mode != 0) fchmod(descriptor, mode);
  file_ = fdopen(descriptor, "wb");
}

// A pipe without a reader is refused: errno is ENXIO then.
void OutputFile::open_pipe() {
  const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  pipe_ = std::make_unique<BoundedPipe>(descriptor);
  cookie_io_functions_t functions{};
  functions.write = [](void* pipe, const char* data, std::size_t size) {
    return static_cast<BoundedPipe*>(pipe)->write(data, size);
  };
  file_ = fopencookie(pipe_.get(), "wb", functions);
}

void OutputFile::keep_error() {
  if (error_ == 0) error_ = errno ? errno : EIO;
}

std::string OutputFile::failed() const { return error_ ? cannot_be_written(name_, error_) : std::string(); }

void OutputFile::close() {
  flush();
  if (std::fclose(std::exchange(file_, nullptr)) != 0) keep_error();
  pipe_.reset();  // its reader sees the end
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

bool is_standard_output(const std::string& path) { return !path.empty() && follow(path).descriptor == STDOUT_FILENO; }

std::string file_key(const std::string& path, int descriptor) {
  Place place = follow(path);
  if (is_dash(path)) place.descriptor = descriptor;
  struct stat status {};
  if (!status_of(place, status)) return "path " + place.path;
  // A terminal or /dev/null: what `-` means is still one stream.
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))
    return place.descriptor >= 0 ? fmt::format("descriptor {}", place.descriptor) : std::string();
  return fmt::format("inode {} {}", status.st_dev, status.st_ino);
}

}  // namespace rocebox
