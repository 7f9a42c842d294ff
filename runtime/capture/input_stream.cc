// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/input_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

constexpr std::size_t kInputBufferBytes = std::size_t{256} << 10;  // one system call for many packets

}  // namespace

StopRequest::StopRequest() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_ < 0) throw std::runtime_error(std::string("no event descriptor: ") + std::strerror(errno));
}
StopRequest::~StopRequest() { close(event_); }

void StopRequest::request() noexcept {
  const int error = errno;
  requested_.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
  errno = error;
}

bool InputStream::waits(const std::string& path) {
  struct stat status {};
  return path == "-" || (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

InputStream::InputStream(const std::string& path, WaitHooks hooks)
    : hooks_(std::move(hooks)), unpacker_([this](char* buffer, std::size_t size) { return read(buffer, size); }) {
  struct stat status {};
  if (path == "-") {
    descriptor_ = STDIN_FILENO;
  } else {
    owned_ = true;
    const bool fifo = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | (fifo ? O_NONBLOCK : 0));
  }
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) throw ConfigError(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) {
    close(descriptor_);
    throw ConfigError("is a folder, not a capture");
  }
  regular_ = S_ISREG(status.st_mode);
  if (regular_) file_bytes_ = static_cast<std::uint64_t>(status.st_size);
}

InputStream::~InputStream() {
  if (owned_) close(descriptor_);
}

std::FILE* InputStream::open_file() {
  cookie_io_functions_t functions{};
  functions.read = [](void* cookie, char* buffer, std::size_t size) -> ssize_t {
    return static_cast<InputStream*>(cookie)->unpacker_.read(buffer, size);
  };
  std::FILE* file = fopencookie(this, "r", functions);
  if (!file) throw ConfigError(std::strerror(errno));
  buffer_.resize(kInputBufferBytes);
  std::setvbuf(file, buffer_.data(), _IOFBF, buffer_.size());
  return file;
}

// Until there is something to read; false when the run is to stop.
bool InputStream::wait() {
  pollfd events[2] = {{descriptor_, POLLIN, 0}, {hooks_.stop ? hooks_.stop->descriptor() : -1, POLLIN, 0}};
  for (int timeout_ms = 0;; timeout_ms = -1) {
    const int ready = poll(events, 2, timeout_ms);
    if (hooks_.stop && hooks_.stop->requested()) return false;
    if (ready > 0) return true;
    if (timeout_ms == 0 && hooks_.before_waiting && !hooks_.before_waiting()) return false;
  }
}

long InputStream::read(char* buffer, std::size_t size) {
  while (true) {
    if (regular_ ? hooks_.stop && hooks_.stop->requested() : !wait()) {
      stopped_ = true;
      return 0;
    }
    const ssize_t got = ::read(descriptor_, buffer, size);
    if (got >= 0) {
      position_ += static_cast<std::uint64_t>(got);
      return got;
    }
    if (errno != EINTR && errno != EAGAIN) return -1;
  }
}

}  // namespace rocebox
