// SPDX-License-Identifier: BSD-3-Clause
// How long a frame takes from one interface to another: sends one at a time and waits for it by polling.
// usage: veth_latency FROM TO COUNT BYTES
// Prints "p50 p90 p99 p99.9 max" in nanoseconds. Exit status: 0 done, 1 a frame did not come, 2 it could not begin.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::uint16_t kProtocol = 0x88B5;  // for local experiments
constexpr std::int64_t kPatience = 1'000'000'000;

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

int packet_socket(const char* interface) {
  const int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(kProtocol));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(kProtocol);
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  if (descriptor < 0 || address.sll_ifindex == 0 ||
      bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror(interface);
    std::exit(2);
  }
  const int on = 1;
  setsockopt(descriptor, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
  return descriptor;
}

// Nanoseconds until frame `number` has arrived; negative when it does not.
std::int64_t one(int from, int to, std::vector<std::uint8_t>& frame, std::uint64_t number) {
  std::memcpy(frame.data() + sizeof(ether_header), &number, sizeof number);
  std::array<std::uint8_t, 2048> room{};
  const std::int64_t sent = now();
  if (send(from, frame.data(), frame.size(), 0) < 0) return -1;
  for (std::int64_t time = sent; time - sent < kPatience; time = now()) {
    const ssize_t size = recv(to, room.data(), room.size(), MSG_DONTWAIT);
    if (size == static_cast<ssize_t>(frame.size()) &&
        std::memcmp(room.data() + sizeof(ether_header), &number, sizeof number) == 0)
      return now() - sent;
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("usage: veth_latency FROM TO COUNT BYTES\n", stderr), 2;
  const int from = packet_socket(argv[1]), to = packet_socket(argv[2]);
  const auto count = std::strtoull(argv[3], nullptr, 10), bytes = std::strtoull(argv[4], nullptr, 10);
  if (count == 0 || bytes < 60 || bytes > 1514) return std::fputs("COUNT from 1, BYTES from 60 to 1514\n", stderr), 2;
  std::vector<std::uint8_t> frame(bytes, 0x5A);
  std::memset(frame.data(), 0xFF, ETH_ALEN);  // a bridge floods it, whatever it has learned
  std::memcpy(frame.data() + ETH_ALEN, "\x02\0\0\0\0\x01", ETH_ALEN);
  frame[12] = kProtocol >> 8;
  frame[13] = kProtocol & 0xFF;
  std::vector<std::int64_t> times;
  times.reserve(count);
  for (std::uint64_t number = 0; number < count + 100; number++) {
    const std::int64_t time = one(from, to, frame, number);
    if (time < 0) return std::fprintf(stderr, "frame %llu did not come\n", static_cast<unsigned long long>(number)), 1;
    if (number >= 100) times.push_back(time);  // the first warm up
  }
  std::sort(times.begin(), times.end());
  for (const double share : {0.5, 0.9, 0.99, 0.999})
    std::printf("%lld ",
                static_cast<long long>(times[static_cast<std::size_t>(share * static_cast<double>(count - 1))]));
  std::printf("%lld\n", static_cast<long long>(times.back()));
}
