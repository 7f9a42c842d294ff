// SPDX-License-Identifier: BSD-3-Clause
// Hosts of one workload whose NICs do not understand each other, and workloads that would do nothing.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/nic/star_kit.h"

namespace rocebox::test {
namespace {

// Why a workload cannot be made over these hosts; empty: it can.
std::string why_not(std::span<const WorkloadHost> hosts, const std::string& name, const std::string& yaml) {
  try {
    workload_options(name, yaml)->make(hosts, 1);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

// A host, `odd`, whose NIC has these options.
struct Odd {
  Odd(const std::string& last, Pool& pool)
      : options(nic_test_options("nic", (last.find("address") != std::string::npos ? "" : "address: 10.0.1.1\n") +
                                            ("rate: 100Gbps\n" + last))),
        device("odd", {"p0"}, {{0, 0}},
               {{"k", "k", Shape::kOneWay, {{Edge::kOutside, 0}}, [this](Stats& s) { return options->make(s); }}}, pool,
               1) {}
  WorkloadHost host() { return {"odd", device.host_side()}; }

  decltype(nic_test_options("", "")) options;
  PipelineDevice device;
};

// The same over NICs of which the last one has these options beside the others'.
std::string why_not(unsigned hosts, const std::string& all, const std::string& last, const std::string& name,
                    const std::string& yaml) {
  Star star(hosts, all, "delay: 1us", 1, {}, 2048);
  Odd odd(last, star.pool);
  star.all.back() = odd.host();
  return why_not(star.all, name, yaml);
}

TEST(WorkloadHosts, BothEndsHaveTheSameRecovery) {
  const char* const kDirectly = "header_only: true\nrecovery: rnic_sr";
  for (const auto& [name, yaml] : {std::pair("write_bw", "{}"), {"read_lat", "{}"}}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(why_not(2, kDirectly, kDirectly, name, yaml), "");
    const std::string why = why_not(2, kDirectly, "header_only: true", name, yaml);
    for (const char* word : {"`h0`", "`odd`", "recovery: rnic_sr", "recovery: go_back_n"})
      EXPECT_NE(why.find(word), std::string::npos) << why;
  }
  for (const auto& [name, yaml] : {std::pair("permutation", "{}"),
                                   {"incast", "rdma_cm: true"},
                                   {"all_reduce", "{}"},
                                   {"flows", "flows: [{source: 3, destination: 0}]"}}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(why_not(4, kDirectly, kDirectly, name, yaml), "");
    EXPECT_NE(why_not(4, kDirectly, "header_only: true\nrecovery: selective", name, yaml).find("`odd`"),
              std::string::npos);
  }
  EXPECT_EQ(why_not(4, kDirectly, "header_only: true", "flows", "flows: [{source: 0, destination: 1}]"), "")
      << "the odd one has no connection";
  EXPECT_EQ(why_not(2, kDirectly, "header_only: true", "write_bw", "connection: UC"), "") << "UC has no recovery";
}

// A workload's own option goes before those of NICs that differ.
TEST(WorkloadHosts, ARecoveryOfTheWorkloadsOwnIsAlikeAtBothEnds) {
  for (const auto& [name, yaml] : {std::pair("write_bw", "recovery: rnic_sr"),
                                   {"write_bw", "recovery: go_back_n"},
                                   {"read_lat", "recovery: selective"},
                                   {"permutation", "recovery: timeout_only"},
                                   {"all_reduce", "{recovery: go_back_n, rdma_cm: true}"}}) {
    SCOPED_TRACE(std::string(name) + " " + yaml);
    EXPECT_EQ(why_not(2, "header_only: true\nrecovery: rnic_sr", "header_only: true", name, yaml), "");
  }
  EXPECT_NE(why_not(2, "recovery: rnic_sr", "", "write_bw", "{window: 5, retransmission_timeout: 1ms}"), "");
}

TEST(WorkloadHosts, CreditsGoWithGoBackNAlone) {
  for (const auto& [name, yaml] : {std::pair("write_bw", "recovery: rnic_sr"), {"incast", "recovery: selective"}}) {
    const std::string why = why_not(2, "", "credits: true", name, yaml);
    for (const char* word : {"`odd`", "`credits: true`", yaml}) EXPECT_NE(why.find(word), std::string::npos) << why;
  }
  EXPECT_EQ(why_not(2, "", "credits: true", "write_bw", "{recovery: go_back_n, window: 9}"), "");
  EXPECT_EQ(why_not(2, "", "credits: true", "write_bw", "{recovery: rnic_sr, connection: UC}"), "") << "UC has none";
  EXPECT_NE(why_not(1, "credits: true", "credits: true", "write_bw", "recovery: rnic_sr"), "") << "nor with one host";
}

// In groups of their own they do not meet.
TEST(WorkloadHosts, GroupsMayDiffer) {
  Star star(4, "header_only: true", "delay: 1us", 1, {}, 2048);
  Star other(4, "header_only: true\nrecovery: selective", "delay: 1us", 1, {}, 2048);
  for (const unsigned host : {1, 3}) star.all[host] = other.all[host];
  EXPECT_NO_THROW(workload_options("all_gather", "groups: 2")->make(star.all, 1));
  EXPECT_THROW(workload_options("all_gather", "groups: 1")->make(star.all, 1), ConfigError);
}

// Two that each go with the first need not go with each other.
TEST(WorkloadHosts, EachTwoAreCompared) {
  const char* const kUnlike[][4] = {{"address6: fd00::2", "", "address: fd00::1", "of one family"},
                                    {"window: 100", "window: 60", "window: 190", "`window: 60`"}};
  for (const auto& [first, second, third, word] : kUnlike) {
    const std::string directly = "recovery: selective\n";
    Star star(3, directly + first, "delay: 1us", 1, {}, 2048), other(3, directly + second, "delay: 1us", 1, {}, 2048);
    Odd odd(directly + third, star.pool);
    for (const char* name : {"all_to_all", "all_reduce"}) {
      SCOPED_TRACE(name);
      EXPECT_EQ(why_not(std::vector{star.all[0], other.all[1]}, name, "{}"), "");
      EXPECT_EQ(why_not(std::vector{star.all[0], odd.host()}, name, "{}"), "");
      const std::string why = why_not(std::vector{star.all[0], other.all[1], odd.host()}, name, "{}");
      EXPECT_NE(why.find(word), std::string::npos) << why;
    }
  }
}

TEST(WorkloadHosts, BothEndsHaveWholePacketsOrHeaders) {
  for (const auto& [all, last] : {std::pair("header_only: true", ""), {"", "header_only: true"}}) {
    const std::string why = why_not(2, all, last, "write_bw", "connection: UC");
    for (const char* word : {"`h0`", "`odd`", "header_only"}) EXPECT_NE(why.find(word), std::string::npos) << why;
    EXPECT_NE(why_not(4, all, last, "all_to_all", "{}"), "");
  }
}

TEST(WorkloadHosts, BothEndsStoreICRCs) {
  EXPECT_EQ(why_not(2, "icrc: false", "icrc: false", "write_bw", "{}"), "");
  for (const auto& [all, last] : {std::pair("icrc: false", ""), {"", "icrc: false"}})
    for (const char* word : {"`h0`", "`odd`", "icrc: false", "icrc: true"}) {
      const std::string why = why_not(2, all, last, "write_bw", "{}");
      EXPECT_NE(why.find(word), std::string::npos) << why;
    }
}

TEST(WorkloadHosts, BothEndsHaveAddressesOfOneFamily) {
  for (const char* name : {"write_bw", "permutation", "all_reduce"}) {
    EXPECT_EQ(why_not(2, "", "address: 10.0.1.1\naddress6: fd00::1", name, "{}"), "");
    EXPECT_EQ(why_not(2, "address6: fd00::2", "address: fd00::1", name, "{}"), "");
    for (const char* last : {"address: fd00::1", "mac: '02:00:00:00:00:01' # no address"}) {
      const std::string why = why_not(2, "", last, name, "{}");
      for (const char* word : {"`h0`", "`odd`", "10.0.0.1", "of one family", "`address6`"})
        EXPECT_NE(why.find(word), std::string::npos) << why;
    }
  }
}

TEST(WorkloadHosts, AClientHasAnAddressOfItsServersFamily) {
  for (const char* name : {"rping", "ucmatose", "write_bw", "verbs_check"}) {
    const unsigned hosts = 1;
    EXPECT_EQ(why_not(hosts, "", "address: fd00::1", name, "address: fd00::2"), "");
    const std::string why = why_not(hosts, "", "", name, "address: fd00::2");
    for (const char* word : {"`odd`", "`address` is fd00::2", "IPv6", "`address6`"})
      EXPECT_NE(why.find(word), std::string::npos) << why;
    EXPECT_NE(why_not(hosts, "", "address: fd00::1", name, "address: 10.0.0.2").find("IPv4"), std::string::npos);
  }
}

TEST(WorkloadHosts, AGroupIsOfAFamilyThatItsMembersHave) {
  const std::string checks = "{address: 10.0.0.2, cases: [{transport: UD, group: 'ff1e::5'}]}";
  EXPECT_EQ(why_not(1, "", "address: 10.0.0.1\naddress6: fd00::1", "verbs_check", checks), "");
  EXPECT_NE(why_not(1, "", "", "verbs_check", checks).find("`group` is ff1e::5"), std::string::npos);
  const char* const kGather = "multicast_allgather";
  EXPECT_EQ(why_not(2, "address6: fd00::2", "address: 10.0.1.1\naddress6: fd00::1", kGather, "group: 'ff1e::5'"), "");
  EXPECT_NE(why_not(2, "", "", kGather, "group: 'ff1e::5'").find("`group` is ff1e::5"), std::string::npos);
  EXPECT_NE(why_not(2, "", "address: fd00::1", kGather, "{}").find("`odd`"), std::string::npos);
}

TEST(WorkloadHosts, APermutationWithinEachHostIsRefused) {
  for (const char* yaml : {"shift: 4", "shift: 8"}) {
    const std::string why = why_not(4, "", "", "permutation", yaml);
    EXPECT_NE(why.find("`shift: "), std::string::npos) << why;
  }
  EXPECT_EQ(why_not(4, "", "", "permutation", "shift: 5"), "");
  EXPECT_EQ(why_not(4, "", "", "permutation", "{shift: 4, order: random}"), "") << "`shift` says nothing there";
}

}  // namespace
}  // namespace rocebox::test
