// SPDX-License-Identifier: BSD-3-Clause
// Options of a switch with one direction of Themis behind `forward` as a router, every connection with state.
// CONNECTIONS stands for those of the traffic.
#pragma once
#include <string>
#include <string_view>

#include "bench/micro/traffic.h"

namespace rocebox::bench {

/// The sender's ToR: its NIC at port 0, four paths.
inline constexpr const char* kThemisSource =
    "{ports: [h, s1, s2, s3, s4], programs: [forward, themis], forward: {learning: false, router_mac: "
    "'02:00:00:00:00:02', routes: [{prefix: 10.0.1.0/24, via: [{port: s1, mac: '02:00:00:00:00:02'}, {port: s2, mac: "
    "'02:00:00:00:00:02'}, {port: s3, mac: '02:00:00:00:00:02'}, {port: s4, mac: '02:00:00:00:00:02'}]}]}, themis: "
    "{hosts: [h], paths: 4, learning: false, connections: [CONNECTIONS]}}";
/// The receiver's ToR: its NIC at port 0, the fabric at port 1.
inline constexpr const char* kThemisDestination =
    "{ports: [h, s1], programs: [forward, themis], forward: {learning: false, router_mac: '02:00:00:00:00:02', "
    "routes: [{prefix: 10.0.1.0/24, via: [{port: h, mac: '02:00:00:00:00:02'}]}, {prefix: 10.0.0.0/24, via: [{port: "
    "s1, mac: '02:00:00:00:00:02'}]}]}, themis: {hosts: [h], paths: 4, learning: false, connections: [CONNECTIONS]}}";

/// `options` with `word` replaced once, where it stands in them.
inline std::string with(std::string options, std::string_view word, std::string_view by) {
  if (const std::size_t at = options.find(word); at != std::string::npos) options.replace(at, word.size(), by);
  return options;
}
/// Options with the connections of `traffic`, at the ToR of their receivers or of their senders.
inline std::string with_connections(const char* options, const Traffic& traffic, bool receivers) {
  return with(options, "CONNECTIONS", traffic.connections(receivers));
}

}  // namespace rocebox::bench
