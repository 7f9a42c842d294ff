// SPDX-License-Identifier: BSD-3-Clause
// What the inspect kernel sees right before a NIC, and what the NIC itself counts, where the wire behind loses and
// marks.
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::inspect_books_test {
namespace {

// Of flows with this source, or with another one.
std::uint64_t sum(const Json& inspect, const std::string& source, bool from_it,
                  const std::function<std::uint64_t(const Json&)>& of) {
  std::uint64_t all = 0;
  for (const Json& flow : inspect["flows"])
    if ((flow["source"] == source) == from_it) all += of(flow);
  return all;
}

// A counter of flows, or of one of their PSN spaces.
std::function<std::uint64_t(const Json&)> counter(const std::string& name, const std::string& of = "") {
  return [=](const Json& flow) -> std::uint64_t {
    if (of.empty()) return flow.at(name);
    return flow.contains(of) ? flow[of].value(name, std::uint64_t{0}) : 0;
  };
}

// Four queue pairs of `a` ask `b`; 1% is lost, and 1% is marked. Between such NICs nobody sees a handshake.
std::string config(const std::string& recovery, const std::string& workload, const std::string& options) {
  const std::string nic = ", rate: 100Gbps, dcqcn: {enabled: true}, recovery: " + recovery + "}}\n";
  std::string pairs;
  for (const char* qpn : {"17", "18", "19", "20"})
    pairs +=
        std::string(pairs.empty() ? "" : ", ") + "{a: 10.0.0.1, a_qpn: " + qpn + ", b: 10.0.0.2, b_qpn: " + qpn + "}";
  const std::string kernels = ", kernels: {inspect: {pairs: [" + pairs + "]" + options + "}}}\n";
  return "devices:\n"
         "  a: {nic: {address: 10.0.0.1" +
         nic + "  b: {nic: {address: 10.0.0.2" + nic + "  near: {path: host <-> inspect <-> wire" + kernels +
         "  far: {path: wire <-> inspect <-> host" + kernels +
         "links:\n"
         "  left: {between: [a.wire, near.host], delay: 100ns}\n"
         "  haul: {between: [near.wire, far.wire], delay: 5us, loss: 1%, mark: 1%}\n"
         "  right: {between: [far.host, b.wire], delay: 100ns}\n"
         "workloads: {w: {hosts: [a, b], mtu: 1024, qp: 4, tx_depth: 8, " +
         workload + "}}\n";
}

// One of both NICs, and the kernel that sees all that it sends and gets.
struct Books {
  Books(const fabric_test::FabricBox& box, const char* device, const char* beside, const char* address)
      : own(address),
        nic(box.report["devices"][device]["kernels"]["nic"]["counters"]),
        wire(box.report["devices"][beside]["kernels"]["inspect"]) {}
  std::uint64_t count(const char* name) const { return nic.at(name); }
  std::uint64_t sent(const char* name, const char* of = "") const { return sum(wire, own, true, counter(name, of)); }
  std::uint64_t got(const char* name, const char* of = "") const { return sum(wire, own, false, counter(name, of)); }
  static std::uint64_t naks(const Json& flow) {
    std::uint64_t all = 0;
    for (const Json& one : flow["naks"]) all += one.get<std::uint64_t>();
    return all;
  }

  void check(bool goes_back) const {
    EXPECT_EQ(sent("packets"), count("tx_roce_packets"));
    EXPECT_EQ(sent("bytes"), count("tx_roce_bytes"));
    EXPECT_EQ(got("packets"), count("rx_roce_packets"));
    EXPECT_EQ(got("bytes"), count("rx_roce_bytes"));
    EXPECT_EQ(sent("acks"), count("acks_sent"));
    EXPECT_EQ(sum(wire, own, true, naks), count("naks_sent"));
    EXPECT_EQ(sent("cnps"), count("np_cnp_sent"));
    EXPECT_EQ(got("cnps"), count("rp_cnp_handled"));
    EXPECT_EQ(got("ce", "ecn"), count("np_ecn_marked_roce_packets"));
    // What comes from the NIC was neither lost yet nor doubled nor overtaken.
    EXPECT_EQ(sent("retransmissions", "requests"), count("retransmitted_packets"));
    for (const char* space : {"requests", "read_responses"})
      for (const char* name : {"duplicates", "out_of_order", "undecided", "beyond_window", "lost", "missing"})
        EXPECT_EQ(sent(name, space), 0u) << space << " " << name;
    // A NAK is not obeyed where what it says is known: its PSN, or an earlier one, has been acknowledged meanwhile.
    const std::uint64_t refused = sum(wire, own, false, naks) - count("packet_seq_err");
    EXPECT_LE(refused, goes_back ? 0 : count("ghost_acks"));
    if (!goes_back) return;  // the kernel counts as a responder that goes back
    EXPECT_EQ(got("out_of_sequence", "requests"), count("out_of_sequence"));
    EXPECT_EQ(got("duplicate_request", "requests"), count("duplicate_request"));
  }

  const std::string own;
  const Json &nic, &wire;
};

void agree(const std::string& recovery, const std::string& workload, const std::string& options) {
  SCOPED_TRACE(recovery + ", " + workload + options);
  fabric_test::FabricBox box(config(recovery, workload, options));
  box.run();
  ASSERT_TRUE(box.sim.succeeded());
  const Books near(box, "a", "near", "10.0.0.1"), far(box, "b", "far", "10.0.0.2");
  near.check(recovery == "go_back_n");
  far.check(recovery == "go_back_n");
  // Between both is what the link lost, and nothing else.
  EXPECT_EQ(near.sent("packets") - far.got("packets"), box.link("haul", "forward_drop_loss"));
  EXPECT_EQ(far.sent("packets") - near.got("packets"), box.link("haul", "reverse_drop_loss"));
  EXPECT_GT(near.count("retransmitted_packets"), 10u);
  EXPECT_GT(far.count("naks_sent"), 0u);
  EXPECT_GT(near.count("np_cnp_sent") + far.count("np_cnp_sent"), 0u);
}

constexpr const char* kWrites = "type: write_bw, size: 16KiB, iters: 60";
constexpr const char* kSends = "type: send_bw, size: 16KiB, iters: 20";

// What is repeated right behind a NIC was sent again, if it is older than the time that nothing takes to come back.
TEST(InspectBooks, AgreeWithTheNicsOwnUnderLoss) {
  for (const char* recovery : {"go_back_n", "rnic_sr", "selective"})
    for (const char* workload :
         {kWrites, kSends, "type: read_bw, size: 16KiB, iters: 60", "type: atomic_bw, iters: 100"})
      agree(recovery, workload, ", retransmit_after: 1us");
}

// And with any, where NAKs name what is sent again.
TEST(InspectBooks, TellWhatANakHasSentAgainWhateverItsAge) {
  for (const char* recovery : {"go_back_n", "rnic_sr"})
    for (const char* workload : {kWrites, kSends}) agree(recovery, workload, "");
}

}  // namespace
}  // namespace rocebox::inspect_books_test
