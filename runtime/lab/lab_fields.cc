// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/lab_fields.h"

#include "runtime/config/top_fields.h"

namespace rocebox::lab {
namespace {

constexpr std::string_view kSettings[] = {"default", "on", "off"};
constexpr std::string_view kAccelerators[] = {"tcg", "kvm"};
constexpr std::string_view kBinds[] = {"af_packet", "af_xdp", "tap"};

template <class Row>
std::vector<std::string> names_in(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

template <class Row>
Row& added(std::vector<Row>& rows, const std::string& name) {
  rows.emplace_back().name = name;
  return rows.back();
}

}  // namespace

void Offloads::fields(Fields& f) {
  f.choice("tso", tso, kSettings, "TCP segmentation: super-packets of TCP leave the host uncut");
  f.choice("gso", gso, kSettings, "segmentation of any protocol, as late as possible");
  f.choice("gro", gro, kSettings, "joining of what arrives into super-packets");
  f.choice("rx_checksum", rx_checksum, kSettings, "whether checksums of what arrives are left to the interface");
  f.choice("tx_checksum", tx_checksum, kSettings, "whether checksums of what leaves are left to the interface");
  f.choice("rx_vlan", rx_vlan, kSettings, "whether VLAN tags are taken off by the interface");
  f.choice("tx_vlan", tx_vlan, kSettings, "whether VLAN tags are put in by the interface");
}

void Interface::fields(Fields& f) {
  f.texts("addresses", addresses, "IP addresses with prefix length, such as 10.99.0.1/24 and fd99::1/64");
  f.text("mac", mac, "MAC address, such as 02:00:00:00:00:01; the kernel's choice when left out");
  f.bytes("mtu", mtu, {68, 9216}, "MTU; the other end of the wire gets the same");
  f.texts("neighbours", neighbours, "neighbours that need no discovery, such as `10.99.0.2 02:00:00:00:00:02`");
  f.group("offloads", "what is left to the interface; `default` is as the kernel has it",
          [this](Fields& g) { offloads.fields(g); });
}

void VirtualMachine::fields(Fields& f) {
  f.bytes("memory", memory, {std::uint64_t{256} << 20, std::uint64_t{64} << 30}, "its RAM, whole MiB");
  f.text("image", image,
         "folder with the `vmlinux` and `initramfs.cpio` that it boots; made of Debian packages when left out, once");
  f.choice("accel", accel, kAccelerators, "`tcg` runs everywhere; `kvm` is faster where it works");
}

void Traffic::fields(Fields& f) {
  f.text("name", name, "its name in the report; step_N when left out, N counted from 1");
  f.text("host", host, "the host that it runs in");
  f.text("run", run, "the command, for the shell; it starts in the folder of this file");
  f.boolean("background", background, "go on when it is ready; it is ended when all others are done");
  f.text("ready", ready, "with `background`: text in its output that says that it is ready");
  f.integer("ready_port", ready_port, {0, 65535}, "with `background`: TCP port that it listens on when it is ready");
  f.duration("timeout", timeout, {kMillisecond, 24 * 3600 * kSecond},
             "how long it may take; with `background`: until it is ready");
  f.integer("exit", exit, {kAnyExit, 255}, "the exit status that it must have when it ends by itself; -1: any");
  f.text("output", output, "file for what it prints to standard output");
  f.boolean("json", json, "standard output is JSON; the report has it as traffic.NAME.json");
  f.texts("numbers", numbers,
          "numbers in its output for the report, such as `received = (\\d+) received`: a name and a regular expression "
          "(ECMAScript) whose first group is the number; the last match counts");
}

void LabFields::fields(config::ConfigFields& f) {
  f.text("lab", lab, "name of the lab; labs of different names stand side by side");
  f.named("hosts", "machines of the lab, each a network namespace or, with `vm:`, a virtual machine, by name",
          names_in(hosts),
          [&](config::ConfigFields& g, const std::string& name) { host_fields(g, added(hosts, name)); });
  f.named("appliances", "instances of `rocebox run`, each in a network namespace of its own, by name",
          names_in(appliances),
          [&](config::ConfigFields& g, const std::string& name) { appliance_fields(g, added(appliances, name)); });
  f.texts("wires", wires,
          "what is joined, such as `left <-> bump.a`: HOST (its only interface), HOST.INTERFACE or APPLIANCE.PORT");
  f.list("traffic", traffic, kTrafficMax, "commands that are run in hosts, one after the other");
  f.texts("expect", expect,
          "conditions over the report, such as `traffic.ping.received == 10` or "
          "`appliances.bump.bump.packets_dropped == 0`; they decide the exit status");
}

void LabFields::host_fields(config::ConfigFields& f, Host& host) {
  host.is_machine = f.given("vm");
  f.group("vm", "makes the host a virtual machine with Soft-RoCE (`rxe0`) on its interface, for RDMA programs",
          [&](Fields& g) { host.machine.fields(g); });
  host.only.name = "eth0";
  host.only.fields(f);
  for (const char* field : {"addresses", "mac", "mtu", "neighbours", "offloads"})
    host.has_only = host.has_only || f.given(field);
  host.has_interfaces = f.given("interfaces");
  f.named("interfaces", "for a host of several interfaces: each by name; otherwise it has one, `eth0`",
          names_in(host.interfaces),
          [&](config::ConfigFields& g, const std::string& name) { added(host.interfaces, name).fields(g); });
  f.texts("routes", host.routes, "as behind `ip route add`, such as `default via 10.99.0.254`");
  f.texts("sysctls", host.sysctls, "kernel settings, such as `net.ipv4.ip_forward=1`");
}

void LabFields::appliance_fields(config::ConfigFields& f, Appliance& appliance) {
  f.text("config", appliance.config, "its configuration, a file; what else would stand there may stand here instead");
  f.text("cores", appliance.cores, "one shard on each of these CPUs, such as 1,3-5");
  f.choice("bind", appliance.bind, kBinds, "what its wired ports are bound to; a TAP's other end must be a host");
  if (appliance.name == "*")
    config::TopFields(registry_).fields(f);
  else if (appliance.config.empty())
    f.accept_rest();
}

}  // namespace rocebox::lab
