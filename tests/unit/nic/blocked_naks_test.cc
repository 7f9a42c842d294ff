// SPDX-License-Identifier: BSD-3-Clause
// A network that reorders and keeps NAKs back, as Themis's switches do: nothing is lost, so nobody may have to wait for
// a timeout.
#include <gtest/gtest.h>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::fabric_test {
namespace {

// Both sides send, so an ACK waits for its turn at the port, and a NAK comes to be said meanwhile.
TEST(BlockedNaks, TakeNoAcknowledgmentAway) {
  const struct {
    const char* recovery;
    int seed;
  } rows[] = {{"rnic_sr", 1}, {"rnic_sr", 2}, {"rnic_sr", 3}, {"rnic_sr", 4}, {"selective", 1}, {"selective", 2}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.recovery) + ", seed " + std::to_string(row.seed));
    const std::string nic = std::string(
                                "header_only: true, rate: 100Gbps, window: 20, retransmission_timeout: 4ms,"
                                " recovery: ") +
                            row.recovery + "}}\n";
    FabricBox box("seed: " + std::to_string(row.seed) +
                  "\n"
                  "devices:\n"
                  "  a: {nic: {address: 10.0.0.1, " +
                  nic + "  b: {nic: {address: 10.0.0.2, " + nic +
                  "links:\n"
                  "  way: {between: [a.wire, b.wire], delay: 1us, reorder: 30%, reorder_by: 8, reorder_timeout: 20us,"
                  " events: [{kind: [nak], occurrence: 0, do: drop}]}\n"
                  "workloads: {write_bw: {hosts: [a, b], size: 1MiB, iters: 20, qp: 4, bidirectional: true}}\n");
    const Json& report = box.run();
    EXPECT_EQ(report["run"]["end"], "all workloads had finished");
    for (const char* const one : {"a", "b"}) {
      EXPECT_GT(box.count(one, "naks_sent"), 100u);
      EXPECT_EQ(box.count(one, "local_ack_timeout_err"), 0u);
      EXPECT_EQ(box.count(one, "retransmitted_packets"), 0u);
    }
  }
}

}  // namespace
}  // namespace rocebox::fabric_test
