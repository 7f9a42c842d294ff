// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/interface.h"

#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rocebox {

namespace {

// What the driver says of the carrier, now: IFF_RUNNING follows it when the kernel gets to it, up to a second later.
bool has_carrier(int socket, ifreq& request) {
  const bool running = request.ifr_flags & IFF_RUNNING;
  ethtool_value link{ETHTOOL_GLINK, 0};
  request.ifr_data = reinterpret_cast<char*>(&link);
  return ioctl(socket, SIOCETHTOOL, &request) == 0 ? link.data != 0 : running;
}

}  // namespace

LinkState interface_state(int socket, int index) {
  ifreq request{};
  request.ifr_ifindex = index;
  if (ioctl(socket, SIOCGIFNAME, &request) != 0 || ioctl(socket, SIOCGIFFLAGS, &request) != 0) return LinkState::kGone;
  return (request.ifr_flags & IFF_UP) && has_carrier(socket, request) ? LinkState::kUp : LinkState::kDown;
}

LinkState interface_state(int index) {
  const int asks = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const LinkState state = interface_state(asks, index);
  close(asks);
  return state;
}

// A queue can be written while the interface is set up; that holds for one that was moved to another namespace, too,
// where no name or index of ours finds it.
LinkState tap_state(int descriptor) {
  pollfd ready{descriptor, POLLOUT, 0};
  if (poll(&ready, 1, 0) < 0 || ready.revents & (POLLERR | POLLNVAL)) return LinkState::kGone;
  return ready.revents & POLLOUT ? LinkState::kUp : LinkState::kDown;
}

int find_tap(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error, ignored;
  for (fs::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end; entry.increment(error)) {
    if (fs::read_symlink(entry->path(), ignored) != "/dev/net/tun") continue;
    const int descriptor = std::atoi(entry->path().filename().c_str());
    ifreq request{};
    if (ioctl(descriptor, TUNGETIFF, &request) == 0 && name == request.ifr_name) return descriptor;
  }
  return -1;
}

}  // namespace rocebox
