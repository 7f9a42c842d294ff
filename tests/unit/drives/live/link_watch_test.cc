// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/link_watch.h"

#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

namespace rocebox::link_watch_test {
namespace {

constexpr unsigned kAdminUp = IFF_UP, kCarrier = IFF_UP | IFF_LOWER_UP, kRunning = IFF_UP | IFF_LOWER_UP | IFF_RUNNING;
constexpr int kFirst = 5, kSecond = 7;  // indices of an interface and of the one made in its place

// A port whose looks are a test's: each does the next step, and the last one's answer stays.
class ScriptedPort final : public LivePort {
 public:
  using Step = std::function<LinkState(ScriptedPort&)>;

  ScriptedPort(int told_on, std::vector<Step> steps)
      : LivePort({{"bump", "a"}}, ""), told_on_(told_on), steps_(std::move(steps)) {}

  LivePortAbility ability() const override { return {}; }
  std::uint64_t packets_needed(unsigned) const override { return 0; }
  void set_up(unsigned, unsigned, Pool&) override {}
  void start() override {}
  unsigned receive(unsigned, std::span<Packet>) override { return 0; }
  Sent send(unsigned, std::span<Packet>) override { return {}; }
  LivePortCounts counts() const override { return {}; }
  LinkState link() const override { return state_; }
  int interface_index() const override { return index; }

  LinkState look() override {
    const std::size_t step = looks_.load();
    if (step < steps_.size()) state_ = steps_[step](*this);
    looks_++;
    return state_;
  }
  // As the kernel does when an interface changes.
  void tell(int of, unsigned flags, std::uint16_t type = RTM_NEWLINK) const {
    struct {
      nlmsghdr header;
      ifinfomsg link;
    } message{};
    message.header.nlmsg_len = sizeof message;
    message.header.nlmsg_type = type;
    message.link.ifi_index = of;
    message.link.ifi_flags = flags;
    EXPECT_EQ(send_bytes(&message, sizeof message), static_cast<ssize_t>(sizeof message));
  }
  // Whether all was done, and the watch has looked twice more: by then it has taken what it was told.
  bool is_done() const { return looks_ >= steps_.size() + 2; }
  std::size_t looks() const { return looks_; }

  int index = kFirst;
  std::string said;  // by the watch, whose thread does the steps, too, but for the first ones

 private:
  ssize_t send_bytes(const void* bytes, std::size_t size) const { return ::send(told_on_, bytes, size, 0); }

  int told_on_;
  std::vector<Step> steps_;
  LinkState state_ = LinkState::kUp;
  std::atomic<std::size_t> looks_ = 0;
};

struct Seen {
  std::uint64_t down_events = 0;
  std::string said;
};

Seen watched(std::vector<ScriptedPort::Step> steps) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("socketpair");
  auto made = std::make_unique<ScriptedPort>(ends[0], std::move(steps));
  ScriptedPort& port = *made;
  std::vector<std::unique_ptr<LivePort>> ports;
  ports.push_back(std::move(made));
  const Clock clock;
  LinkWatch watch(ports, clock, false, [&](const std::string& line) { port.said += line + '\n'; });
  watch.begin(ends[1]);
  watch.start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!port.is_done() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(port.is_done());
  watch.stop();
  close(ends[0]);
  return {watch.down_events(0), port.said};
}

using Port = ScriptedPort;

TEST(LinkWatch, ALinkThatGoesDownBeforeItsThreadBeginsWentDown) {
  std::vector<std::unique_ptr<LivePort>> ports;
  std::vector<Port::Step> steps = {[](Port&) { return LinkState::kUp; }, [](Port&) { return LinkState::kDown; }};
  auto made = std::make_unique<ScriptedPort>(-1, std::move(steps));
  const ScriptedPort& port = *made;
  ports.push_back(std::move(made));
  const Clock clock;
  LinkWatch watch(ports, clock, false, [](const std::string&) {});
  watch.begin(-1);
  EXPECT_EQ(port.looks(), 1u);
  EXPECT_EQ(watch.down_events(0), 0u);
  watch.start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!port.is_done() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  watch.stop();
  EXPECT_EQ(watch.down_events(0), 1u);
}

TEST(LinkWatch, ALinkThatWentDownBetweenTwoLooksIsTold) {
  const Seen seen = watched({[](Port&) { return LinkState::kUp; },
                             [](Port& port) {
                               port.tell(kFirst, kAdminUp);
                               port.tell(kFirst, kRunning);
                               return LinkState::kUp;
                             }});
  EXPECT_EQ(seen.down_events, 1u);
  EXPECT_NE(seen.said.find("went down 1 time meanwhile"), std::string::npos) << seen.said;
}

TEST(LinkWatch, ALinkWhoseCarrierIsThereIsUpBeforeItIsSaidToRun) {
  const Seen seen = watched({[](Port&) { return LinkState::kUp; },
                             [](Port& port) {
                               port.tell(kFirst, kCarrier);
                               return LinkState::kUp;
                             }});
  EXPECT_EQ(seen.down_events, 0u) << seen.said;
}

TEST(LinkWatch, WhatIsToldWhileItLooksIsNoSecondChange) {
  const Seen seen = watched({[](Port&) { return LinkState::kDown; },
                             [](Port& port) {
                               port.tell(kFirst, kAdminUp);  // of its MTU, say
                               port.tell(kFirst, kRunning);
                               return LinkState::kUp;
                             }});
  EXPECT_EQ(seen.down_events, 0u) << seen.said;
}

TEST(LinkWatch, AnInterfaceThatIsMadeAgainWhileItLooksWasGoneOnce) {
  const Seen seen = watched({[](Port&) { return LinkState::kUp; },
                             [](Port& port) {
                               port.tell(kFirst, 0, RTM_DELLINK);
                               for (const unsigned flags : {0u, kAdminUp, kRunning}) port.tell(kSecond, flags);
                               port.index = kSecond;  // the look takes it up
                               return LinkState::kUp;
                             }});
  EXPECT_EQ(seen.down_events, 1u) << seen.said;
  EXPECT_NE(seen.said.find("its interface is there again, and its link is up"), std::string::npos) << seen.said;
}

TEST(LinkWatch, OtherInterfacesThatAreNeverStillDoNotKeepItFromSpeaking) {
  std::vector<Port::Step> steps(30, [](Port& port) {
    port.tell(kFirst + 1, kRunning);
    return LinkState::kDown;
  });
  steps.push_back([](Port& port) {
    EXPECT_EQ(port.said, "port `bump.a` (unbound): its link is down\n");
    return LinkState::kDown;
  });
  watched(std::move(steps));
}

}  // namespace
}  // namespace rocebox::link_watch_test
