// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/interface_claims.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace rocebox {
namespace {

// No interface has such an index.
constexpr int kIndex = 2'000'000'011;

// The claim of another process, as it would have made it; returns its socket.
int claim_of_another(const std::string& name) {
  const int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  EXPECT_EQ(bind(other, reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes)),
            0);
  return other;
}

std::string of(int process, const std::string& run, int index = kIndex) {
  return fmt::format("rocebox/interface/{}/{}/{}", index, process, run);
}

TEST(InterfaceClaims, AreSeenByOtherRunsWithTheirNames) {
  const int named = claim_of_another(of(getpid() + 1, "bump"));
  const int nameless = claim_of_another(of(getpid() + 2, ""));
  const int elsewhere = claim_of_another(of(getpid() + 1, "bump", kIndex + 1));
  std::vector<std::string> others = InterfaceClaims("mine").claim(kIndex);
  std::sort(others.begin(), others.end());
  const std::vector<std::string> expected = {fmt::format("a run (process {})", getpid() + 2),
                                             fmt::format("run `bump` (process {})", getpid() + 1)};
  EXPECT_EQ(others, expected);
  for (const int socket : {named, nameless, elsewhere}) close(socket);
  EXPECT_TRUE(InterfaceClaims("mine").claim(kIndex).empty()) << "a claim ends with its socket";
}

TEST(InterfaceClaims, ThisRunsOwnAreNone) {
  InterfaceClaims mine("mine");
  EXPECT_TRUE(mine.claim(kIndex).empty());
  EXPECT_TRUE(InterfaceClaims("other").claim(kIndex).empty()) << "of the same process";
}

TEST(InterfaceClaims, WhatOnlyLooksLikeOneIsNotShown) {
  std::vector<int> sockets;
  for (const char* rest : {"x/bump", "/bump", "12/\x1b[31mred", "99999999999999999999/bump", "12"})
    sockets.push_back(claim_of_another(fmt::format("rocebox/interface/{}/{}", kIndex, rest)));
  EXPECT_EQ(InterfaceClaims("mine").claim(kIndex), std::vector<std::string>{"a run (process 12)"});
  for (const int socket : sockets) close(socket);
}

}  // namespace
}  // namespace rocebox
