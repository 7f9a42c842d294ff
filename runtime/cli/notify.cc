// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/notify.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/config/printable.h"

namespace rocebox::cli {
namespace {

// A manager that does not read must not keep a run from ending.
constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};

// Sends one datagram to a Unix socket; returns 0 or errno.
int send_to(const std::string& address, const std::string& text) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if ((address[0] != '/' && address[0] != '@') || address.size() < 2) return EAFNOSUPPORT;
  if (address.size() >= sizeof to.sun_path) return ENAMETOOLONG;
  std::memcpy(to.sun_path, address.data(), address.size());
  if (address[0] == '@') to.sun_path[0] = '\0';  // an abstract name ends where the address does, not at a zero
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return errno;
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const ssize_t sent =
      sendto(descriptor, text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), bytes);
  const int error = sent < 0 ? errno : 0;
  close(descriptor);
  return error;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

ServiceManager::ServiceManager() : ServiceManager(environment("NOTIFY_SOCKET")) {}

void ServiceManager::tell(std::string_view state, std::string_view status) {
  if (address_.empty()) return;
  std::string line(status);  // a second line would be another assignment
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::string text = fmt::format("{}{}STATUS={}", state, state.empty() ? "" : "\n", line);
  if (state == "RELOADING=1") {  // Type=notify-reload asks for the time too
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    text += fmt::format("\nMONOTONIC_USEC={}", now.tv_sec * 1'000'000 + now.tv_nsec / 1000);
  }
  const int error = send_to(address_, text);
  if (error == 0) return;
  const std::string why =
      fmt::format("the service manager cannot be told (NOTIFY_SOCKET={}): {}", address_, std::strerror(error));
  fmt::print(stderr, "rocebox: {}\n", config::printable(why));
  address_.clear();
}

}  // namespace rocebox::cli
