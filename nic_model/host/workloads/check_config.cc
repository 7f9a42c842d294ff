// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/check_config.h"

#include <algorithm>

#include "runtime/roce/multicast.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model::check {
namespace {

constexpr std::string_view kRequesters[] = {"both", "client", "server"};
constexpr std::size_t kCasesMax = 256;

}  // namespace

void Config::show(Fields& f, CaseConfig& one) const {
  f.choice("transport", one.transport, kTransports, "service of the queue pairs");
  f.choice("verb", one.verb, kVerbs, "what is sent");
  f.choice("requester", one.requester, kRequesters, "the side that sends; both: the client, then the server");
  f.bytes("size", one.size, {0, kBytesMax}, "bytes of a message; 0: as the workload's");
  f.integer("messages", one.messages, {0, kMessagesMax}, "messages; 0: as the workload's");
  f.address("group", one.group, Presence::kOptional, "of UD: multicast group that the messages are sent to");
  Case which;
  which.transport = one.transport;
  which.verb = one.verb;
  if (!which.exists()) f.refuse("verb", "is none that the transport has");
  if (one.size > 0 && one.size < kBytesMin) f.refuse("size", "must be 0, or 4 bytes at least");
  const std::uint64_t bytes = one.size ? one.size : size;
  if (bytes * static_cast<std::uint64_t>(one.messages ? one.messages : messages) > kCaseBytesMax)
    f.refuse("size", "times `messages` is more than 64 MiB");
  if (one.transport == Transport::kUd && one.size > static_cast<std::uint64_t>(mtu))
    f.refuse("size", "is more than the path MTU, and a datagram is one packet");
  if (one.group && one.transport != Transport::kUd) f.refuse("group", "needs `transport: UD`");
  if (one.group && !roce::is_multicast(*one.group)) f.refuse("group", "is no multicast address");
}

void Config::fields(Fields& f) {
  f.address("address", address, Presence::kOptional, "server to connect to, as a client; left out: be one");
  f.integer("port", port, {1, 65535}, "port of RDMA CM");
  f.bytes("size", size, {kBytesMin, kBytesMax}, "bytes of a message; of datagrams at most the path MTU");
  f.integer("messages", messages, {1, kMessagesMax}, "messages of a case");
  f.integer("mtu", mtu, {256, 4096}, "path MTU: 256, 512, 1024, 2048 or 4096 bytes");
  if (!roce::is_path_mtu(static_cast<std::uint32_t>(mtu))) f.refuse("mtu", "must be 256, 512, 1024, 2048 or 4096");
  f.duration("settle", settle, {kMillisecond, 60 * kSecond},
             "time after its sender has sent all for which what has not come is waited for");
  f.boolean("persistent", persistent, "the server stays when its first client has gone");
  recovery.fields(f);
  f.list("cases", cases, kCasesMax, "what is checked; left out: each verb of each transport, sent by either side",
         [this](Fields& g, CaseConfig& one) { show(g, one); });
  if (size * static_cast<std::uint64_t>(messages) > kCaseBytesMax)
    f.refuse("size", "times `messages` is more than 64 MiB");
  if (address && persistent) f.refuse("persistent", "is a server's, which has no `address`");
  if (!address && !cases.empty()) f.refuse("cases", "are a client's, which has an `address`");
}

std::vector<Case> Config::all_cases() const {
  std::vector<CaseConfig> written = cases;
  if (written.empty())
    for (unsigned transport = 0; transport < std::size(kTransports); transport++)
      for (unsigned verb = 0; verb < std::size(kVerbs); verb++)
        written.push_back({static_cast<Transport>(transport), static_cast<Verb>(verb), 0, 0, 0, {}});
  std::vector<Case> all;
  for (const CaseConfig& one : written) {
    Case which;
    which.transport = one.transport;
    which.verb = one.verb;
    if (!which.exists()) continue;
    const bool datagrams = one.transport == Transport::kUd;
    which.mtu = static_cast<std::uint32_t>(mtu);
    which.size = static_cast<std::uint32_t>(one.size ? one.size : size);
    if (datagrams) which.size = std::min(which.size, which.mtu);
    if (which.is_atomic()) which.size = 8;
    which.messages = static_cast<std::uint32_t>(one.messages ? one.messages : messages);
    if (one.group) which.group = *one.group;
    for (const bool by_server : {false, true}) {
      which.server_requests = by_server;
      if (one.requester == 0 || (one.requester == 2) == by_server) all.push_back(which);
    }
  }
  return all;
}

}  // namespace rocebox::nic_model::check
