// SPDX-License-Identifier: BSD-3-Clause
// RDMA CM's messages as bytes, against those of Linux.
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test {
namespace {

// A NIC whose packets end in a list.
struct Lone {
  Lone()
      : pool({.small = 64, .large = 16, .giant = 1}),
        options(nic_test_options("nic",
                                 "mac: 52:54:00:77:00:02\naddress: 10.77.0.2\n"
                                 "neighbors: [{address: 10.77.0.1, mac: 52:54:00:77:00:01}]")),
        fabric([this](FabricPort, std::span<Packet> packets, Nanos) {
          for (const Packet packet : packets) sent.emplace_back(packet.data(), packet.data() + packet.size());
        }) {
    std::vector<KernelPlan> plans;
    plans.push_back(
        {"nic", "nic", Shape::kOneWay, {{Edge::kOutside, 0}}, [this](Stats& stats) { return options->make(stats); }});
    const std::vector<std::string> ports = {"wire"};
    device = std::make_unique<PipelineDevice>("d", ports, std::vector<Edge>{{0, 0}}, std::move(plans), pool, 1);
    fabric.add(*device);
    auto& nic = static_cast<nic_model::Nic&>(device->kernel(0));
    nic.host().set_waker([this] { fabric.wake(0); });
    host = std::make_unique<TestHost>(nic);
  }
  Pool pool;
  std::unique_ptr<KernelOptions> options;
  std::vector<std::vector<std::uint8_t>> sent;
  std::unique_ptr<PipelineDevice> device;
  std::unique_ptr<TestHost> host;
  Fabric fabric;
};

// Frame 1 of rdma_cm.pcap (rping of rdma-core over Soft-RoCE), from the MAD header to the end of IP CM's header.
constexpr std::uint8_t kLinuxReq[200] = {
    0x01, 0x07, 0x02, 0x03, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x3c, 0xb9, 0x0a, 0xde, 0, 0x10, 0, 0, 0, 0, 0, 0, 0xde, 0x0a,
    0xb9, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x06, 0x1c, 0x06, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 0x02, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0x23, 0x01, 0, 0, 0, 0x01, 0, 0, 0, 0xa0, 0xeb, 0x5b, 0xce, 0xa7, 0xff, 0xff, 0x37, 0xf0, 0xff, 0xff,
    0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0x0a, 0x4d, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
    0x0a, 0x4d, 0, 0x01, 0x4a, 0x4d, 0x30, 0, 0, 0x40, 0, 0x98,
    // no alternate path
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0,
    // the IP CM service
    0, 0x40, 0xa9, 0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x4d, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0x0a, 0x4d, 0, 0x01};

TEST(CmWire, ARequestIsLinuxsButForItsNumbers) {
  Lone lone;
  ConnectionId id = 0;
  Qp* qp = nullptr;
  lone.host->to_do.push_back([&](Host& host) {
    nic_model::QpInit init;
    init.domain = host.alloc_pd();
    init.send_cq = init.receive_cq = host.create_cq(16, lone.host->number);
    init.capacity = {4, 4, 1, 1, 0};
    qp = host.create_qp(init);
    ConnectionOptions with;
    with.ack_timeout = 19;
    EXPECT_EQ(0, host.connections().connect(lone.host->number, roce::ipv4(10, 77, 0, 1), PortSpace::kTcp, 7174, qp,
                                            with, id));
  });
  lone.host->host.start_again(lone.host->number);
  lone.fabric.run(0);
  ASSERT_EQ(lone.sent.size(), 1u);
  ASSERT_EQ(lone.sent[0].size(), 322u);
  std::vector<std::uint8_t> mad(lone.sent[0].begin() + 62, lone.sent[0].end() - 4);
  // What is each connection's own: identifiers, QPN, PSN, flow label, source port.
  struct Own {
    std::size_t at, bytes;
  };
  for (const Own own : {Own{8, 8}, Own{24, 4}, Own{56, 3}, Own{68, 3}, Own{112, 3}, Own{166, 2}})
    std::copy_n(kLinuxReq + own.at, own.bytes, mad.begin() + static_cast<std::ptrdiff_t>(own.at));
  for (std::size_t i = 0; i < sizeof kLinuxReq; i++) EXPECT_EQ(mad[i], kLinuxReq[i]) << i;
  EXPECT_TRUE(std::all_of(mad.begin() + sizeof kLinuxReq, mad.end(), [](std::uint8_t byte) { return byte == 0; }));
}

}  // namespace
}  // namespace rocebox::test
