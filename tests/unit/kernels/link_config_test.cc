// SPDX-License-Identifier: BSD-3-Clause
// Options as they are written, and every combination that is refused.
#include <gtest/gtest.h>

#include "kernels/link/link.h"
#include "runtime/config/describe.h"
#include "runtime/config/fields_reader.h"
#include "tests/unit/options.h"

namespace rocebox {
namespace {

struct Read {
  link::Config config;
  std::string mistakes;
};

Read read(std::string_view yaml) {
  Read result;
  config::Mistakes mistakes("link.yaml");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader fields(&node, mistakes);
  result.config.fields(fields);
  fields.finish();
  result.mistakes = mistakes.text();
  return result;
}

void expect_refused(std::string_view yaml, std::string_view message) {
  const std::string mistakes = read(yaml).mistakes;
  EXPECT_NE(mistakes.find(message), std::string::npos) << yaml << "\ngave: " << mistakes;
}

TEST(LinkConfig, TheTopHoldsForBothAndGroupsOverride) {
  const Read r = read("{delay: 5ms, loss: 1%, reverse: {loss: 0.5, rate: 10Gbps}}");
  EXPECT_EQ(r.mistakes, "");
  EXPECT_EQ(r.config.forward.delay, 5 * kMillisecond);
  EXPECT_EQ(r.config.reverse.delay, 5 * kMillisecond);
  EXPECT_EQ(r.config.forward.loss, 0.01);
  EXPECT_EQ(r.config.reverse.loss, 0.5);
  EXPECT_EQ(r.config.forward.rate, 0u);
  EXPECT_EQ(r.config.reverse.rate, 10'000'000'000u);
}

TEST(LinkConfig, ADirectionsOwnEventsReplaceTheCommonOnes) {
  const Read r = read(
      "{events: [{packet: 1, do: drop}, {packet: 2, do: trim}],"
      " reverse: {events: [{qpn: 0x11, psn: 9, do: mark}]}}");
  EXPECT_EQ(r.mistakes, "");
  ASSERT_EQ(r.config.forward.events.size(), 2u);
  EXPECT_EQ(r.config.forward.events[1].action, link::Action::kTrim);
  ASSERT_EQ(r.config.reverse.events.size(), 1u);
  EXPECT_EQ(r.config.reverse.events[0].qpn, 0x11);
}

TEST(LinkConfig, NothingWrittenIsAPerfectWire) {
  const Read r = read("{}");
  EXPECT_EQ(r.mistakes, "");
  EXPECT_EQ(r.config.forward.overhead, 24u);
  EXPECT_EQ(r.config.forward.queue, 1u << 20);
  EXPECT_EQ(r.config.forward.packets, 65536);
  EXPECT_EQ(r.config.forward.burst_loss.loss_bad, 1.0);
}

TEST(LinkConfig, RefusesImpossibleOptions) {
  expect_refused("rate: 500bps", "`rate` must be 0 or at least 1kbps");
  expect_refused("jitter_reorders: true", "`jitter_reorders` needs `jitter`");
  expect_refused("ecn: {min: 10KiB}", "`max` must be given when the group is used");
  expect_refused("ecn: {probability: 1%}", "`probability` is of no use without `max`");
  expect_refused("ecn: {min: 20KiB, max: 10KiB}", "`min` must not exceed `max`");
  expect_refused("ecn: {min: 10KiB, max: 20KiB}", "`ecn` needs `rate`: without one nothing waits");
  expect_refused("queue_full: trim", "`queue_full` needs `rate`: without one nothing waits");
  expect_refused("reverse: {ecn: {max: 20KiB}}", "`ecn` needs `rate`");
  expect_refused("burst_loss: {enter: 1%}", "`leave` must be above 0");
  expect_refused("burst_loss: {leave: 1%}", "`enter` must be above 0");
  expect_refused("burst_loss: {enter: 1%, leave: 1%, loss_good: 50%, loss_bad: 10%}",
                 "`loss_good` must not exceed `loss_bad`");
  expect_refused("forward: {rate: 1bps}", "`rate` must be 0 or at least 1kbps");
  expect_refused("packets: 63", "`packets`");
  expect_refused("reorder_timeout: 0", "`reorder_timeout`");
  expect_refused("trim_dscp: 64", "`trim_dscp`");
  expect_refused("delay: 11s", "`delay`");
}

TEST(LinkConfig, RefusesImpossibleEvents) {
  const auto event = [](const std::string& text) { return "events: [{" + text + "}]"; };
  expect_refused(event("do: drop"), "`packet` must be given, or conditions: qpn, psn");
  expect_refused(event("packet: 1, qpn: 2, psn: 3, do: drop"), "`packet` names one packet: leave it or");
  expect_refused(event("packet: 1, psn: 3, do: drop"), "`packet` names one packet: leave it or");
  expect_refused(event("packet: 1, kind: ack, do: drop"), "`packet` names one packet: leave it or");
  expect_refused(event("packet: 1, source: 10.0.0.1, do: drop"), "`packet` names one packet: leave it or");
  expect_refused(event("psn: 2, do: drop"), "`psn` needs `qpn` beside it");
  expect_refused(event("packet: 1, occurrence: 2, do: drop"), "`occurrence` cannot go with `packet`");
  expect_refused(event("packet: 1, opcode: 2, do: drop"), "`packet` names one packet: leave it or");
  expect_refused(event("packet: 1, do: delay"), "`by` must be given");
  expect_refused(event("packet: 1, do: drop, by: 1ms"), "`by` goes with `do: delay` only");
  expect_refused(event("packet: 1, do: drop, packets: 2"), "`packets` goes with `do: reorder` only");
  expect_refused(event("packet: 1, do: drop, copies: 2"), "`copies` goes with `do: duplicate` only");
  expect_refused(event("packet: 1, do: drop, offset: 2"), "`offset` goes with `do: corrupt` only");
  expect_refused(event("packet: 1, do: drop, mask: 2"), "`mask` goes with `do: corrupt` only");
  expect_refused(event("packet: 1, do: corrupt, mask: 2"), "`mask` needs `offset` beside it");
  expect_refused(event("packet: 1, do: duplicate, copies: 17"), "`copies`");
  expect_refused(event("packet: 1, do: explode"), "`do` must be one of drop, delay");
  expect_refused(event("packet: 1, do: drop, icrc: repaired"), "`icrc` goes with `do: corrupt` only");
  expect_refused(event("relative_psn: 2, do: drop"), "`relative_psn` needs `qpn` beside it");
  expect_refused(event("qpn: 1, psn: 2, relative_psn: 2, do: drop"), "`relative_psn` cannot go with `psn`");
  expect_refused(event("qpn: 1, relative_psn: 2, kind: [ack, nak], do: drop"), "`kind` names none");
  expect_refused(event("qpn: 1, relative_psn: 2, opcode: 0x11, do: drop"), "`opcode` is none");
  expect_refused(event("kind: [ack, nack], do: drop"), "`kind` has no word `nack`; known: roce, data");
  expect_refused(event("source: 10.0.0, do: drop"), "`source` must be an IPv4 or IPv6 address");
  expect_refused("match: {destination: host}", "`destination` must be an IPv4 or IPv6 address");
  expect_refused("match: {kind: acks}", "`kind` has no word `acks`");
}

// A fault that says not what it does must not become a loss.
TEST(LinkConfig, WhatAnEventDoesMustBeWritten) {
  expect_refused("events: [{packet: 20}]",
                 "link.yaml:1:10: `do` must be given: one of drop, delay, duplicate, reorder, corrupt, trim, mark");
  nlohmann::ordered_json schema;
  config::FieldsSchema fields(schema, nullptr);
  link::Event().fields(fields);
  EXPECT_EQ(schema["required"].dump(), R"(["do"])");
  EXPECT_FALSE(schema["properties"]["do"].contains("default"));
  for (const config::OptionRow& row : config::describe(link_component(), test::in_tree()))
    if (row.name == "events[].do") {
      EXPECT_EQ(row.fallback, "required");
    }
}

TEST(LinkConfig, EventsThatEveryPacketIsHeldAgainstAreFew) {
  const auto events = [](unsigned count) {
    std::string text = "events: [";
    for (unsigned i = 0; i < count; i++) text += "{kind: ack, occurrence: " + std::to_string(i + 1) + ", do: drop}, ";
    for (unsigned i = 0; i < 100; i++) text += "{qpn: 1, relative_psn: " + std::to_string(i) + ", do: drop}, ";
    return text + "{packet: 1, do: drop}]";
  };
  EXPECT_EQ(read(events(64)).mistakes, "");
  expect_refused(events(65), "`events` has 65 entries without `packet`, `psn` and `relative_psn`; at most 64");
}

TEST(LinkConfig, MatchIsInheritedFieldByField) {
  const Read r = read("{match: {qpn: 7, kind: [data, cnp]}, reverse: {match: {kind: ack, source: fe80::1}}}");
  EXPECT_EQ(r.mistakes, "");
  EXPECT_EQ(r.config.forward.match.kinds(), link::kData | link::kCnp);
  EXPECT_EQ(r.config.reverse.match.qpn, 7);
  EXPECT_EQ(r.config.reverse.match.kinds(), link::kAck);
  EXPECT_EQ(r.config.reverse.match.source, roce::parse_address("fe80::1"));
}

TEST(LinkConfig, EveryExampleIsRight) {
  const Component type = link_component();
  unsigned count = 0;
  for (const Example* example = type.examples; example->title; example++, count++)
    EXPECT_EQ(read(example->yaml).mistakes, "") << example->title;
  EXPECT_GE(count, 5u);
}

}  // namespace
}  // namespace rocebox
