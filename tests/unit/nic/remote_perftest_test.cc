// SPDX-License-Identifier: BSD-3-Clause
// perftest's workloads with one host each, as they run in two processes.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "nic_model/host/workloads/perftest.h"
#include "runtime/kernel/workload.h"
#include "runtime/roce/hop_fields.h"
#include "runtime/roce/parse.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

class RemoteBox : public NicBox {
 public:
  using NicBox::NicBox;
  std::unique_ptr<Workload> make(unsigned side, std::string_view type, const std::string& yaml) {
    const Registry registry;
    config::Mistakes mistakes("test");
    const config::Node node = config::parse_yaml(yaml, mistakes);
    config::FieldsReader reader(&node, mistakes);
    for (const Component& component : nic_model::perftest_workloads()) {
      if (type != component.name) continue;
      const std::unique_ptr<Options> filled = component.options(registry);
      filled->fields(reader);
      reader.finish();
      EXPECT_TRUE(mistakes.none()) << mistakes.text();
      const WorkloadHost host{"host" + std::to_string(side), &nics[side]->host()};
      return static_cast<const WorkloadOptions&>(*filled).make({&host, 1}, 1);
    }
    return nullptr;
  }
  // Both to their ends; their reports, the server's first.
  std::array<Json, 2> between(std::string_view type, const std::string& server, const std::string& client) {
    const auto there = make(1, type, server), here = make(0, type, "address: 10.0.0.2\n" + client);
    for (Workload* one : {there.get(), here.get()}) {
      one->start(now);
      fabric.run(now);
    }
    run(2000 * kSecond);
    EXPECT_TRUE(there->finished());
    EXPECT_TRUE(here->finished());
    std::array<Json, 2> told;
    for (unsigned i = 0; i < 2; i++) {
      JsonReport report(told[i]);
      (i == 0 ? there : here)->report(report);
    }
    return told;
  }
};

// What no send queue has room for is said when the configuration is read, whoever takes it.
TEST(RemotePerftest, SoManyInlineMessagesThatNoSendQueueHoldsThemAreRefused) {
  const Registry registry;
  const auto mistakes_of = [&](std::string_view type, const std::string& yaml) {
    config::Mistakes mistakes("test");
    const config::Node node = config::parse_yaml(yaml, mistakes);
    config::FieldsReader reader(&node, mistakes);
    registry.find(type)->options(registry)->fields(reader);
    reader.finish();
    return mistakes.text();
  };
  for (const char* type : {"write_bw", "send_bw"}) {
    EXPECT_EQ(mistakes_of(type, "{size: 64B, tx_depth: 16384}"), "");
    EXPECT_EQ(mistakes_of(type, "{size: 64B, tx_depth: 2048, inline_size: 512}"), "");
    EXPECT_NE(
        mistakes_of(type, "{size: 64B, tx_depth: 16384, inline_size: 512}").find("too large for so large a `tx_depth`"),
        std::string::npos);
  }
  EXPECT_EQ(mistakes_of("read_bw", "{size: 64B, tx_depth: 16384}"), "");
}

TEST(RemotePerftest, BandwidthBetweenTwoProcesses) {
  for (const char* link : {"delay: 1us", "delay: 1us\nmatch: {kind: roce}\nloss: 2%"}) {
    SCOPED_TRACE(link);
    RemoteBox box("rate: 100Gbps", link);
    const auto [there, here] = box.between("write_bw", "size: 9000", "size: 9000\niters: 500\ntx_depth: 16\ncq_mod: 4");
    EXPECT_EQ(here["messages"], 500);
    EXPECT_EQ(here["error"], "");
    EXPECT_EQ(there["error"], "");
    EXPECT_EQ(there["role"], "server");
    EXPECT_GT(here["average_bits_per_second"], 1e8);  // with losses most of the time is timeouts
    EXPECT_EQ(box.count(1, "rx_write_requests"), 500u);
    for (unsigned side = 0; side < 2; side++) EXPECT_EQ(box.nics[side]->host().memory().regions(), 0u);
  }
}

TEST(RemotePerftest, BandwidthForATime) {
  RemoteBox box("rate: 10Gbps", "delay: 1us");
  const auto [there, here] = box.between("write_bw", "size: 4096", "size: 4096\nduration: 1ms");
  EXPECT_EQ(here["error"], "");
  // 4096 of 4194 bytes on the wire (4170 of the frame and 24 around it).
  EXPECT_NEAR(here["average_bits_per_second"].get<double>(), 10e9 * 4096 / 4194, 0.15e9);
}

