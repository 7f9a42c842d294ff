// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

std::string mistakes_of(const std::string& a, const std::string& z) {
  static Registry registry;
  Mistakes mistakes("f.yaml");
  load_text("devices: {bump: {path: a <-> z}}\nports:\n  a: {" + a + "}\n  z: {" + z + "}\n", "f.yaml", registry,
            mistakes, false);
  return mistakes.text();
}

TEST(SharedInterfaces, AreRefusedWithThePlaceOfTheSecond) {
  EXPECT_EQ(
      mistakes_of("af_packet: eth0", "af_packet: eth0"),
      "f.yaml:4:6: port `bump.z`: interface `eth0` is bound to port `bump.a` already (line 3); give each port one of "
      "its own");
  for (const auto& [a, z] : std::initializer_list<std::pair<const char*, const char*>>{
           {"af_packet: eth0", "af_xdp: eth0"},
           {"tap: eth0", "tap: eth0"},
           {"tap: eth0", "af_packet: eth0"},
           {"pci: '0000:3b:00.0'", "pci: '3B:00.0'"},
           {"memif: {socket: /run/m, role: server}", "memif: {socket: /run/m, role: server}"},
           {"devargs: 'net_pcap0,rx_pcap=a'", "devargs: 'net_pcap0,rx_pcap=b'"}})
    EXPECT_NE(mistakes_of(a, z).find("already (line 3)"), std::string::npos) << a << "; " << z;
}

TEST(SharedInterfaces, WhatOnlyLooksAlikeIsTaken) {
  for (const auto& [a, z] : std::initializer_list<std::pair<const char*, const char*>>{
           {"af_packet: eth0", "af_packet: eth1"},
           {"net_null: {}", "net_null: {}"},
           {"ring: r", "ring: r"},
           {"pci: '0000:3b:00.0'", "pci: '0000:3b:00.1'"},
           {"memif: {socket: /run/m, role: server}", "memif: {socket: /run/m, role: client}"},
           {"memif: {socket: /run/m, id: 1}", "memif: {socket: /run/m, id: 2}"},
           {"devargs: 'net_pcap0,rx_pcap=a'", "devargs: 'net_pcap1,rx_pcap=a'"}})
    EXPECT_EQ(mistakes_of(a, z), "") << a << "; " << z;
}

TEST(SharedInterfaces, OfTheCommandLineTooOnceAllIsBound) {
  static Registry registry;
  Mistakes mistakes("f.yaml");
  RunConfig config =
      load_text("devices: {bump: {path: a <-> z}}\nports: {a: {af_packet: eth0}, z: {af_packet: eth1}}\n", "f.yaml",
                registry, mistakes, false);
  bind_port(config, "a={af_packet: eth1}");  // for a moment two ports have it
  bind_port(config, "z={af_packet: eth0}");
  refuse_shared_interfaces(config, mistakes);
  EXPECT_EQ(mistakes.text(), "");
  config.live_ports[1].live.af_packet = "eth1";
  refuse_shared_interfaces(config, mistakes);
  EXPECT_NE(mistakes.text().find("interface `eth1` is bound to port `bump.a` already (--port)"), std::string::npos)
      << mistakes.text();
}

}  // namespace
}  // namespace rocebox::config
