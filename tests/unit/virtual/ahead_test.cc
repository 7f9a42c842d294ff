// SPDX-License-Identifier: BSD-3-Clause
// Switches run ahead, and hosts where they act alone, and hand packets over as they begin to send them, and lines count
// later: what a run reports is the same, at every sample and wherever it ends; but for the last sample, in which
// devices may be ahead of an end that nobody knew of. A schedule, whatever it says, makes all wait for its time.
#include <random>

#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::ahead_test {
namespace {

using fabric_test::FabricBox;

std::string later(const std::string& link) {
  return "schedule: {later: {at: 100s, links: {" + link + ": {delay: 2us}}}}\n";
}

std::string fabric(const std::string& switches, const std::string& links, const std::string& workloads,
                   const std::string& sim) {
  return "topology:\n"
         "  leaf_spine: {leaves: 3, spines: 2, hosts_per_leaf: 3, host_rate: 100Gbps, spine_rate: 40Gbps}\n"
         "  hosts: {nic: {header_only: true, ack_every: 1, congestion_control: dcqcn}}\n"
         "  switches: {switch: {" +
         switches + "}}\n  links: {" + links + "}\nworkloads:\n" + workloads + "sim: {" + sim + "}\n";
}

// Takes the last value off each of its rows.
void shorten(Json& series) {
  if (series.is_object()) {
    for (Json& part : series) shorten(part);
  } else if (series.is_array() && !series.empty()) {
    series.erase(series.size() - 1);
  }
}

// When all has finished what runs ahead has sent more already than was sent up to then.
void expect_more_sent(const Json& ahead, const Json& in_time) {
  ASSERT_EQ(ahead.size(), in_time.size());
  for (std::size_t i = 0; i < ahead.size(); i++) {
    EXPECT_EQ(ahead[i]["from"], in_time[i]["from"]);
    EXPECT_GE(ahead[i]["packets"], in_time[i]["packets"]) << ahead[i]["from"];
    EXPECT_GE(ahead[i]["bytes"], in_time[i]["bytes"]) << ahead[i]["from"];
  }
}

void expect_same(const std::string& yaml, const std::string& link = "leaf0_spine0") {
  SCOPED_TRACE(yaml);
  FabricBox ahead(yaml), in_time(yaml + later(link));
  ahead.run();
  in_time.run();
  ASSERT_GT(ahead.report["utilisation"].size(), 0u);
  if (ahead.report["run"]["end"] == "all workloads had finished") {
    expect_more_sent(ahead.report["utilisation"], in_time.report["utilisation"]);
    for (Json* report : {&ahead.report, &in_time.report}) {
      shorten((*report)["series"]);
      report->erase("utilisation");
    }
  }
  // The order within objects does not count: rows of a series stand in the order in which they first had something to
  // tell.
  for (const char* part : {"workloads", "goodput", "series", "utilisation", "devices", "links", "hash"})
    EXPECT_EQ(Json::diff(ahead.report[part], in_time.report[part]), Json::array()) << part;
  for (const char* word : {"span_ns", "end", "packets_out", "held_at_end"})
    EXPECT_EQ(ahead.report["run"][word], in_time.report["run"][word]) << word;
  EXPECT_GT(ahead.report["run"]["events"], 0);
}

const std::string kWorkloads =
    "  permutation: {size: 40KiB, shift: 3, timeout: 16}\n"
    "  incast: {size: 30KiB, start: 3us, timeout: 16}\n";

TEST(Ahead, EverySampleIsTheSame) {
  expect_same(fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, "sample: 700ns"));
  expect_same(fabric("traffic_manager: {buffer: 60KiB, ecn: {min: 4KiB, max: 40KiB, probability: 50%}}", "", kWorkloads,
                     "sample: 900ns"));
}

TEST(Ahead, SoItIsWithLossWithPausesAndWithOthersBeside) {
  expect_same(fabric("traffic_manager: {buffer: 1MiB}", "loss: 1%", kWorkloads, "sample: 900ns"));
  expect_same(fabric("traffic_manager: {buffer: 1MiB, pfc: {classes: [0], xoff: 20KiB, xon: 10KiB}}", "", kWorkloads,
                     "sample: 900ns"));
  expect_same(fabric("forward: {balance: least_queue}", "", kWorkloads, "sample: 900ns"));
}

TEST(Ahead, WhereverTheRunEnds) {
  for (const char* time : {"5us", "7777ns", "10us", "12345ns", "20us"})
    expect_same(fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, std::string("sample: 1us, time: ") + time));
}

