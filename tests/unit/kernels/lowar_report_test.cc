// SPDX-License-Identifier: BSD-3-Clause
// What a gateway's report says beside its counters: where it seems to stand the wrong way round.
#include <gtest/gtest.h>

#include "runtime/telemetry/json_report.h"
#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

std::string notes(const Gateway& gateway) {
  Json report;
  JsonReport writer(report);
  gateway.kernel->report(writer);
  return report.contains("notes") ? report["notes"].dump() : "";
}
bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

using LowarReport = TwentyPackets;

TEST_F(LowarReport, SaysNothingOfGatewaysThatFaceEachOther) {
  (void)far.decode(crossings);
  EXPECT_EQ(notes(near), "");
  EXPECT_EQ(notes(far), "");
}

TEST_F(LowarReport, SaysThatLowarPacketsComeAtTheHostsSideOnly) {
  for (const Crossing& crossing : crossings) far.send(far.clock += kMicrosecond, kHost, crossing.bytes);
  EXPECT_TRUE(has(notes(far), "LoWAR packets come in at the host's side only")) << notes(far);
  // Somebody forges some, and the far gateway is where it should be.
  Gateway right(coding(8, 1));
  right.send(right.clock += kMicrosecond, kHost, crossings[0].bytes);
  (void)right.decode(crossings);
  EXPECT_EQ(notes(right), "");
}

TEST_F(LowarReport, SaysThatDataComesWithoutLowarPackets) {
  for (const Frame& frame : data_frames(crossings)) far.send(far.clock += kMicrosecond, kLink, frame);
  EXPECT_TRUE(has(notes(far), "no gateway at its far end, or this one stands the wrong way round")) << notes(far);
}

}  // namespace
}  // namespace rocebox::lowar
