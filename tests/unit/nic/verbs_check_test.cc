// SPDX-License-Identifier: BSD-3-Clause
// The workloads verbs_check and ucmatose, with a host on either side of a wire.
#include "nic_model/host/workloads/verbs_check.h"

#include <gtest/gtest.h>

#include <set>

#include "nic_model/host/workloads/check_case.h"
#include "nic_model/host/workloads/ucmatose.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::verbs_check {
namespace {

std::unique_ptr<Options> options_of(const Component& component, const std::string& yaml, std::string& mistakes_text) {
  const Registry registry;
  config::Mistakes mistakes("test");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  std::unique_ptr<Options> filled = component.options(registry);
  filled->fields(reader);
  reader.finish();
  mistakes_text = mistakes.text();
  return filled;
}

class CheckBox : public NicBox {
 public:
  explicit CheckBox(const std::string& link = "delay: 1us", const std::string& nic = "rate: 100Gbps")
      : NicBox(nic, link) {}
  Workload& begin(const Component& component, unsigned side, const std::string& yaml) {
    std::string mistakes;
    const std::unique_ptr<Options> filled = options_of(component, yaml, mistakes);
    EXPECT_EQ(mistakes, "");
    const WorkloadHost host{"host" + std::to_string(side), &nics[side]->host()};
    workloads.push_back(static_cast<const WorkloadOptions&>(*filled).make({&host, 1}, 1));
    workloads.back()->start(now);
    fabric.run(now);
    return *workloads.back();
  }
  std::vector<std::unique_ptr<Workload>> workloads;
};

Json told(const Workload& workload) {
  Json json;
  JsonReport report(json);
  workload.report(report);
  return json;
}

TEST(VerbsCheck, EveryVerbOfEveryTransportBothWays) {
  CheckBox box;
  const Workload &server = box.begin(verbs_check_workload(), 1, "{}"),
                 &client = box.begin(verbs_check_workload(), 0, "address: 10.0.0.2");
  box.run(1000 * kSecond);
  EXPECT_TRUE(client.finished());
  EXPECT_TRUE(server.finished());
  for (const Workload* one : {&client, &server}) {
    const Json report = told(*one);
    EXPECT_EQ(report["error"], "");
    EXPECT_EQ(report["cases_done"], 26) << "7 verbs of RC, 4 of UC, 2 of UD, each both ways";
    EXPECT_EQ(report["cases_incomplete"], 0);
    EXPECT_EQ(report["wrong_messages"], 0);
    EXPECT_EQ(report["cases"].size(), 26u);
  }
  for (unsigned side = 0; side < 2; side++) {
    EXPECT_EQ(box.count(side, "rx_read_requests"), 64u);
    EXPECT_EQ(box.count(side, "rx_atomic_requests"), 128u);
    EXPECT_EQ(box.count(side, "retransmitted_packets"), 0u);
    EXPECT_EQ(box.nics[side]->host().connections().count(), 0u);
    EXPECT_EQ(box.nics[side]->host().memory().regions(), 0u);
  }
}

TEST(VerbsCheck, ThroughLossReliableMessagesComeAllAndOthersWholeOrNotAtAll) {
  CheckBox box("delay: 1us\nmatch: {kind: roce}\nloss: 2%\ncorrupt: 1%");
  box.begin(verbs_check_workload(), 1, "{}");
  const Workload& client = box.begin(verbs_check_workload(), 0, "address: 10.0.0.2");
  box.run(1000 * kSecond);
  const Json report = told(client);
  EXPECT_EQ(report["error"], "");
  EXPECT_EQ(report["cases_done"], 26);
  EXPECT_EQ(report["wrong_messages"], 0);
  unsigned lossy = 0, partial = 0;
  for (const Json& row : report["cases"]) {
    SCOPED_TRACE(row.dump());
    EXPECT_EQ(row["status"], "success");
    EXPECT_EQ(row["completed"], 64);
    const auto whole = row["whole"].get<unsigned>(), part = row["partial"].get<unsigned>();
    EXPECT_EQ(whole + part + row["missing"].get<unsigned>(), 64u);
    EXPECT_GT(whole, 0u);
    if (row["transport"] == "RC") {
      EXPECT_EQ(whole, 64u);
    }
    if (row["verb"] != "write") {
      EXPECT_EQ(part, 0u) << "what tells its receiver has come whole";
    }
    lossy += whole < 64;
    partial += part;
  }
  EXPECT_GT(lossy, 0u);
  EXPECT_GT(partial, 0u) << "UC WRITEs of five packets";
}

TEST(VerbsCheck, GroupsOfEitherFamily) {
  CheckBox box("delay: 1us", "rate: 100Gbps\naddress6: fd77::$");
  box.begin(verbs_check_workload(), 1, "persistent: true");
  const Workload& client = box.begin(verbs_check_workload(), 0,
                                     "address: 10.0.0.2\ncases: [{transport: UD, group: 239.1.2.3},"
                                     " {transport: UD, verb: send_with_imm, group: 'ff1e::1', requester: server}]");
  box.run(1000 * kSecond);
  EXPECT_TRUE(client.finished());
  EXPECT_EQ(told(client)["cases_done"], 3);
  EXPECT_EQ(told(client)["cases_incomplete"], 0);
  EXPECT_EQ(box.count(1, "multicast_rcv_packets"), 64u);
  EXPECT_EQ(box.count(0, "multicast_rcv_packets"), 128u);
}

// A case has at most 2^20 packets before the next one's PSNs begin.
TEST(VerbsCheck, CasesThatFollowEachOtherHavePsnsOfTheirOwn) {
  const nic_model::check::Case any;
  std::set<std::uint32_t> begins;
  for (std::uint32_t number = 0; number < 16; number++)
    begins.insert(nic_model::check::Side(any, number, true).first_psn() >> 20);
  EXPECT_EQ(begins.size(), 16u);
  EXPECT_EQ(nic_model::check::Side(any, 16, true).first_psn(), 0xFFFFE0u) << "goes round within the case";
}

TEST(VerbsCheck, FindsBytesThatWereNotSent) {
  // Without ICRCs nobody finds them before.
  CheckBox box("delay: 1us\nmatch: {opcode: 42}\ncorrupt: 50%", "rate: 100Gbps\nicrc: false");
  box.begin(verbs_check_workload(), 1, "{}");
  const Workload& client =
      box.begin(verbs_check_workload(), 0, "address: 10.0.0.2\nsize: 900\ncases: [{transport: UC, verb: write}]");
  box.run(1000 * kSecond);
  EXPECT_EQ(told(client)["cases_done"], 2);
  EXPECT_EQ(told(client)["cases_incomplete"], 2);
  EXPECT_GT(told(client)["wrong_messages"].get<unsigned>(), 10u);
}

TEST(VerbsCheck, AsksAgainWhereTheServerTakesItForAnOlderConnection) {
  CheckBox box;
  box.begin(verbs_check_workload(), 1, "persistent: true");
  // As a NIC that was started anew without a word: the queue pair's number is that of a connection there.
  nic_model::Qp* qp = nullptr;
  nic_model::ConnectionId id = 0;
  box.on(0, [&](nic_model::Host& host) {
    nic_model::QpInit init;
    init.domain = host.alloc_pd();
    init.send_cq = init.receive_cq = host.create_cq(16, box.hosts[0]->number);
    init.capacity = {1, 1, 1, 1, 0};
    qp = host.create_qp(init);
    EXPECT_EQ(0, host.connections().connect(box.hosts[0]->number, roce::ipv4(10, 0, 0, 2), nic_model::PortSpace::kTcp,
                                            7175, qp, {}, id));
  });
  box.run(kMillisecond);
  ASSERT_EQ(box.hosts[0]->connection_events.size(), 1u);
  box.on(0, [&](nic_model::Host& host) { host.destroy_qp(*qp); });
  const Workload& client = box.begin(verbs_check_workload(), 0, "address: 10.0.0.2\ncases: [{}]");
  box.run(100 * kSecond);
  EXPECT_GT(box.count(1, "cm_rejects_sent"), 0u);
  EXPECT_TRUE(client.finished());
  EXPECT_EQ(told(client)["error"], "");
  EXPECT_EQ(told(client)["cases_done"], 2);
}

TEST(VerbsCheck, RefusesCasesThatThereAreNot) {
  for (const auto& [yaml, said] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{transport: UC, verb: read}", "none that the transport has"},
           {"{transport: UD, verb: write}", "none that the transport has"},
           {"{transport: UD, size: 2000}", "a datagram is one packet"},
           {"{size: 3}", "4 bytes at least"},
           {"{size: 1MiB, messages: 65}", "more than 64 MiB"},
           {"{group: 239.1.2.3}", "needs `transport: UD`"},
           {"{transport: UD, group: 10.0.0.1}", "is no multicast address"}}) {
    std::string mistakes;
    options_of(verbs_check_workload(), "address: 10.0.0.2\ncases: [" + std::string(yaml) + "]", mistakes);
    EXPECT_NE(mistakes.find(said), std::string::npos) << yaml << ": " << mistakes;
  }
  std::string mistakes;
  options_of(verbs_check_workload(), "cases: [{}]", mistakes);
  EXPECT_NE(mistakes.find("are a client's"), std::string::npos) << mistakes;
}

