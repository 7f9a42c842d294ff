// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/output.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/lab/process.h"

namespace rocebox::lab {
namespace {

TEST(Output, NumbersAreFoundLineByLineAndTheLastCounts) {
  Json row = Json::object();
  add_numbers({"received = (\\d+) received", "rtt = = ([0-9.]+)/", "none = (\\d+) none", "word = (re\\w+)"},
              "1 received\n10 packets transmitted, 9 received, 10% packet loss\nrtt min/avg = 0.125/0.2\n", row);
  EXPECT_EQ(row, Json({{"received", 9}, {"rtt", 0.125}})) << "what is no number is none";
}

TEST(Output, LinesWithoutEndCostNoStack) {
  Json row = Json::object();
  add_numbers({"x = (a|b)*(\\d)"}, std::string(1 << 20, 'a') + "1\nb7\n", row);
  EXPECT_TRUE(row.empty()) << "the first group is `b`, no number";
}

TEST(Output, LastLines) {
  EXPECT_EQ(last_lines("a\nb\nc\n\n", 2), "b\nc");
  EXPECT_EQ(last_lines("a\nb", 5), "a\nb");
  EXPECT_EQ(last_lines("", 5), "");
}

TEST(Output, APortThatIsListenedOn) {
  const int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0)
    GTEST_SKIP() << "there is no IPv6 here";
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  EXPECT_FALSE(is_listening(getpid(), ntohs(address.sin6_port))) << "bound is not listening";
  listen(listener, 1);
  EXPECT_TRUE(is_listening(getpid(), ntohs(address.sin6_port)));
  close(listener);
  EXPECT_FALSE(is_listening(getpid(), ntohs(address.sin6_port)));
}

TEST(Process, StatusesAndSignals) {
  EXPECT_EQ(call({"sh", "-c", "echo out; echo error >&2; exit 3"}).said, "out\nerror");
  EXPECT_EQ(call({"sh", "-c", "exit 3"}).status, 3);
  EXPECT_EQ(call({"sh", "-c", "kill -9 $$"}).status, 137);
  EXPECT_THROW(call({"no-such-program-here"}), std::runtime_error);
  Process process({.words = {"sh", "-c", "sleep 1000 & wait"}});
  EXPECT_FALSE(process.status());
  process.signal(9);
  while (!process.status()) usleep(1000);
  EXPECT_EQ(*process.status(), 137);
}

}  // namespace
}  // namespace rocebox::lab
