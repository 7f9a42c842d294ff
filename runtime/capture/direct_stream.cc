// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/direct_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace rocebox {
namespace {

// How often it is tried whether somebody reads from a named pipe, which no poll() tells of.
constexpr int kTryMilliseconds = 20;

bool readable(int descriptor, int milliseconds) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, milliseconds) > 0;
}

}  // namespace

DirectStream::DirectStream(int descriptor, Waiting waiting) : descriptor_(descriptor), waiting_(waiting) {
  struct stat status {};
  const bool known = fstat(descriptor, &status) == 0;
  // A pipe that poll() calls writable has room for so much, and a write of no more does not wait. Devices such as
  // /dev/null take all at once.
  const bool may_wait = !known || S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || isatty(descriptor);
  piece_bytes_ = may_wait ? PIPE_BUF : SSIZE_MAX;
}

DirectStream::~DirectStream() { ::close(descriptor_); }

std::FILE* DirectStream::open_file() {
  cookie_io_functions_t functions{};
  functions.write = [](void* stream, const char* data, std::size_t size) -> ssize_t {
    return static_cast<DirectStream*>(stream)->write(data, size);
  };
  return fopencookie(this, "wb", functions);
}

// Until there is room; false, with errno, when that is not worth waiting for any longer.
bool DirectStream::wait() {
  pollfd events[2] = {{descriptor_, POLLOUT, 0}, {waiting_.stop, POLLIN, 0}};
  bool bounded = waiting_.patience == Patience::kBounded;
  while (true) {
    const int ready = poll(events, bounded ? 1 : 2, bounded ? waiting_.milliseconds : -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return false;
    if (events[0].revents) return true;
    if (bounded) {
      errno = ETIMEDOUT;
      return false;
    }
    bounded = true;  // the run is to end
  }
}

long DirectStream::write(const char* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size && error_ == 0) {
    if (!wait()) {
      error_ = errno;
      break;
    }
    const ssize_t count = ::write(descriptor_, data + done, std::min(size - done, piece_bytes_));
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR && errno != EAGAIN)
      error_ = errno;
  }
  errno = error_;
  return static_cast<long>(done);
}

int open_fifo(const std::string& path, Waiting waiting) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 || errno != ENXIO || waiting.patience == Patience::kBounded) return descriptor;
    if (readable(waiting.stop, kTryMilliseconds)) {
      errno = ECANCELED;
      return -1;
    }
  }
}

}  // namespace rocebox
