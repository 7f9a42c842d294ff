// SPDX-License-Identifier: BSD-3-Clause
// A network that reorders and keeps NAKs back, as Themis's switches do: nothing is lost, so nobody may have to wait for
// a timeout.
#include <gtest/gtest.h>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::fabric_test {
namespace {

// Both sides send, so an ACK waits for its turn at the port, and a NAK comes to be said meanwhile.
TEST(BlockedNaks, TakeNoAcknowledgmentAway) {
  for (const int seed : {1, 2, 3, 4}) {
    SCOPED_TRACE(seed);
    FabricBox box("seed: " + std::to_string(seed) +
                  "\n"
                  "devices:\n"
                  "  a: {nic: {address: 10.0.0.1, header_only: true, rate: 100Gbps, recovery: rnic_sr, window: 20,"
                  " retransmission_timeout: 4ms}}\n"
                  "  b: {nic: {address: 10.0.0.2, header_only: true, rate: 100Gbps, recovery: rnic_sr, window: 20,"
                  " retransmission_timeout: 4ms}}\n"
                  "links:\n"
                  "  way: {between: [a.wire, b.wire], delay: 1us, reorder: 30%, reorder_by: 8, reorder_timeout: 20us,"
                  " events: [{kind: [nak], occurrence: 0, do: drop}]}\n"
                  "workloads: {write_bw: {hosts: [a, b], size: 1MiB, iters: 20, qp: 4, bidirectional: true}}\n");
    const Json& report = box.run();
    EXPECT_EQ(report["run"]["end"], "all workloads had finished");
    for (const char* const nic : {"a", "b"}) {
      EXPECT_GT(box.count(nic, "naks_sent"), 100u);
      EXPECT_EQ(box.count(nic, "local_ack_timeout_err"), 0u);
      EXPECT_EQ(box.count(nic, "retransmitted_packets"), 0u);
    }
  }
}

}  // namespace
}  // namespace rocebox::fabric_test
