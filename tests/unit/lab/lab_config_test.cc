// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab_config.h"

#include <gtest/gtest.h>

namespace rocebox::lab {
namespace {

LabConfig lab_of(const std::string& text, std::string& found) {
  config::Mistakes mistakes("dir/f.yaml");
  LabConfig lab = load_text(text, "dir/f.yaml", {}, mistakes);
  found = mistakes.text();
  return lab;
}

const std::string kHead = "lab: x\n";
const std::string kHosts = "hosts: {left: {}, right: {}}\n";
const std::string kBump = "appliances: {bump: {devices: {dev: {path: a <-> inspect <-> z}}}}\n";
const std::string kWires = "wires: [left <-> bump.a, bump.dev.z <-> right.eth0]\n";

TEST(LabConfig, ReadsAWholeOne) {
  std::string found;
  const LabConfig lab =
      lab_of(kHead +
                 "hosts:\n  left: {addresses: 10.0.0.1/24, mtu: 9000, offloads: {tso: on}}\n"
                 "  right:\n    interfaces: {p: {mac: '02:00:00:00:00:01'}, q: {}}\n    routes: [a, b]\n" +
                 kBump +
                 "wires: [left <-> bump.a, bump.z <-> right.p, right.q <-> spare]\n"
                 "traffic:\n  - {host: left, run: ls}\n"
                 "  - {name: n, host: right, run: a b, background: true, ready: go, exit: -1, output: o}\n"
                 "expect: a == b\n",
             found);
  EXPECT_EQ(found, "dir/f.yaml:8:46: there is no host and no appliance `spare`; known: left, right, bump");
  ASSERT_EQ(lab.hosts.size(), 2u);
  EXPECT_EQ(lab.hosts[0].interfaces[0].name, "eth0");
  EXPECT_EQ(lab.hosts[0].interfaces[0].offloads.tso, Setting::kOn);
  EXPECT_EQ(lab.hosts[0].interfaces[0].offloads.gso, Setting::kOff) << "as a NIC's wire would carry it";
  EXPECT_EQ(lab.hosts[0].interfaces[0].offloads.gro, Setting::kDefault);
  EXPECT_EQ(lab.hosts[1].interfaces.size(), 2u);
  EXPECT_EQ(lab.hosts[1].routes, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(lab.wires.size(), 3u);
  EXPECT_EQ(lab.wires[0].ends[1].port, "dev.a");
  EXPECT_EQ(lab.wires[0].ends[1].interface, "a");
  EXPECT_EQ(lab.mtu(lab.wires[0]), 9000u) << "both ends have the host's";
  EXPECT_EQ(lab.mtu(lab.wires[1]), 1500u);
  ASSERT_EQ(lab.traffic.size(), 2u);
  EXPECT_EQ(lab.traffic[0].name, "step_1");
  EXPECT_EQ(lab.traffic[0].exit, 0);
  EXPECT_EQ(lab.traffic[1].exit, Traffic::kAnyExit);
  EXPECT_EQ(lab.traffic[1].output, "dir/o") << "beside the file";
  EXPECT_EQ(lab.expectations[0].text, "a == b");
}

TEST(LabConfig, VirtualMachines) {
  std::string found;
  const LabConfig lab = lab_of(
      kHead +
          "hosts:\n  left: {vm: {memory: 1GiB, image: images/a, accel: kvm}, addresses: 10.0.0.1/24, mtu: 4200}\n"
          "  right: {vm: {}, addresses: 'fd00::1/64'}\n  plain: {}\n"
          "appliances: {bump: {devices: {dev: {path: a <-> inspect <-> z}}}}\n"
          "wires: [left <-> bump.a, plain <-> right]\n",
      found);
  ASSERT_EQ(found, "");
  ASSERT_TRUE(lab.hosts[0].machine && lab.hosts[1].machine);
  EXPECT_FALSE(lab.hosts[2].machine);
  EXPECT_EQ(lab.hosts[0].machine->memory, std::uint64_t{1} << 30);
  EXPECT_EQ(lab.hosts[0].machine->image, "dir/images/a") << "beside the file";
  EXPECT_EQ(lab.hosts[0].machine->accel, Accelerator::kKvm);
  EXPECT_EQ(lab.hosts[1].machine->memory, std::uint64_t{512} << 20);
  EXPECT_TRUE(lab.wires[0].machine && lab.wires[1].machine);
  EXPECT_FALSE(lab.wires[0].tap || lab.wires[1].tap) << "no appliance's";
}

TEST(LabConfig, InterfacesOfAppliancesHaveNamesThatLinuxTakes) {
  std::string found;
  const LabConfig lab =
      lab_of(kHead +
                 "hosts: {h: {interfaces: {a: {}, b: {}, c: {}, d: {}}}}\n"
                 "appliances: {x: {devices: {p: {path: lo <-> w}, q: {path: w <-> a_very_long_port_name}}}}\n"
                 "wires: [h.a <-> x.lo, h.b <-> x.p.w, h.c <-> x.q.w, h.d <-> x.a_very_long_port_name]\n",
             found);
  ASSERT_EQ(found, "");
  std::vector<std::string> names;
  for (const WireConfig& wire : lab.wires) names.push_back(wire.ends[1].interface);
  EXPECT_EQ(names, (std::vector<std::string>{"port0", "w", "port1", "port2"}));
}

TEST(LabConfig, MistakesWithTheirPlaces) {
  struct Row {
    std::string text;
    const char* words;
  };
  const auto host = [](const std::string& options) {
    return kHead + "hosts: {h: {" + options + "}, right: {}}\nwires: h <-> right\n";
  };
  const auto step = [](const std::string& options) {
    return kHead + kHosts + "wires: left <-> right\ntraffic:\n  - {" + options + "}\n";
  };
  const std::string joined = kHead + kHosts + kBump;
  const Row rows[] = {
      {"", "expected a mapping with `lab:`, found nothing"},
      {"devices: {}\n", ":1:1: this is no lab"},
      {kHosts, ":1:1: there is no name: give `lab: NAME`"},
      {"lab: a/b\n" + kHosts, ":1:6: `a/b` is no name for a lab"},
      {"lab: " + std::string(65, 'x') + "\n" + kHosts, "at most 64"},
      {kHead, "there is no host"},
      {kHead + "hosts: [a]\n", ":2:8: `hosts` must be a mapping from names"},
      {kHead + "hosts: {a.b: {}}\n", "`a.b` is no name"},
      {kHead + "hosts: {h: {adresses: x}}\n", ":2:13: unknown key `adresses`; did you mean `addresses`?"},
      {host("addresses: 10.0.0.1"), ":2:24: `10.0.0.1` of `addresses`"},
      {host("addresses: [10.0.0.1/24, 10.0.0.1/33]"), ":2:38: `10.0.0.1/33`"},
      {host("addresses: 'fe80::1/129'"), "`fe80::1/129`"},
      {host("addresses: 10.0.0.1/"), "`10.0.0.1/`"},
      {host("mac: '01:00:00:00:00:00'"), "`01:00:00:00:00:00` of `mac`"},
      {host("mac: 2"), "`2` of `mac`"},
      {host("mtu: 10"), "`mtu` must be from 68"},
      {host("neighbours: 10.0.0.1"), "`10.0.0.1` of `neighbours`"},
      {host("sysctls: net.ipv4.x"), "NAME=VALUE"},
      {host("offloads: {tso: onn}"), "did you mean `on`?"},
      {host("interfaces: {eth0: {}}, mtu: 1500"), "belong into them"},
      {kHead + "hosts: {h: {interfaces: {lo: {}}}}\n", "Linux uses that name itself"},
      {kHead + "hosts: {h: {interfaces: {abcdefghijklmnop: {}}}}\n", "at most 15 characters"},
      {kHead + kHosts, "`left.eth0` is joined to nothing"},
      {kHead + kHosts + "appliances: {left: {}}\n", "`left` is already the name of a host"},
      {kHead + kHosts + "appliances: {b: {}}\n", "appliance `b` has no configuration"},
      {kHead + kHosts + "appliances: {b: {devices: {d: {path: a <-> b}}, devicess: 1}}\n",
       ":3:49: unknown key `devicess`; did you mean `devices`?"},
      {kHead + kHosts + "appliances: {b: {config: none.yaml}}\n", "dir/none.yaml: cannot be read"},
      {kHead + kHosts + "appliances: {b: {config: x.yaml, devices: {}}}\n", "unknown key `devices`"},
      {kHead + kHosts + "appliances: {b: {bind: tapp, devices: {d: {path: a <-> b}}}}\n", "did you mean `tap`?"},
      {kHead + kHosts + "appliances: {b: {devices: {d: {path: a <-> inspekt <-> b}}}}\n",
       ":3:38: path `a <-> inspekt <-> b`: unknown kernel"},
      {kHead + kHosts + "appliances: {b: {devices: {d: {path: a <-> b}}, ports: {a: {af_packet: eth7}}}}\n",
       "`af_packet eth7`, which is not in the lab"},
      {host("vm: {}"), ":2:12: host `h` is a virtual machine, which needs `addresses:`"},
      {host("vm: {cores: 2}, addresses: 10.0.0.1/24"), ":2:18: unknown key `cores`"},
      {host("vm: {memory: 300MB}, addresses: 10.0.0.1/24"), "must be whole MiB"},
      {host("vm: {memory: 64MiB}, addresses: 10.0.0.1/24"), "`memory` must be from 256MiB"},
      {host("vm: {}, addresses: 10.0.0.1/24, mtu: 9216"), "`mtu` of a virtual machine must be from 1280 to 9000"},
      {host("vm: {}, addresses: 10.0.0.1/24, offloads: {gro: off}"), "which has no offloads"},
      {host("vm: {}, interfaces: {p: {}}"), ":2:33: host `h` is a virtual machine, which has one interface"},
      {kHead + "hosts: {a: {vm: {}, addresses: 10.0.0.1/24}, b: {vm: {}, addresses: 10.0.0.2/24}}\nwires: [a <-> b]\n",
       ":3:9: `a` and `b` are virtual machines: put an appliance between them"},
      {kHead + "hosts: {a: {vm: {}, addresses: 10.0.0.1/24}, b: {}}\nappliances: {x: {bind: tap, devices: {d: {path: "
               "p <-> q}}}}\nwires: [a <-> x.p, x.q <-> b]\n",
       ":4:9: appliance `x` has `bind: tap`, and a virtual machine brings a TAP itself"},
      {joined, "appliance `bump` is joined to nothing"},
      {joined + "wires: [left - bump.a]\n", ":4:9: `left - bump.a` is no wire"},
      {joined + "wires: [left <-> bump]\n", "name its port: `bump.a`"},
      {joined + "wires: [left <-> bump.b]\n", "appliance `bump`: there is no port `b`"},
      {joined + "wires: [left <-> bupm.a]\n", "did you mean `bump`?"},
      {joined + "wires: [left.eth1 <-> bump.a]\n", "no interface `eth1`; did you mean `eth0`?"},
      {joined + "wires: [left <-> bump.a, right <-> bump.dev.a]\n",
       "`bump.dev.a` is already joined by `left <-> bump.a`"},
      {kHead + kHosts + "wires: [left <-> right, left <-> right]\n", ":3:25: `left.eth0` is already joined"},
      {kHead + kHosts +
           "appliances: {b: {bind: tap, devices: {d: {path: a <-> b}}}, c: {devices: {d: {path: a <-> b}}}}\n"
           "wires: [left <-> b.a, b.b <-> c.a, c.b <-> right]\n",
       ":4:23: appliance `b` has `bind: tap`, so its wires lead to hosts"},
      {step("run: ls"), "needs `host:`"},
      {step("host: left"), "needs `run:`"},
      {step("host: lefd, run: ls"), ":5:12: there is no host `lefd`; did you mean `left`?"},
      {step("host: left, run: ls, ready: x"), "`ready` is for commands with `background: true`"},
      {step("host: left, run: ls, name: a.b"), "`a.b` is no name"},
      {step("host: left, run: ls, name: n}\n  - {host: left, run: ls, name: n"), "a command named `n` already"},
      {step("host: left, run: ls, timeout: 3"), "a time with a unit"},
      {step("host: left, run: ls, numbers: x"), "write NAME = REGULAR EXPRESSION"},
      {step("host: left, run: ls, numbers: 'x = ab'"), "has no group"},
      {step("host: left, run: ls, numbers: 'x = (ab'"), "is no regular expression"},
      {step("host: left, run: ls, numbers: 'exit = (ab)'"), "the report has `exit` anyway"}};
  for (const Row& row : rows) {
    std::string found;
    lab_of(row.text, found);
    EXPECT_NE(found.find(row.words), std::string::npos) << row.text << "\n" << found;
    EXPECT_TRUE(found.starts_with("dir/f.yaml:")) << found;
  }
  std::string found;
  lab_of(kHead + kHosts + kBump + kWires, found);
  EXPECT_EQ(found, "") << "what the rows leave out is good";
}

TEST(LabConfig, AllMistakesAreReported) {
  std::string found;
  lab_of(
      "lab: a b\nhosts: {left: {mtu: 1}}\nappliances: {x: {devices: {d: {path: a}}}}\nwires: no\ntraffic: [{hst: y}]\n",
      found);
  for (const char* words : {":1:6: ", ":2:21: ", ":3:38: ", ":4:8: ", ":5:12: "})
    EXPECT_NE(found.find(words), std::string::npos) << words << "\n" << found;
}

TEST(LabConfig, ARunIsToldFromALab) {
  Registry registry;
  config::Mistakes mistakes("f.yaml");
  config::load_text(kHead + kHosts, "f.yaml", registry, mistakes, false);
  EXPECT_EQ(mistakes.text(), "f.yaml:1:6: this is a lab: give it to `rocebox lab run`, or to `rocebox check`");
}

TEST(LabConfig, NamesOfLabs) {
  EXPECT_EQ(lab_name("some-lab_1"), "some-lab_1");
  EXPECT_THROW(lab_name("no/such.yaml"), ConfigError);
  EXPECT_THROW(require_lab_name("a.b", "--name"), ConfigError);
  EXPECT_THROW(require_lab_name("", "--name"), ConfigError);
}

TEST(LabConfig, SchemaHasEveryKeyAndWhatARunHas) {
  const Registry registry;
  const nlohmann::json json = nlohmann::json::parse(schema(registry).dump());
  for (const char* key : {"lab", "hosts", "appliances", "wires", "traffic", "expect"})
    EXPECT_TRUE(json["properties"].contains(key)) << key;
  const auto& appliance = json["properties"]["appliances"]["additionalProperties"]["properties"];
  for (const char* key : {"config", "cores", "bind", "devices", "links", "pool"})
    EXPECT_TRUE(appliance.contains(key)) << key;
  const auto& host = json["properties"]["hosts"]["additionalProperties"]["properties"];
  for (const char* key : {"addresses", "interfaces", "routes", "vm"}) EXPECT_TRUE(host.contains(key)) << key;
}

}  // namespace
}  // namespace rocebox::lab
