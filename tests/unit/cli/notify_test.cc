// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/notify.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace rocebox::cli {
namespace {

// The manager's side: a datagram socket under a path, or under an abstract name behind `@`.
class Manager {
 public:
  explicit Manager(const std::string& address) : address_(address) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, address.data(), address.size());
    if (address[0] == '@') at.sun_path[0] = '\0';
    descriptor_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&at), bytes), 0) << std::strerror(errno);
  }
  ~Manager() {
    close(descriptor_);
    if (address_[0] == '/') unlink(address_.c_str());
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // The next datagram; empty when there is none.
  std::string heard() {
    char bytes[4096];
    const ssize_t count = recv(descriptor_, bytes, sizeof bytes, 0);
    return count < 0 ? "" : std::string(bytes, static_cast<std::size_t>(count));
  }

 private:
  std::string address_;
  int descriptor_;
};

std::string path_address() { return "/tmp/rocebox-notify-test-" + std::to_string(getpid()); }
std::string abstract_address() { return "@rocebox-notify-test-" + std::to_string(getpid()); }

TEST(ServiceManager, HearsEachStateWithItsStatus) {
  for (const std::string& address : {path_address(), abstract_address()}) {
    Manager manager(address);
    ServiceManager told(address);
    told.ready("2 ports");
    EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=2 ports");
    told.status("busy");
    EXPECT_EQ(manager.heard(), "STATUS=busy");
    told.stopping("SIGTERM");
    EXPECT_EQ(manager.heard(), "STOPPING=1\nSTATUS=SIGTERM");
    told.reloading("again");
    const std::string reloading = manager.heard(), prefix = "RELOADING=1\nSTATUS=again\nMONOTONIC_USEC=";
    ASSERT_EQ(reloading.substr(0, prefix.size()), prefix);
    EXPECT_GT(std::stoull(reloading.substr(prefix.size())), 0u);
    EXPECT_EQ(manager.heard(), "") << "one datagram a call";
  }
}

TEST(ServiceManager, StatusStaysOneLine) {
  Manager manager(abstract_address());
  ServiceManager(abstract_address()).ready("a\nWATCHDOG=1\nb");
  EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=a WATCHDOG=1 b");
}

TEST(ServiceManager, IsNamedByTheEnvironment) {
  Manager manager(abstract_address());
  setenv("NOTIFY_SOCKET", abstract_address().c_str(), 1);
  ServiceManager told;
  unsetenv("NOTIFY_SOCKET");
  told.ready("here");
  EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=here");
  testing::internal::CaptureStderr();
  ServiceManager().ready("nobody");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(manager.heard(), "");
}

TEST(ServiceManager, ThatCannotBeToldIsComplainedOfOnce) {
  for (const std::string& address :
       {std::string("/nowhere/notify"), std::string("vsock:2:1234"), std::string("@"), "/" + std::string(200, 'x')}) {
    testing::internal::CaptureStderr();
    ServiceManager told(address);
    told.ready("a");
    told.stopping("b");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("NOTIFY_SOCKET=" + address), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  }
  testing::internal::CaptureStderr();
  ServiceManager("/\x1b[31m").ready("a");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("NOTIFY_SOCKET=/\\x1b[31m"), std::string::npos);
}

}  // namespace
}  // namespace rocebox::cli
