// SPDX-License-Identifier: BSD-3-Clause
// What Themis takes of a chip, against the paper's appendix B.
#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/kernel/stimulus.h"
#include "runtime/telemetry/json_report.h"
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

struct Part {
  std::int64_t bytes_per_flow, bytes;
};

std::map<std::string, Part> parts_of(const std::string& yaml) {
  CounterSet stats;
  const auto kernel = test::make_switch(yaml.c_str(), stats);
  rocebox::Json json;
  JsonReport report(json);
  kernel->report(report);
  std::map<std::string, Part> parts;
  for (const rocebox::Json& row : json["layout"]["programs"])
    if (row["program"] == "themis") parts[row["part"]] = {row["bytes_per_flow"], row["bytes"]};
  return parts;
}

// Table 2: 16 NICs of 512 cross-rack QPs, 128 paths, a window of 512. Strict: it fits the chip, or nothing is made.
constexpr const char* kReference =
    "strict: true\npipes: 4\nports: [p0, f0, p1, f1, p2, f2, p3, f3]\nprograms: [forward, themis]\n"
    "themis: {hosts: [p0, p1, p2, p3], paths: 128, qps: 8192, window: 512}\n";

TEST(ThemisResources, Tables2To4) {
  const std::map<std::string, Part> parts = parts_of(kReference);
  ASSERT_EQ(parts.size(), 4u);
  constexpr std::int64_t kQps = 16 * 512;
  const Part &source = parts.at(kPartSource), &destination = parts.at(kPartDestination);
  EXPECT_EQ(source.bytes_per_flow, 516);
  EXPECT_EQ(destination.bytes_per_flow, 661);
  EXPECT_EQ(source.bytes, 516 * kQps);
  EXPECT_EQ(destination.bytes, 661 * kQps);
  EXPECT_EQ(parts.at(kPartPathMap).bytes, 4 * 128 * 2) << "each pipe has one";
  EXPECT_NEAR(static_cast<double>(source.bytes + destination.bytes + parts.at(kPartPathMap).bytes), 9.7e6, 0.1e6);
}

// Table 2's 16 NICs on a ToR of 32 ports, eight in each of four pipes: `hosts` says where they are. A pipe's registers
// are as large as the largest share needs, so what the NICs' places cost shows in all four.
std::int64_t bytes_with_nics_at(const std::vector<int>& nics) {
  std::string ports, hosts;
  for (int port = 0; port < 32; port++) ports += (port ? ", p" : "p") + std::to_string(port);
  for (const int port : nics) hosts += (hosts.empty() ? "p" : ", p") + std::to_string(port);
  std::string yaml = kReference;
  yaml.replace(yaml.find("p0, p1, p2, p3"), 14, hosts);
  const std::size_t written = yaml.find("ports: [");
  yaml.replace(written, yaml.find('\n', written) - written, "ports: [" + ports + "]");
  yaml += "profile: {stages: 40}\n";  // it need not fit a chip
  const std::map<std::string, Part> parts = parts_of(yaml);
  // One PathMap, as the paper counts it.
  return parts.at(kPartSource).bytes + parts.at(kPartDestination).bytes + parts.at(kPartPathMap).bytes / 4;
}

TEST(ThemisResources, WhereThe16NicsAreDecides) {
  constexpr std::int64_t kPaper = 256 + (516 + 661) * 16 * 512;
  static_assert(kPaper == 9'642'240);
  EXPECT_EQ(bytes_with_nics_at({0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}), kPaper) << "four a pipe";
  EXPECT_EQ(bytes_with_nics_at({0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}), kPaper) << "every other";
  std::vector<int> in_a_row(16);
  std::iota(in_a_row.begin(), in_a_row.end(), 0);
  EXPECT_EQ(bytes_with_nics_at(in_a_row), 256 + 2 * (kPaper - 256)) << "all in two pipes: 19.3 MB";
  EXPECT_NEAR(static_cast<double>(bytes_with_nics_at(in_a_row)), 19.3e6, 0.05e6);
}

// The NICs' ports share the slots, wherever they are: a chip of which one pipe has all of them needs all there.
TEST(ThemisResources, SlotsAreWhereTheNicsAre) {
  for (const auto& [ports, slots] : {std::pair{"[p0]", 8u}, {"[p0, p1]", 4u}, {"[p0, p1, p3]", 3u}}) {
    Tor tor =
        Tor::with("pipes: 4\nprograms: [forward, themis]\nthemis: {paths: 1, qps: 8, hosts: " + std::string(ports) +
                  ", connections: [" +
                  [] {
                    std::string rows;
                    for (int i = 0; i < 8; i++)
                      rows += "{local: 10.0.0.1, local_qpn: " + std::to_string(16 + i) +
                              ", remote: 10.0.1.1, remote_qpn: " + std::to_string(16 + i) + "},";
                    return rows;
                  }() +
                  "]}\nforward: {learning: false, macs: [{mac: 02:00:00:00:00:02, ports: [p2]}]}\n");
    for (std::uint32_t qpn = 16; qpn < 24; qpn++) {
      roce::PacketSpec spec = write(false, 0);
      spec.destination_qp = qpn;
      tor.give(0, spec);
    }
    EXPECT_EQ(tor.count("qps_made"), slots) << ports;
    EXPECT_EQ(tor.count("qp_full"), 8 - slots) << ports;
  }
}

TEST(ThemisResources, WhatDoesNotFitIsRefused) {
  CounterSet stats;
  const std::string more = std::string(kReference) + "profile: {stages: 8}\n";
  EXPECT_THROW(test::make_switch(more.c_str(), stats), ConfigError);
}

TEST(ThemisResources, StimuliReachConnectionsByEachWayOfForwarding) {
  CounterSet stats;
  const auto kernel = test::make_switch(tor_yaml(kConnection).c_str(), stats);
  std::vector<Stimulus> all;
  kernel->stimuli(all);
  for (const bool inbound : {false, true}) {
    const roce::PacketSpec wanted = write(inbound, 0);
    EXPECT_TRUE(std::ranges::any_of(all, [&](const Stimulus& s) {
      return s.destination_qp == wanted.destination_qp && s.underlay.addresses == wanted.underlay.addresses &&
             s.underlay.destination_mac == wanted.underlay.destination_mac;
    })) << inbound;
  }
}

}  // namespace
}  // namespace rocebox::themis
