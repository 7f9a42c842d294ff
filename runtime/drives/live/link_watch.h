// SPDX-License-Identifier: BSD-3-Clause
// LinkWatch: the thread that sees the ports' links go down and come back.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/drives/live/clock.h"
#include "runtime/drives/live/live_port.h"

namespace rocebox {

/// Looks at every port a few times a second, and at once when the kernel tells that an interface has changed
/// (rtnetlink), which tells of changes between two looks, too. The cores never ask: they see that a port takes no
/// packets, and count.
class LinkWatch {
 public:
  /// `say` is called on the watch's thread with lines for people, without their end. `ends`: the run ends when an
  /// interface is gone, see lost().
  LinkWatch(std::vector<std::unique_ptr<LivePort>>& ports, const Clock& clock, bool ends,
            std::function<void(const std::string&)> say);
  ~LinkWatch() { stop(); }
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  /// A socket on which the kernel tells of interfaces; -1: it does not.
  static int open_news();
  /// Sees what the links are; whatever changes from now on is a change. `news`: what open_news() gives; closed by
  /// stop().
  void begin(int news = open_news());
  /// Looks, and says what it sees, on a thread from now on. Behind begin(). Ports are not to be started or ended
  /// meanwhile.
  void start();
  void stop();

  /// How often the link of a port went down, or its interface away. On any thread.
  std::uint64_t down_events(std::size_t port) const;
  /// The first port whose interface went away; null: none. On any thread.
  const LivePort* lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  void work();
  void look();
  void take_news();
  void see(std::size_t port, LinkState state);

  std::vector<std::unique_ptr<LivePort>>& ports_;
  const Clock& clock_;
  std::function<void(const std::string&)> say_;
  std::deque<LinkLog> logs_;       // by port
  std::vector<LinkState> looked_;  // by port: what it saw, before it is believed
  std::atomic<const LivePort*> lost_{nullptr};
  int wake_ = -1, news_ = -1;  // an eventfd; a netlink socket, where there is one
  std::thread thread_;
};

}  // namespace rocebox