TEST(Ucmatose, MessagesGoThereAndBackOnEachConnection) {
  for (const char* link : {"delay: 1us", "delay: 1us\nmatch: {kind: roce}\nloss: 5%\nduplicate: 5%"}) {
    SCOPED_TRACE(link);
    CheckBox box(link);
    const std::string both = "connections: 3\nmessage_count: 20\nmessage_size: 3000\n";
    const Workload &server = box.begin(ucmatose_workload(), 1, both),
                   &client = box.begin(ucmatose_workload(), 0, both + "address: 10.0.0.2");
    box.run(2000 * kSecond);
    for (const Workload* one : {&client, &server}) {
      EXPECT_TRUE(one->finished());
      const Json report = told(*one);
      EXPECT_EQ(report["error"], "");
      EXPECT_EQ(report["connections"], 3);
      EXPECT_EQ(report["disconnected"], 3);
      EXPECT_EQ(report["messages_sent"], 60);
      EXPECT_EQ(report["messages_received"], 60);
    }
    EXPECT_EQ(box.nics[0]->host().memory().regions() + box.nics[1]->host().memory().regions(), 0u);
  }
}

TEST(Ucmatose, FailuresAreNamed) {
  CheckBox box;
  const Workload& nobody = box.begin(ucmatose_workload(), 0, "address: 10.0.0.2");
  box.run();
  EXPECT_EQ(told(nobody)["error"], "the server rejects: invalid service ID (8)");
  box.begin(ucmatose_workload(), 1, "message_size: 100");
  const Workload& large = box.begin(ucmatose_workload(), 0, "address: 10.0.0.2\nmessage_size: 101");
  box.run(100 * kSecond);
  EXPECT_TRUE(large.finished());
  EXPECT_EQ(told(large)["error"], "a message of another length came");
}

}  // namespace
}  // namespace rocebox::test::verbs_check