TEST(RemotePerftest, LatencyIsHalfOfThereAndBack) {
  RemoteBox box("rate: 100Gbps", "delay: 5us");
  const auto [there, here] = box.between("write_lat", "size: 64", "size: 64\niters: 100");
  EXPECT_EQ(here["messages"], 100);
  EXPECT_EQ(here["error"], "");
  EXPECT_EQ(box.count(1, "rx_write_requests"), 100u);
  // The link's delay and the time of 170 bytes, and perhaps of an ACK before them.
  EXPECT_NEAR(here["t_max_ns"].get<double>(), 5000, 50);
  EXPECT_NEAR(here["t_min_ns"].get<double>(), 5000, 50);
}

// Each verb goes over the wire as many times as it should, and what one hears the other has said, with losses, too.
TEST(RemotePerftest, EveryVerbBetweenTwoProcesses) {
  const struct {
    const char *verb, *counter;
    bool has_two_ways;  // in a test of latency
  } verbs[] = {{"write", "rx_write_requests", true},
               {"read", "rx_read_requests", false},
               {"send", "rx_send_requests", true},
               {"atomic", "rx_atomic_requests", false}};
  for (const auto& row : verbs)
    for (const char* what : {"bw", "lat"})
      for (const char* link : {"delay: 5us", "delay: 5us\nmatch: {kind: roce}\nloss: 2%"}) {
        SCOPED_TRACE(std::string(row.verb) + "_" + what + ", " + link);
        const bool is_lat = what == std::string_view("lat"), is_lossless = link == std::string_view("delay: 5us");
        const std::string size = row.verb == std::string_view("atomic") ? "mtu: 1024"
                                 : is_lat                               ? "size: 64"
                                                                        : "size: 9000";
        RemoteBox box("rate: 100Gbps", link);
        const auto [there, here] = box.between(std::string(row.verb) + "_" + what, size,
                                               size + "\niters: 200" + (is_lat ? "" : "\ntx_depth: 16"));
        EXPECT_EQ(here["error"], "");
        EXPECT_EQ(there["error"], "");
        EXPECT_EQ(here["messages"], 200);
        EXPECT_EQ(there["messages"], row.has_two_ways && (is_lat || row.verb == std::string_view("send")) ? 200 : 0);
        if (is_lossless) {
          EXPECT_EQ(box.count(1, row.counter), 200u);
          EXPECT_EQ(box.count(0, row.counter), is_lat && row.has_two_ways ? 200u : 0u);
          EXPECT_EQ(box.count(1, "rnr_naks_sent"), 0u);
        }
        // One way, or there and back for what is its own answer.
        if (is_lat && is_lossless) {
          EXPECT_NEAR(here["t_min_ns"].get<double>(), row.has_two_ways ? 5000 : 10000, 100);
        }
        for (unsigned side = 0; side < 2; side++) EXPECT_EQ(box.nics[side]->host().memory().regions(), 0u);
      }
}

// What the lesser end has room for counts: of READs its `outs`, of SENDs the receive requests of its `tx_depth`.
TEST(RemotePerftest, EndsOfUnequalDepth) {
  RemoteBox box("rate: 100Gbps", "delay: 1us");
  const auto [reads, reader] = box.between("read_bw", "size: 4096\nouts: 2", "size: 4096\niters: 300\nouts: 16");
  EXPECT_EQ(reader["error"], "");
  EXPECT_EQ(reader["messages"], 300);
  for (const char* more : {"", "\ncq_mod: 7", "\ncq_mod: 7\nduration: 100us"}) {
    SCOPED_TRACE(more);
    RemoteBox other("rate: 100Gbps", "delay: 1us");
    const bool is_timed = std::string_view(more).find("duration") != std::string_view::npos;
    const auto [there, here] =
        other.between("send_bw", "size: 64\ntx_depth: 1",
                      std::string("size: 64\ntx_depth: 64") + (is_timed ? "" : "\niters: 300") + more);
    EXPECT_EQ(here["error"], "");
    EXPECT_EQ(there["error"], "");
    if (is_timed)
      EXPECT_GE(there["messages"], here["messages"]) << "those at the end have no completion";
    else
      EXPECT_EQ(there["messages"], 300);
  }
}

