// SPDX-License-Identifier: BSD-3-Clause
// Options of a switch that each could be, and together mean nothing: refused before anything runs, with place and mend.
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::switch_model::impossible_options_test {  // a room of its own: its names are other tests', too
namespace {

struct Refused {
  std::string yaml, place, why;
};

void expect_refused(const std::vector<Refused>& rows) {
  for (const auto& [yaml, place, why] : rows) {
    const std::string text = test::switch_mistakes(yaml);
    EXPECT_TRUE(text.starts_with("switch:" + place + ": ")) << yaml << "\n" << text;
    EXPECT_NE(text.find(why), std::string::npos) << yaml << "\n" << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 0) << "one message: " << text;
  }
}

TEST(ImpossibleOptions, QueuesThatCannotDoWhatTheyAreFor) {
  const std::string head = "traffic_manager: ";
  expect_refused({
      {head + "{rate: 1Gbps, buffer: 0B}", "1:40", "`buffer` must be"},
      {head + "{buffer: 64KiB, pfc: {classes: [3], xoff: 64KiB, xon: 1KiB}}", "1:60",
       "`xoff` must be below `buffer` (65536 bytes)"},
      {head + "{packets: 64, pfc: {classes: [3], xoff: 576KiB}}", "1:58",
       "`xoff` is never exceeded: `packets: 64` hold 589824 bytes at most"},
      {head + "{pfc: {classes: [3, 3]}}", "1:34", "`classes` names 3 twice"},
      {head + "{pfc: {xoff: 1KiB, xon: 0B}}", "1:31", "`xoff` is of no use without `classes`"},
      {head + "{pfc: {classes: [3], xoff: 1KiB, xon: 2KiB}}", "1:56", "`xon` must not exceed `xoff`"},
      {head + "{rate: 1Gbps, ecn: {min: 1KiB}}", "1:37", "`max` must be given when the group is used"},
      {head + "{rate: 1Gbps, buffer: 4KiB, ecn: {min: 4KiB, max: 5KiB}}", "1:57",
       "`min` must be below `buffer` (4096 bytes), or nothing is marked"},
      {head + "{ecn: {min: 1KiB, max: 2KiB}}", "1:24", "`ecn` needs `rate`, or lossless classes"},
      {head + "{rates: [{rate: 1Gbps}]}", "1:27", "`ports` must name one at least"},
      {head + "{rates: [{ports: [p1], rate: 1Gbps}, {ports: [p0, p1], rate: 2Gbps}]}", "1:26",
       "`rates` gives port `p1` two rates"},
  });
  EXPECT_EQ(test::switch_mistakes(head + "{buffer: 64KiB, pfc: {classes: [3], xoff: 65535B, xon: 0B}}"), "");
  EXPECT_EQ(test::switch_mistakes(head + "{rates: [{ports: [p1], rate: 1Gbps}], ecn: {min: 1KiB, max: 2KiB}}"), "");
}

TEST(ImpossibleOptions, PortsProgramsAndGroups) {
  expect_refused({
      {"ports: [a, b]\npipes: 3", "2:8", "`pipes` is more than the 2 ports"},
      {"programs: []", "1:11", "`programs` must name one at least"},
      {"acl: {default: drop}", "1:6", "`acl` has options, and `programs: [forward]` does not name it"},
      {"multicast_groups: [{group: 3}]", "1:20", "`ports` must name one at least"},
      {"multicast_groups: [{group: 3, ports: [p1, p1]}]", "1:38", "`ports` names `p1` twice"},
  });
}

TEST(ImpossibleOptions, Forwarding) {
  const std::string macs = "forward: {macs: [", router = "forward: {router_mac: 02:00:00:00:00:01, routes: [";
  expect_refused({
      {macs + "{mac: 02:00:00:00:00:02, ports: [p1, p1]}]}", "1:50", "`ports` names `p1` twice"},
      {macs + "{mac: 02:00:00:00:00:02, group: 7}]}", "1:50", "7 is not in `multicast_groups:` of the switch"},
      {"forward: {router_mac: '01:00:00:00:00:01'}", "1:23", "`router_mac` must be the address of one station"},
      {router + "{prefix: 10.0.0.0/8, via: [{port: p1, mac: '03:00:00:00:00:01'}]}]}", "1:94",
       "`mac` must be the address of one station"},
      {router + "{prefix: 10.0.0.0/8, via: [{port: p1, mac: 02:00:00:00:00:09}, {port: p1, mac: 02:00:00:00:00:09}]}]}",
       "1:77", "`via` names port `p1` with `02:00:00:00:00:09` twice"},
  });
  EXPECT_EQ(test::switch_mistakes("multicast_groups: [{group: 7, ports: [p0]}]\n" + macs +
                                  "{mac: 02:00:00:00:00:02, group: 7}]}"),
            "");
}

TEST(ImpossibleOptions, Meters) {
  expect_refused(
      {{"programs: [acl]\nacl: {rules: [{meter: {committed: 1Mbps, committed_burst: 59B, peak_burst: 60B}}]}", "2:59",
        "`committed_burst` must be as long as a packet, 60B at least"}});
}

// Two equal ports to the fabric, NICs at p0 and p1.
std::string themis(const std::string& options) {
  return "programs: [forward, themis]\n"
         "forward: {macs: [{mac: 02:00:00:00:00:02, ports: [p2, p3]}]}\n"
         "themis: {" +
         options + "}";
}

TEST(ImpossibleOptions, SprayingThatSpraysNothing) {
  expect_refused({
      {themis("hosts: [p0, p1], paths: 3"), "3:34",
       "`paths` is 3, and no destination has so many equal ports, so that nothing would be sprayed; "
       "`02:00:00:00:00:02` has 2: p2, p3"},
      {themis("hosts: [p0, p1, p2, p3]"), "3:17", "`hosts` names all ports of the switch"},
      {themis("hosts: [p0, p0]"), "3:17", "`hosts` names `p0` twice"},
      {themis("hosts: [p0], operations: []"), "3:35", "`operations` must name one at least"},
      {themis("hosts: [p0], operations: [write, write]"), "3:35", "`operations` names `write` twice"},
  });
  for (const char* good : {"hosts: [p0, p1], paths: 2", "hosts: [p0], spray: off, operations: []",
                           "hosts: [p2, p3], paths: 3"})  // the equal ports are a host's: the other way is not sprayed
    EXPECT_EQ(test::switch_mistakes(themis(good)), "");
}

TEST(ImpossibleOptions, RoutesTooHaveEqualPorts) {
  const std::string yaml =
      "programs: [forward, themis]\n"
      "forward: {router_mac: 02:00:00:00:00:01, routes: [{prefix: 10.0.0.0/8, via: [{port: p1, mac: "
      "02:00:00:00:00:02}, {port: p2, mac: 02:00:00:00:00:03}, {port: p3, mac: 02:00:00:00:00:04}]}]}\n"
      "themis: {hosts: [p0]";
  EXPECT_EQ(test::switch_mistakes(yaml + ", paths: 3}"), "");
  expect_refused({{yaml + ", paths: 2}", "3:30", "`10.0.0.0/8` has 3: p1, p2, p3"}});
}

// The 256th would have the number that says "no port".
TEST(ImpossibleOptions, MorePortsThanThereCanBe) {
  std::string names;
  for (int i = 0; i < 256; i++) names += (i ? ", s" : "s") + std::to_string(i);
  expect_refused({{"ports: [" + names + "]\nforward: {macs: [{mac: 02:00:00:00:00:02, ports: [s255]}]}", "1:8",
                   "`ports` must name 1 to 160 ports, names 256"}});
}

}  // namespace
}  // namespace rocebox::switch_model::impossible_options_test
