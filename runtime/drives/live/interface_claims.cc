// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/interface_claims.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <fstream>

#include "runtime/limits.h"

namespace rocebox {
namespace {

std::string prefix_of(int index) { return fmt::format("rocebox/interface/{}/", index); }

// Any process may take such a name: what is in it is shown only when it is one of ours.
bool is_ours(const std::string& process, const std::string& run) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; };
  return !process.empty() && process.size() < 11 &&
         std::all_of(process.begin(), process.end(), [](unsigned char c) { return std::isdigit(c); }) &&
         run.size() <= kInstanceNameMax && std::all_of(run.begin(), run.end(), fits);
}

std::vector<std::string> claimed_by_others(int index) {
  std::vector<std::string> others;
  std::ifstream sockets("/proc/net/unix");
  const std::string mark = "@" + prefix_of(index);
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    const std::string rest = line.substr(at + mark.size());
    const std::string process = rest.substr(0, rest.find('/')),
                      run = rest.substr(std::min(process.size() + 1, rest.size()));
    if (!is_ours(process, run) || std::atol(process.c_str()) == getpid()) continue;
    others.push_back(run.empty() ? fmt::format("a run (process {})", process)
                                 : fmt::format("run `{}` (process {})", run, process));
  }
  return others;
}

}  // namespace

InterfaceClaims::~InterfaceClaims() {
  for (const int socket : sockets_) close(socket);
}

// The claim first: of two that begin at once, one sees the other.
std::vector<std::string> InterfaceClaims::claim(int index) {
  const int claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (claim < 0) return {};
  sockets_.push_back(claim);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("{}{}/{}", prefix_of(index), getpid(), run_);
  const std::size_t bytes = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  bind(claim, reinterpret_cast<const sockaddr*>(&address),
       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes));
  return claimed_by_others(index);
}

}  // namespace rocebox