// Whose server leaves before all is done has not done it, though all was posted.
TEST(RemotePerftest, AServerThatLeavesEarlyIsAnError) {
  for (const char* type : {"write_bw", "send_lat"}) {
    RemoteBox box("rate: 100Gbps", "delay: 1us\nreverse: {match: {qpn: 17}, loss: 100%}");  // no answer comes
    TestHost& server = *box.hosts[1];
    server.on_connection = [&](nic_model::Host& host, const nic_model::ConnectionEvent& event) {
      if (event.type == nic_model::ConnectionEventType::kEstablished) host.connections().disconnect(event.id);
      if (event.type != nic_model::ConnectionEventType::kConnectRequest) return;
      nic_model::QpInit init;
      init.domain = host.alloc_pd();
      init.send_cq = init.receive_cq = host.create_cq(16, server.number);
      init.capacity = {4, 4, 1, 1, 0};
      nic_model::Qp* const qp = host.create_qp(init);
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_INIT;
      a.port_num = 1;
      host.modify_qp(*qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
      nic_model::ConnectionOptions options;
      options.private_data = {event.private_data.data(), event.private_data_bytes};  // it measures the same
      EXPECT_EQ(host.connections().accept(event.id, *qp, options), 0);
    };
    box.on(1, [&](nic_model::Host& host) {
      EXPECT_EQ(host.connections().listen(server.number, nic_model::PortSpace::kTcp, 18515, 1), 0);
    });
    const auto client = box.make(0, type, "address: 10.0.0.2\nsize: 64\niters: 1");
    client->start(box.now);
    box.fabric.run(box.now);
    box.run(2000 * kSecond);
    Json told;
    JsonReport report(told);
    client->report(report);
    EXPECT_TRUE(client->finished());
    EXPECT_EQ(told["error"], "the server has disconnected") << type;
  }
}

// A client of another verb is rejected, as one of another size is.
TEST(RemotePerftest, BothSaySizeAndKind) {
  RemoteBox box("rate: 100Gbps", "delay: 1us");
  const auto server = box.make(1, "write_bw", "size: 4096");
  const auto client = box.make(0, "send_bw", "address: 10.0.0.2\nsize: 4096\niters: 1");
  for (Workload* one : {server.get(), client.get()}) {
    one->start(box.now);
    box.fabric.run(box.now);
  }
  box.run(2000 * kSecond);
  Json told;
  JsonReport report(told);
  client->report(report);
  EXPECT_TRUE(client->finished());
  EXPECT_EQ(told["error"], "the server runs write_bw with messages of 4096 bytes");
  EXPECT_FALSE(server->finished()) << "it waits for another one";
}

// As the client says, by RDMA CM, whose own messages have none.
TEST(RemotePerftest, BothSidesHaveTheClientsTrafficClass) {
  for (const char* name : {"write_bw", "write_lat"}) {
    RemoteBox box("rate: 100Gbps", "delay: 1us");
    std::set<std::pair<bool, unsigned>> seen[2];  // of CM's queue pair or not, and the traffic class
    for (unsigned side = 0; side < 2; side++)
      box.fabric.tap({side, 0}, [&, side](FabricPort, std::span<const Packet> packets, Nanos) {
        for (const Packet packet : packets)
          if (packet.meta().bth_offset)
            seen[side].emplace(static_cast<std::uint32_t>(roce::bth(packet).destination_qp) == roce::kGsiQpn,
                               roce::tos(packet));
      });
    const auto [there, here] = box.between(name, "size: 4096", "size: 4096\niters: 20\ntraffic_class: 0x68");
    EXPECT_EQ(here["error"], "");
    for (const auto& all : seen)
      EXPECT_EQ(all, (std::set<std::pair<bool, unsigned>>{{true, 0}, {false, 0x68}})) << name;
  }
}

TEST(RemotePerftest, WhatNeedsBothHostsIsRefused) {
  RemoteBox box("rate: 100Gbps", "delay: 1us");
  EXPECT_THROW(box.make(0, "write_bw", "address: 10.0.0.2\nqp: 2"), ConfigError);
  EXPECT_THROW(box.make(0, "read_bw", "bidirectional: true"), ConfigError);
  EXPECT_THROW(box.make(0, "send_bw", "size_max: 128KiB"), ConfigError);
  EXPECT_THROW(box.make(0, "write_lat", "connection: UC"), ConfigError);
}

}  // namespace
}  // namespace rocebox::test
