// SPDX-License-Identifier: BSD-3-Clause
// One line of arguments is the configuration that a file with the same in it would be.
#include "runtime/config/one_line.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rocebox::config {
namespace {

Registry& registry() {
  static Registry all;
  return all;
}

OneLine line(std::vector<std::string> between, std::vector<std::string> from, const std::string& words) {
  OneLine result{std::move(between), std::move(from), {}};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) result.words.push_back(word);
  return result;
}

std::string as_yaml(const std::string& text) {
  Mistakes mistakes("f");
  const RunConfig config = load_text(text, "f", registry(), mistakes, false);
  EXPECT_EQ(mistakes.text(), "");
  return effective_yaml(config);
}

std::string refusal(const OneLine& one) {
  try {
    load_one_line(one, registry());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(OneLine, IsWhatAFileWouldBe) {
  const std::string live = "ports: {a: {af_packet: eth0}, b: {af_packet: eth1}}\n";
  EXPECT_EQ(effective_yaml(load_one_line(line({"eth0", "eth1"}, {}, "link loss=1% delay=5ms"), registry())),
            as_yaml("devices: {bump: {path: a <-> link <-> b, kernels: {link: {loss: 1%, delay: 5ms}}}}\n" + live));
  EXPECT_EQ(effective_yaml(load_one_line(line({"eth0", "{tap: tap0, mtu: 9000}"}, {},
                                              "inspect link forward.loss=1% reverse.delay=2ms lowar r=8 link"),
                                         registry())),
            as_yaml("devices: {bump: {path: a <-> inspect <-> link <-> lowar <-> link_2 <-> b, kernels: {inspect: {}, "
                    "link: {forward: {loss: 1%}, reverse: {delay: 2ms}}, lowar: {r: 8}, link_2: {type: link}}}}\n"
                    "ports: {a: {af_packet: eth0}, b: {tap: tap0, mtu: 9000}}\n"));
  EXPECT_EQ(effective_yaml(load_one_line(line({"eth0", "eth1"}, {}, ""), registry())),
            as_yaml("devices: {bump: {path: a <-> b}}\n" + live))
      << "a wire";
  const RunConfig from = load_one_line(line({}, {"x.pcap", "-"}, "inspect"), registry());
  EXPECT_EQ(effective_yaml(from), as_yaml("devices: {bump: {path: a <-> inspect <-> b, kernels: {inspect: {}}}}\n"
                                          "ports: {a: {pcap: {in: [x.pcap, '-']}}}\n"));
  EXPECT_EQ(from.origin, ConfigOrigin::kArguments);
}

TEST(OneLine, AMistakeNamesItsWord) {
  const std::vector<std::string> ports = {"eth0", "eth1"};
  EXPECT_EQ(refusal(line(ports, {}, "lnk loss=1%")),
            "command line: `lnk`: there is no kernel `lnk`; did you mean `link`?");
  EXPECT_NE(refusal(line(ports, {}, "link dely=5ms")).find("command line: `dely=5ms`: "), std::string::npos);
  EXPECT_NE(refusal(line(ports, {}, "link dely=5ms")).find("did you mean `delay`?"), std::string::npos);
  EXPECT_TRUE(
      refusal(line(ports, {}, "inspect link loss=200%")).starts_with("command line: `loss=200%`: `loss` must be"));
  EXPECT_NE(refusal(line(ports, {}, "loss=1% link")).find("`loss` is an option, and no kernel stands before it"),
            std::string::npos);
  EXPECT_NE(refusal(line(ports, {}, "link loss=1% loss=2%")).find("`loss=2%`: `loss` is given twice"),
            std::string::npos);
  EXPECT_NE(refusal(line(ports, {}, "link loss=1% loss.x=2%")).find("`loss` has a value already"), std::string::npos);
  EXPECT_NE(refusal(line(ports, {}, "link events=[{]")).find("command line: `events=[{]`: "), std::string::npos);
  EXPECT_EQ(refusal(line(ports, {}, "link events=[{do:drop,do:mark,psn:1,psn:2}]")).find("\\x0a"), std::string::npos)
      << "a line for each";
  EXPECT_NE(refusal(line({"{tapp: x}", "eth1"}, {}, "")).find("command line: `--between {tapp: x}`: "),
            std::string::npos);
  const std::string two = refusal(line(ports, {}, "link loss=2 delay=x"));
  EXPECT_NE(two.find("`loss=2`"), std::string::npos) << "every mistake is told";
  EXPECT_NE(two.find("`delay=x`"), std::string::npos);
}

// Places of what was good so far, and is a mistake further on: an interface that is not there, or is there twice.
TEST(OneLine, APlaceIsItsWord) {
  EXPECT_EQ(refusal(line({"eth0", "eth0"}, {}, "link")),
            "command line: `--between eth0`: port `bump.b`: interface `eth0` is bound to port `bump.a` already "
            "(`--between eth0`); give each port one of its own");
  RunConfig config = load_one_line(line({"eth0", "{tap: tap0}"}, {}, "link loss=1%"), registry());
  ASSERT_EQ(config.live_ports.size(), 2u);
  EXPECT_EQ(config.bound_by(config.live_ports[0].place), "command line: `--between eth0`");
  EXPECT_EQ(config.bound_by(config.live_ports[1].place), "command line: `--between {tap: tap0}`");
  EXPECT_EQ(config.place_text({4, 6}), "command line: `loss=1%`");
  bind_port(config, "a={af_packet: tap0}");
  EXPECT_EQ(config.bound_by(config.live_ports[1].place), "command line: --port");
  Mistakes mistakes(config.file, config.words);
  refuse_shared_interfaces(config, mistakes);
  EXPECT_NE(mistakes.text().find("interface `tap0` is bound to port `bump.b` already (`--between {tap: tap0}`)"),
            std::string::npos)
      << mistakes.text();
}

}  // namespace
}  // namespace rocebox::config
