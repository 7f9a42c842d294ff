// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/memif_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace rocebox {
namespace {

// A server says hello first. It is waited for, because DPDK's server panics when its hello finds nobody: it closes the
// connection, but still has its interrupt thread watch the number.
bool somebody_listens(const sockaddr_un& address) {
  const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(probe, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const bool listens = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  std::array<char, 256> hello;
  if (listens) recv(probe, hello.data(), hello.size(), 0);  // whatever it says, or nothing
  close(probe);
  return listens;
}

bool fits(const std::string& path) { return path.size() < sizeof(sockaddr_un::sun_path); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

}  // namespace

void remove_stale_memif(const config::LivePortOptions::Memif& memif) {
  std::error_code ignored;
  if (memif.role != 0 || !fits(memif.socket) || !std::filesystem::is_socket(memif.socket, ignored)) return;
  if (!somebody_listens(address_of(memif.socket))) unlink(memif.socket.c_str());
}

std::string explain_memif(const config::LivePortOptions::Memif& memif) {
  const std::filesystem::path path(memif.socket);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (!fits(memif.socket))
    return fmt::format("the path of a socket has at most {} characters", sizeof(sockaddr_un::sun_path) - 1);
  if (access(folder.c_str(), W_OK) != 0)
    return fmt::format("its socket cannot be in folder `{}`: {}", folder, std::strerror(errno));
  const bool listens = somebody_listens(address_of(memif.socket));
  if (memif.role == 1)
    return listens ? "its server refuses it" : "nobody listens at its socket; start the server first";
  if (listens) return "another process is the server of that socket; take another `socket:`, or `role: client`";
  if (access(memif.socket.c_str(), F_OK) == 0) return "a file is in the way: remove it";
  return "DPDK cannot open it";
}

}  // namespace rocebox
