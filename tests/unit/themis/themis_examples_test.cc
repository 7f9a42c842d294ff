// SPDX-License-Identifier: BSD-3-Clause
// The registers of Themis against the worked examples in themis_examples.json, which the independent model obeys too.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/themis/themis_rig.h"

namespace rocebox::themis {
namespace {

using Json = nlohmann::json;
using Kind = RigEvent::Kind;

const Json& examples() {
  static const Json json = [] {
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "themis_examples.json");
    return Json::parse(file);
  }();
  return json;
}

RigConfig config_of(const Json& example, bool strict) {
  RigConfig config;
  config.strict = strict;
  config.paths = example.at("paths");
  config.window = example.value("window", 8);
  config.first_psn = example.value("first_psn", 0);
  config.ooo_threshold = example.value("ooo_threshold", 0);
  config.base = example.value("base", 0);
  config.avoidance_window = example.value("avoidance_window", 1);
  return config;
}

RigEvent event_of(const Json& json, bool source) {
  const std::string name = json.at("do");
  RigEvent event{source ? Kind::kSourceData : Kind::kData};
  if (name == "ack") event.kind = Kind::kAck;
  if (name == "nack") event.kind = source ? Kind::kSourceNack : Kind::kNack;
  if (name == "other_nak") event.kind = Kind::kOtherNak;
  if (name == "age") event.kind = Kind::kAge;
  if (name == "paths") event.kind = Kind::kPaths;
  event.psn = json.value(name == "paths" ? "paths" : "psn", 0u);
  event.sprayed = json.value("sprayed", true);
  event.width = json.value("width", 1u);
  event.avoid = json.value("avoid", false);
  event.draw = json.value("draw", 0u);
  return event;
}

void expect_state(Rig& rig, const Json& state, const std::string& place) {
  for (const auto& [name, value] : state.items()) {
    if (name == "start")
      EXPECT_EQ(rig.start(), value.get<std::uint32_t>()) << place;
    else if (name == "bits")
      EXPECT_EQ(rig.bits(), value.get<std::string>()) << place;
    else if (name == "bases")
      EXPECT_EQ(rig.bases(), value.get<std::vector<int>>()) << place;
    else
      ADD_FAILURE() << "no such state: " << name;
  }
}

void expect_no_violations(const Rig& rig) {
  for (const auto& violation : rig.violations()) ADD_FAILURE() << violation.text;
}

// An event; `advance` is one packet each `by` PSNs, and its ACK, `times` of them.
std::string destination_event(Rig& rig, const Json& json) {
  if (json.at("do") != "advance") return rig.event(event_of(json, false));
  std::string said;
  std::uint32_t psn = json.at("psn");
  for (int i = json.at("times"); i > 0; i--, psn += json.at("by").get<std::uint32_t>())
    for (const Kind kind : {Kind::kData, Kind::kAck}) said += rig.event({kind, psn});
  return said;
}

class ThemisExamples : public testing::TestWithParam<bool> {};

TEST_P(ThemisExamples, Destination) {
  ASSERT_GE(examples().at("destination").size(), 15u);
  for (const Json& example : examples().at("destination")) {
    Rig rig(config_of(example, GetParam()));
    for (const Json& event : example.at("events")) {
      const std::string place = example.at("name").get<std::string>() + ": " + event.dump();
      const Json expected = event.value("expect", Json::array());
      ASSERT_LE(expected.size(), 1u);
      for (int i = event.value("repeat", 1); i > 0; i--)
        EXPECT_EQ(destination_event(rig, event), expected.empty() ? "" : expected[0].get<std::string>()) << place;
      if (event.contains("state")) expect_state(rig, event.at("state"), place);
    }
    expect_no_violations(rig);
  }
}

TEST_P(ThemisExamples, Source) {
  ASSERT_FALSE(examples().at("source").empty());
  for (const Json& example : examples().at("source")) {
    Rig rig(config_of(example, GetParam()));
    for (const Json& event : example.at("events")) {
      const std::string said = rig.event(event_of(event, true));
      if (event.contains("path"))
        EXPECT_EQ(said, "path " + event.at("path").dump()) << example.at("name") << event;
      else
        EXPECT_EQ(said, "");
    }
    expect_no_violations(rig);
  }
}

// The paper's letter is an option.
TEST_P(ThemisExamples, SourceWithoutReroutingTimeouts) {
  int judged = 0;
  for (const Json& example : examples().at("source")) {
    if (example.value("without", Json()) != Json::array({"reroute_timeouts"})) continue;
    RigConfig config = config_of(example, GetParam());
    config.reroute_timeouts = false;
    Rig rig(config);
    for (const Json& event : example.at("events")) {
      const std::string said = rig.event(event_of(event, true));
      if (!event.contains("path")) continue;
      const Json& path = event.contains("otherwise") ? event.at("otherwise") : event.at("path");
      EXPECT_EQ(said, "path " + path.dump()) << example.at("name") << event;
      judged += event.contains("otherwise");
    }
  }
  EXPECT_GE(judged, 2);
}

TEST_P(ThemisExamples, Spraying) {
  ASSERT_FALSE(examples().at("spraying").empty());
  for (const Json& example : examples().at("spraying")) {
    Rig rig(config_of(example, GetParam()));
    for (std::size_t i = 0; i < example.at("psns").size(); i++)
      EXPECT_EQ(rig.event({Kind::kSourceData, example["psns"][i]}), "path " + example["path"][i].dump()) << example;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ThemisExamples, testing::Bool(),
                         [](const auto& param) { return param.param ? "Strict" : "Fast"; });

TEST(Modulo, IsTheRemainder) {
  for (std::uint32_t n : {1u, 2u, 3u, 5u, 7u, 8u, 100u, 128u, 255u, 256u})
    for (std::uint32_t value : {0u, 1u, n - 1, n, n + 1, 16777215u, 16777216u - n, 0x80000000u, 0xFFFFFFFFu})
      EXPECT_EQ(Modulo(n)(value), value % n) << value << " mod " << n;
}

// Bytes of one QP in the registers of tables 3 and 4, by name; what our mends add stands in `more`.
TEST(ThemisLayout, TakesWhatThePaperSaysAndLittleMore) {
  const Json& memory = examples().at("memory");
  RigConfig config;
  config.paths = memory["reference"]["paths"];
  config.window = memory["reference"]["tx_window"];
  Rig rig(config);
  std::uint64_t source = 0, destination = 0, more = 0;
  for (const switch_model::Resource& r : rig.layout().resources()) {
    const std::uint64_t bytes = r.per_flow * r.value_bits / 8;
    const bool ingress = r.at.gress == Gress::kIngress;
    const Json& table = memory[ingress ? "source_bytes" : "destination_bytes"];
    if (!table.contains(r.name)) {
      more += bytes;
      continue;
    }
    EXPECT_EQ(bytes, table[r.name].get<std::uint64_t>()) << r.name;
    (ingress ? source : destination) += bytes;
  }
  EXPECT_EQ(source, memory["source_total_bytes"].get<std::uint64_t>());
  EXPECT_EQ(destination, memory["destination_total_bytes"].get<std::uint64_t>());
  EXPECT_EQ(more, 4u + 25u);
}

}  // namespace
}  // namespace rocebox::themis
