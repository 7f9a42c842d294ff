// SPDX-License-Identifier: BSD-3-Clause
// The workload rping on both sides of a wire.
#include <gtest/gtest.h>

#include "nic_model/host/workloads/rping.h"
#include "runtime/kernel/workload.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test {
namespace {

// Workloads on a box's hosts.
class RpingBox : public NicBox {
 public:
  explicit RpingBox(const std::string& link = "delay: 1us", const std::string& nic = "rate: 100Gbps")
      : NicBox(nic, link) {}
  std::unique_ptr<Workload> make(unsigned side, const std::string& yaml) {
    const Registry registry;
    config::Mistakes mistakes("test");
    const config::Node node = config::parse_yaml(yaml, mistakes);
    config::FieldsReader reader(&node, mistakes);
    const Component component = rping_workload();
    const std::unique_ptr<Options> filled = component.options(registry);
    filled->fields(reader);
    reader.finish();
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
    const WorkloadHost host{"host" + std::to_string(side), &nics[side]->host()};
    return static_cast<const WorkloadOptions&>(*filled).make({&host, 1}, 1);
  }
  void begin(Workload& workload) {
    workload.start(now);
    fabric.run(now);
  }
};

Json told(const Workload& workload) {
  Json json;
  JsonReport report(json);
  workload.report(report);
  return json;
}

TEST(Rping, PingsAreReadAndWrittenBack) {
  for (const char* link : {"delay: 1us", "delay: 1us\nmatch: {kind: roce}\nloss: 5%\nduplicate: 5%"}) {
    SCOPED_TRACE(link);
    RpingBox box(link);
    const auto server = box.make(1, "size: 5000"), client = box.make(0, "address: 10.0.0.2\ncount: 20\nsize: 5000");
    Nanos ended = 0;
    client->set_on_finished([&](Nanos at) { ended = at; });
    box.begin(*server);
    box.begin(*client);
    box.run(2000 * kSecond);
    EXPECT_TRUE(client->finished());
    EXPECT_TRUE(server->finished());
    EXPECT_GT(ended, 0);
    const Json there = told(*server), here = told(*client);
    EXPECT_EQ(there["pings"], 20);
    EXPECT_EQ(here["pings"], 20);
    EXPECT_EQ(here["mismatches"], 0);
    EXPECT_EQ(here["error"], "");
    EXPECT_EQ(there["error"], "");
    EXPECT_EQ(box.count(0, "rx_read_requests"), 20u) << "the server reads";
    EXPECT_EQ(box.count(0, "rx_write_requests"), 20u) << "and writes back";
    for (unsigned side = 0; side < 2; side++) {
      EXPECT_EQ(box.nics[side]->host().connections().count(), 0u);
      EXPECT_EQ(box.nics[side]->host().memory().regions(), 0u);
    }
  }
}

TEST(Rping, APersistentServerServesMany) {
  RpingBox box;
  const auto server = box.make(1, "persistent: true");
  box.begin(*server);
  std::vector<std::unique_ptr<Workload>> clients;
  for (unsigned i = 0; i < 5; i++) {
    clients.push_back(box.make(0, "address: 10.0.0.2\ncount: 3"));
    box.begin(*clients.back());
  }
  box.run(100 * kSecond);
  for (const auto& client : clients) EXPECT_TRUE(client->finished());
  EXPECT_FALSE(server->finished());
  EXPECT_EQ(told(*server)["pings"], 15);
  EXPECT_EQ(told(*server)["connections"], 5);
}

TEST(Rping, FailuresAreNamed) {
  RpingBox box;
  const auto nobody = box.make(0, "address: 10.0.0.2");
  box.begin(*nobody);
  box.run();
  EXPECT_TRUE(nobody->finished());
  EXPECT_EQ(told(*nobody)["error"], "the server rejects: invalid service ID (8)");
  const auto small = box.make(1, "port: 7175"), large = box.make(0, "address: 10.0.0.2\nport: 7175\nsize: 65");
  box.begin(*small);
  box.begin(*large);
  box.run(100 * kSecond);
  EXPECT_EQ(told(*small)["error"], "a client's `size` is larger than the server's");
  EXPECT_EQ(told(*large)["error"], "the server has disconnected");
  EXPECT_EQ(told(*large)["pings"], 0);
  RpingBox headers("delay: 1us", "header_only: true");
  EXPECT_THROW(headers.make(0, "size: 64"), ConfigError);
}

}  // namespace
}  // namespace rocebox::test
