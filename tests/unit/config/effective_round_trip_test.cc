// SPDX-License-Identifier: BSD-3-Clause
// Configurations whose effective configuration does not load to the same one (found by config_fuzz and by reading).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

// What is wrong with the text, where it is no configuration. `file`: files that it names lie beside that one.
std::string expect_fixpoint(const std::string& text, const std::string& file = {}) {
  Registry registry;
  const std::string name = file.empty() ? "f.yaml" : file;
  Mistakes mistakes(name), again(name);
  const RunConfig config = load_text(text, name, registry, mistakes, !file.empty());
  if (!mistakes.none()) return mistakes.text();  // refused: also an answer
  const std::string once = effective_yaml(config);
  const std::string twice = effective_yaml(load_text(once, name, registry, again, !file.empty()));
  EXPECT_TRUE(again.none()) << again.text() << "\n" << once;
  if (again.none()) {
    EXPECT_EQ(once, twice);
  }
  return {};
}

TEST(EffectiveRoundTrip, NamesOfDevicesAreNeitherCheckedNorQuoted) {
  for (const char* name : {"'a: b'", "'#a'", "'- a'", "'null'", "'&a'", "\"a\\nb\"", "''"}) {
    SCOPED_TRACE(name);
    expect_fixpoint("devices: {" + std::string(name) + ": {path: x <-> inspect <-> y}}\n");
  }
}

TEST(EffectiveRoundTrip, TextsThatReadAsNothing) {
  expect_fixpoint("devices: {a: {path: x <-> inspect <-> y}}\nports: {x: {pcap: {out: 'null'}}}\n");
}

TEST(EffectiveRoundTrip, TextsOfSeveralLines) {
  expect_fixpoint("devices: {a: {path: x <-> inspect <-> y}}\nports: {x: {pcap: {in: f, filter: \"arp\\nor ip\"}}}\n");
}

TEST(EffectiveRoundTrip, ALinkWithDefaults) {
  expect_fixpoint(
      "devices: {a: {path: x <-> inspect <-> y}, b: {path: p <-> inspect <-> q}}\nlinks: {wan: {between: [y, p]}}\n");
}

// What one option takes the meaning of has a value nevertheless, and may not stand beside it.
TEST(EffectiveRoundTrip, OptionsThatExcludeEachOther) {
  for (const char* text : {
           "devices: {a: {nic: {address: 10.0.0.1, scheduler: {policy: round_robin}}}}\n",
           "devices: {a: {nic: {address: 10.0.0.1, scheduler: {groups: [{priority: 1, strict: true}]}}}}\n",
           "devices: {a: {nic: {address: 10.0.0.1, rate: 1Gbps, congestion_control: dcqcn}}}\n",
           "devices: {a: {nic: {address: 10.0.0.1, rate: 1Gbps, dcqcn: {enabled: true}}}}\n",
           "topology: {back_to_back: {}, hosts: {nic: {}}}\nworkloads: {w: {type: write_bw, hosts: [h0, h1], duration: "
           "1ms}}\n",
           "topology: {fat_tree: {radix: 4, hosts: 8}, hosts: {nic: {}}, switches: {switch: {}}}\n",
           "topology: {fat_tree: {radix: 4, hosts: 16}, hosts: {nic: {}}, switches: {switch: {}}}\n",
           "devices: {a: {path: x <-> link <-> y, kernels: {link: {events: [{packet: 3, do: drop}]}}}}\n",
           "devices: {a: {path: x <-> link <-> y, kernels: {link: {ecn: {}}}}}\n",
           "devices: {a: {path: x <-> link <-> y, kernels: {link: {rate: 1Gbps, queue: 1MiB, ecn: {max: 10kB}, "
           "forward: {ecn: {max: 0B}}}}}}\n",
           "devices: {a: {switch: {ports: [p, q], traffic_manager: {rate: 1Gbps, ecn: {max: 0B}}}}}\n",
           "devices: {a: {switch: {ports: [p, q], traffic_manager: {rate: 1Gbps, pfc: {classes: []}}}}}\n",
       }) {
    SCOPED_TRACE(text);
    EXPECT_EQ(expect_fixpoint(text), "");
  }
}

// Its presence alone would change what runs.
TEST(EffectiveRoundTrip, WhatIsNotGivenAndHasAMeaningOfItsOwnIsLeftOut) {
  Registry registry;
  Mistakes mistakes("f.yaml");
  const std::string text =
      "topology: {back_to_back: {}, hosts: {nic: {}}}\nworkloads: {w: {type: write_bw, duration: 1ms}}\n";
  const std::string once = effective_yaml(load_text(text, "f.yaml", registry, mistakes, false));
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  EXPECT_NE(once.find("duration:"), std::string::npos);
  EXPECT_EQ(once.find("iters:"), std::string::npos);
}

// A direction of its own without faults is not one that has those of both.
TEST(EffectiveRoundTrip, AListThatIsGivenAndEmptyStaysSo) {
  Registry registry;
  const auto once = [&registry](const std::string& forward) {
    Mistakes mistakes("f.yaml");
    const std::string text =
        "devices: {a: {path: x <-> link <-> y, kernels: {link: {events: [{packet: 9, do: drop}], forward: {" + forward +
        "}}}}}\n";
    return effective_yaml(load_text(text, "f.yaml", registry, mistakes, false));
  };
  EXPECT_NE(once("delay: 1ms, events: []"), once("delay: 1ms"));
  EXPECT_EQ(expect_fixpoint(once("events: []")), "");
}

TEST(EffectiveRoundTrip, ConfigurationsThatAreShipped) {
  int loaded = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(ROCEBOX_TESTS "/../configs")) {
    if (file.path().extension() != ".yaml" || file.path().parent_path().filename() == "lab") continue;
    SCOPED_TRACE(file.path());
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    EXPECT_EQ(expect_fixpoint(text.str(), file.path()), "");
    loaded++;
  }
  EXPECT_GT(loaded, 30);
}

}  // namespace
}  // namespace rocebox::config
