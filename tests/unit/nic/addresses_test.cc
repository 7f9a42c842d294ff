// SPDX-License-Identifier: BSD-3-Clause
// Addresses of a NIC: which it can have, and that it sends nothing from one that it has not.
#include <gtest/gtest.h>

#include <cerrno>

#include "nic_model/host/connect.h"
#include "runtime/config/config.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::addresses {
namespace {

using nic_model::Host;

std::string mistakes_of(const std::string& options) {
  Registry registry;
  config::Mistakes mistakes("f.yaml");
  config::load_text("devices: {a: {nic: {" + options + "}}}\n", "f.yaml", registry, mistakes, false, {});
  return mistakes.text();
}

TEST(Addresses, WhatNoNicCanHaveIsRefusedWithItsMend) {
  const struct Row {
    const char *options, *says;
  } rows[] = {
      {"address: 10.0.0.1, address6: 10.0.0.2", "`address6` is an IPv4 address: write one of IPv6"},
      {"address: fd00::1, address6: fd00::2", "`address6` goes beside an IPv4 `address`, and that is of IPv6"},
      {"address6: fd00::2", "`address6` goes beside an IPv4 `address`: write it as `address`"},
      {"address: 224.0.0.5", "`address` is a group's address"},
      {"address: ff1e::5", "`address` is a group's address"},
      {"address: 0.0.0.0", "`address` is nobody's address"},
      {"address: '::'", "`address` is nobody's address"},
      {"address: 255.255.255.255", "`address` is everybody's address"},
      {"address: 127.0.0.1", "`address` is a loopback address"},
      {"address: '::1'", "`address` is a loopback address"},
      {"address: 10.0.0.1, address6: 'ff02::1'", "`address6` is a group's address"},
      {"mac: '01:00:5e:00:00:01'", "`mac` is a group's"},
      {"mac: '00:00:00:00:00:00'", "`mac` is nobody's"},
      {"address: 10.0.0.1, gateway: 10.0.0.1", "`gateway` is the NIC's own address"},
      {"address: 10.0.0.1, gateway: 'fd00::9'", "`gateway` is of IPv6, and the NIC has no address of that"},
      {"address: 'fd00::1', gateway: 10.0.0.9", "`gateway` is of IPv4, and the NIC has no address of that"},
      {"address: 10.0.0.1, gateway: 224.0.0.1", "`gateway` is a group's address"},
      {"address: 10.0.0.1, neighbors: [{address: 10.0.0.1, mac: '02:00:00:00:00:02'}]",
       "`neighbors` has the NIC's own address"},
      {"address: 10.0.0.1, neighbors: [{address: 10.0.0.2, mac: '02:00:00:00:00:02'}, {address: 10.0.0.2, mac: "
       "'02:00:00:00:00:03'}]",
       "`neighbors` has 10.0.0.2 twice"},
      {"address: 10.0.0.1, neighbors: [{address: 10.0.0.2, mac: '33:33:00:00:00:02'}]", "`mac` is a group's"},
      {"address: 10.0.0.1, neighbors: [{address: 239.0.0.2, mac: '02:00:00:00:00:02'}]", "`address` is a group's"},
      {"rate: 10Gbps, dcqcn: {enabled: true, rpg_min_rate: 11Gbps}",
       "`dcqcn` has an `rpg_min_rate`, which is more than the port's `rate`: lower it"},
      {"rate: 10Gbps, congestion_control: dcqcn, dcqcn: {rpg_min_rate: 11Gbps}", "lower it"},
  };
  for (const Row& row : rows) {
    const std::string text = mistakes_of(row.options);
    EXPECT_NE(text.find(row.says), std::string::npos) << row.options << ": " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "one mistake: " << text;
  }
}

TEST(Addresses, WhatANicCanHaveIsTaken) {
  for (const char* options :
       {"rate: 10Gbps", "address: 10.0.0.1", "address: fd00::1", "address: 'fe80::1'",
        "address: 10.0.0.1, address6: fd00::1, gateway: 'fd00::9'", "address: 10.0.0.1, gateway: 10.0.0.9",
        // A next hop whose MAC address is known need not be asked for.
        "address: fd00::1, gateway: 169.254.0.1, neighbors: [{address: 169.254.0.1, mac: '02:00:00:00:00:02'}]",
        "rate: 10Gbps, dcqcn: {enabled: true, rpg_min_rate: 10Gbps}", "rate: 10Gbps, dcqcn: {rpg_min_rate: 11Gbps}"})
    EXPECT_EQ(mistakes_of(options), "") << options;
}

// A NIC with nothing at its wire.
struct Alone {
  explicit Alone(const std::string& yaml) : options(nic_test_options("nic", yaml)) {}
  void on(std::function<void(Host&)> what) {
    host.to_do.push_back(std::move(what));
    host.host.start_again(host.number);
    fabric.run(kMillisecond);
  }
  std::uint64_t count(std::string_view name) const {
    std::uint64_t value = UINT64_MAX;
    device.books().for_each_counter([&](const CounterView& view) {
      if (view.name == name) value = view.value;
    });
    return value;
  }

