// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/telemetry_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

// A run answers within milliseconds; one that is stopped in a debugger does not.
constexpr timeval kPatience{5, 0};

}  // namespace

TelemetryClient::TelemetryClient(const std::string& socket) : socket_(socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) throw TelemetryError(socket + ": too long for the path of a socket");
  socket.copy(address.sun_path, socket.size());
  descriptor_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor_ < 0) throw TelemetryError(fmt::format("no socket can be made: {}", std::strerror(errno)));
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  try {
    if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw TelemetryError(fmt::format("{}: {}", socket, std::strerror(errno)));
    const Json greeting = Json::parse(receive(), nullptr, false);
    if (!greeting.is_object() || !greeting.contains("max_output_len"))
      throw TelemetryError(socket + ": this is no telemetry socket of DPDK");
    answer_bytes_max_ = greeting["max_output_len"].get<std::size_t>();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

TelemetryClient::~TelemetryClient() { close(descriptor_); }

std::string TelemetryClient::receive() {
  std::string text(answer_bytes_max_, '\0');
  const ssize_t bytes = recv(descriptor_, text.data(), text.size(), 0);
  if (bytes == 0) throw TelemetryError(socket_ + ": the run is over, or it has ten clients already");
  if (bytes < 0)
    throw TelemetryError(fmt::format("{}: {}", socket_, errno == EAGAIN ? "no answer" : std::strerror(errno)));
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

Json TelemetryClient::call(const std::string& command, const std::string& parameters) {
  const std::string text = parameters.empty() ? command : command + "," + parameters;
  if (send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL) < 0)
    throw TelemetryError(fmt::format("{}: {}", socket_, std::strerror(errno)));
  const Json answer = Json::parse(receive(), nullptr, false);
  if (!answer.is_object() || !answer.contains(command))
    throw TelemetryError(fmt::format("{}: {}: the reply is not what this command gives", socket_, command));
  const Json& value = answer[command];
  if (value.is_object() && value.contains("error") && value["error"].is_string())
    throw TelemetryError(value["error"].get<std::string>());
  return value;
}

std::vector<std::string> TelemetryClient::names(const std::string& command) {
  std::vector<std::string> all;
  while (true) {
    const Json page = call(command, std::to_string(all.size()));
    if (!page.is_object() || !page.contains("names")) throw TelemetryError(command + ": this run has no such command");
    for (const Json& name : page["names"]) all.push_back(name.get<std::string>());
    if (page["names"].empty() || all.size() >= page["count"].get<std::size_t>()) return all;
  }
}

RunningInstance find_instance(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (somebody_listens(name)) return {name, name};
    throw ConfigError(name + ": nobody listens on this socket");
  }
  const std::vector<RunningInstance> all = running_instances();
  std::vector<RunningInstance> meant;
  std::copy_if(all.begin(), all.end(), std::back_inserter(meant),
               [&](const RunningInstance& one) { return name.empty() || one.name == name; });
  if (meant.size() == 1) return meant[0];
  if (all.empty()) throw ConfigError("no live run is going on that this user may look into");
  std::string list;
  for (const RunningInstance& one : meant.empty() ? all : meant)
    list += fmt::format("\n  {}  {}", one.name, one.socket);
  if (meant.empty()) throw ConfigError(fmt::format("there is no run `{}`; these are going on:{}", name, list));
  throw ConfigError(name.empty() ? "several runs are going on; name one:" + list
                                 : "several runs have this name; give the path of the socket:" + list);
}

}  // namespace rocebox
