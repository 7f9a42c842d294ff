// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/link_watch.h"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace rocebox {
namespace {

// Between two looks, where the kernel tells nothing: of other kinds of ports, of a TAP in another namespace.
constexpr int kLookMilliseconds = 100;

// Looks in a row while the kernel tells of changes: then one is believed, since other interfaces may never be still.
constexpr int kLooks = 8;

// What a message tells of an interface; false: nothing.
bool state_in(const nlmsghdr& message, int& index, LinkState& state) {
  if (message.nlmsg_type != RTM_NEWLINK && message.nlmsg_type != RTM_DELLINK) return false;
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(ifinfomsg))) return false;
  const auto& link = *static_cast<const ifinfomsg*>(NLMSG_DATA(&message));
  if (link.ifi_family != AF_UNSPEC) return false;  // a bridge tells of its ports with the same types
  index = link.ifi_index;
  // As a look does, by the driver's word for the carrier: IFF_RUNNING follows up to a second later, and what is told of
  // an interface meanwhile would be a link that went down.
  const bool up = (link.ifi_flags & IFF_UP) && (link.ifi_flags & IFF_LOWER_UP);
  state = message.nlmsg_type == RTM_DELLINK ? LinkState::kGone : up ? LinkState::kUp : LinkState::kDown;
  return true;
}

}  // namespace

LinkWatch::LinkWatch(std::vector<std::unique_ptr<LivePort>>& ports, const Clock& clock, bool ends,
                     std::function<void(const std::string&)> say)
    : ports_(ports), clock_(clock), say_(std::move(say)), looked_(ports.size()) {
  for (const auto& port : ports_)
    logs_.emplace_back(ends ? WhenGone::kRunEnds : port->returns() ? WhenGone::kTakenUp : WhenGone::kStays);
}

int LinkWatch::open_news() {
  const int news = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (news < 0 || bind(news, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return news;
  close(news);
  return -1;
}

void LinkWatch::begin(int news) {
  news_ = news;  // opened before the first look, so that nothing is missed
  look();
}

void LinkWatch::start() {
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { work(); });
}

void LinkWatch::stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
    close(wake_);
  }
  if (news_ >= 0) close(std::exchange(news_, -1));
}

std::uint64_t LinkWatch::down_events(std::size_t port) const { return logs_[port].down_events(); }

void LinkWatch::see(std::size_t port, LinkState state) {
  logs_[port].see(state);
  if (state == LinkState::kGone && !lost_.load(std::memory_order_relaxed))
    lost_.store(ports_[port].get(), std::memory_order_release);
}

// What is told while it looks is older than what it saw, or newer: then it takes that first and looks again. (A link
// that was told to be down before it came up would otherwise have gone down.)
void LinkWatch::look() {
  for (int looks = 0; looks < kLooks; looks++) {
    if (news_ >= 0) take_news();
    for (std::size_t i = 0; i < ports_.size(); i++) {
      const int before = ports_[i]->interface_index();
      looked_[i] = ports_[i]->look();
      if (ports_[i]->interface_index() != before) see(i, LinkState::kGone);  // another was made in its place
    }
    pollfd told{news_, POLLIN, 0};
    if (poll(&told, 1, 0) <= 0) break;
  }
  for (std::size_t i = 0; i < ports_.size(); i++) see(i, looked_[i]);
}

void LinkWatch::work() {
  while (true) {
    look();
    for (std::size_t i = 0; i < ports_.size(); i++) {
      const LivePort& port = *ports_[i];
      if (const std::string line = logs_[i].line(clock_.now()); !line.empty())
        say_(fmt::format("port `{}` ({}): {}", port.port().text(), port.text(), line));
    }
    std::array<pollfd, 2> ready = {{{wake_, POLLIN, 0}, {news_, POLLIN, 0}}};
    if (poll(ready.data(), ready.size(), kLookMilliseconds) > 0 && ready[0].revents) return;
  }
}

// A socket that overflowed has lost some; the looks find what is so now.
void LinkWatch::take_news() {
  alignas(nlmsghdr) std::array<char, 32768> bytes;
  for (ssize_t got; (got = recv(news_, bytes.data(), bytes.size(), 0)) > 0;) {
    auto left = static_cast<unsigned>(got);
    for (auto* message = reinterpret_cast<nlmsghdr*>(bytes.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      int index = 0;
      LinkState state{};
      if (!state_in(*message, index, state)) continue;
      for (std::size_t i = 0; i < ports_.size(); i++)
        if (ports_[i]->interface_index() == index) see(i, state);
    }
  }
}

}  // namespace rocebox