  Pool pool{{.small = 512, .large = 64, .giant = 2}};
  std::unique_ptr<KernelOptions> options;
  Fabric fabric{[](FabricPort, std::span<Packet>, Nanos) {}};
  PipelineDevice device{"d",
                        {"wire"},
                        {{0, 0}},
                        {{"k", "nic", Shape::kOneWay, {{Edge::kOutside, 0}}, [this](Stats& stats) {
                                   return options->make(stats); }}},
                        pool,
                        1};
  const unsigned number = fabric.add(device);
  nic_model::Nic& nic = static_cast<nic_model::Nic&>(device.kernel(0));
  TestHost host{nic};
  const bool wakes = (nic.host().set_waker([this] { fabric.wake(number); }), true);
};

// A made-up source would be answered by nobody, or be somebody else's.
TEST(Addresses, NothingIsSentFromAnAddressThatTheNicHasNot) {
  const struct Row {
    const char *nic, *to, *group;
  } rows[] = {{"rate: 10Gbps", "10.0.0.2", "239.1.2.3"},
              {"address: fd77::1", "10.0.0.2", "239.1.2.3"},
              {"address: 10.0.0.1", "fd77::2", "ff1e::5"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.nic);
    const roce::IpAddress to = *roce::parse_address(row.to), group = *roce::parse_address(row.group);
    Alone box(row.nic);
    box.on([&](Host& host) {
      nic_model::QpInit init;
      init.domain = host.alloc_pd();
      init.send_cq = init.receive_cq = host.create_cq(16, box.host.number);
      init.capacity = {4, 4, 1, 1, 0};
      nic_model::Qp& qp = *host.create_qp(init);
      EXPECT_EQ(nic_model::connect(host, qp, {to, 0x99, 0}, {}), EINVAL);
      EXPECT_EQ(qp.attributes.state, IBV_QPS_INIT) << "nothing was taken";
      init.type = IBV_QPT_UC;
      EXPECT_EQ(nic_model::connect(host, *host.create_qp(init), {group, 0xFFFFFF, 0}, {}), EINVAL);
      nic_model::AddressHandle handle;
      for (const roce::IpAddress& one : {to, group}) EXPECT_EQ(host.create_ah(handle, one, 0x99, 0x1234), EINVAL);
      nic_model::ConnectionId id = 0;
      nic_model::Qp& asked = *host.create_qp(
          {.domain = init.domain, .send_cq = init.send_cq, .receive_cq = init.send_cq, .capacity = init.capacity});
      EXPECT_EQ(host.connections().connect(box.host.number, to, nic_model::PortSpace::kTcp, 7174, &asked, {}, id),
                EADDRNOTAVAIL);
      EXPECT_EQ(host.connections().connect(box.host.number, to, nic_model::PortSpace::kUdp, 7174, nullptr, {}, id),
                EADDRNOTAVAIL);
      EXPECT_EQ(host.connections().count(), 0u);
      // An address handle that was made without looking for the way.
      init.type = IBV_QPT_UD;
      nic_model::Qp& datagrams = *host.create_qp(init);
      ASSERT_EQ(0, nic_model::start_datagrams(host, datagrams, 0x1234));
      ibv_send_wr request{};
      request.opcode = IBV_WR_SEND;
      request.send_flags = IBV_SEND_SIGNALED;
      handle = host.create_ah({2, 0, 0, 0, 0, 2}, to, 0x99, 0x1234);
      EXPECT_EQ(0, host.post_send(datagrams, &request, nullptr, &handle));
      host.arm(*init.send_cq);
    });
    box.fabric.run(10 * kSecond);
    ASSERT_EQ(box.host.completions.size(), 1u);
    EXPECT_EQ(box.host.completions[0].status, IBV_WC_LOC_QP_OP_ERR);
    for (const char* name : {"arp_requests_sent", "nd_solicitations_sent", "tx_mads", "tx_roce_packets"})
      EXPECT_EQ(box.count(name), 0u) << name;
  }
}

}  // namespace
}  // namespace rocebox::test::addresses