// Shapes, delays, queues and workloads at random, some of which wait for others.
TEST(Ahead, WhateverTheNetwork) {
  std::mt19937 draw(7);
  const auto one_of = [&](std::initializer_list<std::string> words) { return words.begin()[draw() % words.size()]; };
  for (int network = 0; network < 16; network++) {
    std::string yaml = "topology:\n  ";
    yaml += one_of({"leaf_spine: {leaves: 2, spines: 3, hosts_per_leaf: 3, spine_rate: 25Gbps, spine_delay: 700ns",
                    "fat_tree: {k: 4", "dumbbell: {hosts_per_side: 4, bottleneck_rate: 40Gbps"});
    yaml += ", host_rate: 40Gbps, host_delay: " + one_of({"1us", "300ns", "2us"}) + "}\n";
    yaml += "  hosts: {nic: {header_only: true, congestion_control: " + one_of({"none", "dcqcn"});
    yaml += ", recovery: " + one_of({"go_back_n", "selective", "rnic_sr"}) + "}}\n";
    yaml += "  switches: {switch: {forward: {balance: " + one_of({"flow", "random", "flowlet", "least_queue"});
    yaml += "}, traffic_manager: {buffer: " + one_of({"1MiB", "50KiB"});
    yaml += one_of({"", ", ecn: {min: 4KiB, max: 40KiB, probability: 30%}"}) + "}}}\nworkloads:\n";
    const std::string first = one_of({"all_reduce", "all_to_all", "permutation"});
    yaml += "  " + first + ": {size: " + (first == "permutation" ? "400KiB" : "50KiB") + ", timeout: 6}\n";
    yaml += one_of({"", "  incast: {size: 20KiB, timeout: 6, start: 9us}\n",
                    "  last: {type: permutation, size: 9KiB, shift: 2, timeout: 6, after: [" + first + "]}\n"});
    const bool is_dumbbell = yaml.find("dumbbell") != std::string::npos;
    const bool is_tree = yaml.find("fat_tree") != std::string::npos;
    expect_same(yaml + "sim: {sample: 2us}\n", is_dumbbell ? "left_right"
                                               : is_tree   ? "pod0_edge0_pod0_agg0"
                                                           : "leaf0_spine0");
  }
}

// Turns end where a sample is taken; hosts are not ahead of the end that one in the background is cut off at.
TEST(Ahead, WhateverIsSampled) {
  for (const char* more : {"", "  back: {type: permutation, size: 90KiB, shift: 4, background: true}\n",
                           "  back: {type: permutation, size: 90KiB, background: true, start: 45us}\n"}) {
    const std::string workloads = std::string("  permutation: {size: 400KiB, shift: 3, timeout: 16}\n") + more;
    FabricBox often(fabric("traffic_manager: {buffer: 8MiB}", "", workloads, "sample: 777ns")),
        once(fabric("traffic_manager: {buffer: 8MiB}", "", workloads, "sample: 1s"));
    for (FabricBox* box : {&often, &once}) box->run();
    EXPECT_EQ(often.report["run"]["span_ns"], once.report["run"]["span_ns"]) << more;
    EXPECT_EQ(often.report["run"]["end"], "all workloads had finished");
    EXPECT_EQ(often.report["workloads"], once.report["workloads"]) << more;
    if (*more) continue;  // what is cut off is cut where switches are ahead
    EXPECT_EQ(often.report["hash"], once.report["hash"]);
  }
}

// A line that is full decides for itself, and from then on devices wait for it.
TEST(Ahead, WhereALineHasNoRoomNothingIsLostUnseen) {
  const std::string yaml =
      "topology:\n  dumbbell: {hosts_per_side: 2, bottleneck_rate: 400Gbps, bottleneck_delay: 20ms, host_rate: "
      "100Gbps}\n"
      "  hosts: {nic: {header_only: true, recovery: selective, window: 20000}}\n"
      "  switches: {switch: {traffic_manager: {buffer: 32MiB}}}\n  links: {packets: 4096}\n"
      "workloads: {permutation: {size: 24MiB, shift: 2, timeout: 16}}\n";
  FabricBox ahead(yaml), again(yaml), in_time(yaml + later("left_right"));
  for (FabricBox* box : {&ahead, &again, &in_time}) box->run();
  EXPECT_GT(ahead.link("left_right", "forward_drop_held_full"), 1000u);
  EXPECT_EQ(ahead.link("left_right", "forward_packets"),
            ahead.link("left_right", "forward_delivered") + ahead.link("left_right", "forward_drop_held_full"));
  EXPECT_EQ(ahead.report["hash"], again.report["hash"]);
  for (const char* part : {"workloads", "links"}) EXPECT_EQ(ahead.report[part], in_time.report[part]) << part;
}

// Room that suffices for what is on the way, and not for what devices put there before others have taken what was due:
// where all of them are ahead by the delay of the very line that has none.
TEST(Ahead, WhereALineOfTheShortestDelayHasNoRoomNothingComesTooLate) {
  for (const char* workload :
       {"permutation: {size: 80MiB, shift: 2, timeout: 20}", "incast: {size: 40MiB, timeout: 20}"}) {
    const std::string yaml =
        std::string(
            "topology:\n  leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 3, host_rate: 100Gbps, spine_rate: "
            "100Gbps, host_delay: 3600us, spine_delay: 3600us}\n"
            "  hosts: {nic: {header_only: true, recovery: selective, window: 60000}}\n"
            "  switches: {switch: {traffic_manager: {buffer: 512MiB, packets: 131072}}}\n"
            "  links: {packets: 12288}\nsim: {sample: 10s}\nworkloads: {") +
        workload + "}\n";
    FabricBox box(yaml), again(yaml);
    for (FabricBox* one : {&box, &again}) one->run();
    EXPECT_EQ(box.report["run"]["end"], "all workloads had finished") << workload;
    EXPECT_EQ(box.report["hash"], again.report["hash"]) << workload;
    for (const auto& link : box.report["links"].items())
      for (const std::string way : {"forward", "reverse"}) {
        const auto count = [&](const char* what) { return box.link(link.key(), way + what); };
        EXPECT_EQ(count("_packets"), count("_delivered") + count("_drop_held_full")) << link.key();
      }
  }
}

TEST(Ahead, ItCostsLess) {
  const std::string yaml = fabric("traffic_manager: {buffer: 1MiB}", "", kWorkloads, "sample: 10us");
  FabricBox ahead(yaml), in_time(yaml + later("leaf0_spine0"));
  EXPECT_LT(ahead.run()["run"]["events"], in_time.run()["run"]["events"]);
}

}  // namespace
}  // namespace rocebox::ahead_test
