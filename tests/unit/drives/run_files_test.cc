// SPDX-License-Identifier: BSD-3-Clause
// No output may be what the run is made from, however it is named.
#include "runtime/drives/run_files.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

#include "runtime/capture/output_file.h"
#include "runtime/kernel/kernel.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    for (const char* name : {"c.yaml", "pipe.yaml", "plugin.so", "in.pcap"}) test::write_bytes(folder / name, name);
    config.file = config.path = folder / "c.yaml";
    config.devices.resize(1);
    config.devices[0].name = "d";
    config.devices[0].pipeline = folder / "pipe.yaml";
    config.plugin_files = {folder / "plugin.so"};
    config.captures.push_back({{"d", "a"}, {folder / "in.pcap"}, "", folder / "out.pcap"});
  }
  std::string refusal(const std::string& output) const {
    RunFiles files(config);
    files.writes(output, "the JSON report");
    try {
      files.check();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  test::TemporaryFolder folder;
  config::RunConfig config;
};

TEST_F(RunFilesTest, EveryFileThatARunReadsIsAnInputHoweverItIsNamed) {
  const std::pair<const char*, const char*> inputs[] = {{"c.yaml", "is the configuration"},
                                                        {"pipe.yaml", "is the pipeline of device `d`"},
                                                        {"plugin.so", "is a plugin"},
                                                        {"in.pcap", "is an input of port `d.a`"},
                                                        {"out.pcap", "is the capture of port `d.a`"}};
  for (const auto& [name, what] : inputs) {
    if (std::string(name) != "out.pcap") {
      std::filesystem::remove(folder / "hard");
      std::filesystem::create_hard_link(folder / name, folder / "hard");
      EXPECT_NE(refusal(folder / "hard").find(what), std::string::npos) << name;
    }
    std::filesystem::remove(folder / "soft");
    std::filesystem::create_symlink(name, folder / "soft");
    EXPECT_NE(refusal(folder / "soft").find(what), std::string::npos) << name;
    EXPECT_NE(refusal(folder / "./" + name).find(what), std::string::npos) << name;
    EXPECT_NE(refusal(folder / name).find(what), std::string::npos) << name;
  }
  EXPECT_EQ(refusal(folder / "other.json"), "");
  EXPECT_EQ(refusal("/dev/null"), "");
}

TEST_F(RunFilesTest, WhatDriversReadAndWriteIsAmongThem) {
  config.live_ports.push_back({{"d", "b"}, {}, {}, {}});
  config.live_ports[0].live.devargs = "net_pcap0,rx_pcap=" + (folder / "in.pcap") + ",tx_pcap=" + (folder / "c.yaml");
  EXPECT_NE(refusal("").find("would be what a driver writes and is the configuration"), std::string::npos);
  config.live_ports[0].live.devargs = "net_pcap0,tx_pcap=" + (folder / "x.pcap");
  EXPECT_EQ(refusal(""), "");
  EXPECT_NE(refusal(folder / "x.pcap").find("is what a driver writes"), std::string::npos);
}

TEST_F(RunFilesTest, TheFilesOfAllAppliancesAreOneSet) {
  RunFiles lab;
  lab.reads(folder / "lab.yaml", "the configuration");
  lab.add(RunFiles(config), "of appliance `x`");
  lab.check();
  lab.writes(folder / "pipe.yaml", "the JSON report");
  try {
    lab.check();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("is the pipeline of device `d` of appliance `x`"), std::string::npos);
  }
  RunFiles two;
  two.add(RunFiles(config), "of appliance `x`");
  two.add(RunFiles(config), "of appliance `y`");
  EXPECT_THROW(two.check(), ConfigError) << "both write out.pcap";
}

// A client asks by keys; and a file that an editor has put in another's place counts as much as the one before it.
TEST_F(RunFilesTest, OthersAreToldByKeys) {
  const RunFiles files(config);
  const auto told = [&](const std::string& path) {
    const std::string key = RunFiles::key_of(path);
    for (const std::string& row : files.rows())
      if (!key.empty() && row.starts_with(key + " ")) return row.substr(key.size() + 1);
    return std::string();
  };
  EXPECT_EQ(told(folder / "c.yaml"), "the configuration");
  EXPECT_EQ(told(folder / "out.pcap"), "the capture of port `d.a`") << "it is not there yet";
  EXPECT_EQ(told(folder / "else"), "");
  std::filesystem::rename(folder / "c.yaml", folder / "old.yaml");
  test::write_bytes(folder / "c.yaml", "new");
  EXPECT_EQ(told(folder / "c.yaml"), "the configuration");
  EXPECT_EQ(told(folder / "old.yaml"), "the configuration");
  EXPECT_EQ(files.what_is(folder / "c.yaml"), "the configuration");
  EXPECT_EQ(files.what_is(folder / "else"), "");
}

TEST_F(RunFilesTest, AFileThatAKilledRunLeftIsNamedUnlessItIsBeingWritten) {
  RunFiles files(config);
  EXPECT_TRUE(files.left_behind().empty());
  const OutputFile running(folder / "out.pcap");
  ASSERT_TRUE(std::filesystem::exists(folder / "out.pcap.part"));
  EXPECT_TRUE(files.left_behind().empty());
  test::write_bytes(folder / "out.pcap.part2", "half a capture");
  ASSERT_EQ(files.left_behind().size(), 1u);
  EXPECT_TRUE(files.left_behind()[0].starts_with(folder / "out.pcap.part2: was left by a run that was killed"));
}

TEST_F(RunFilesTest, NoOutputHasTheNameOfAPackedFile) {
  EXPECT_NE(refusal(folder / "x.json.gz").find("outputs are written unpacked; leave `.gz` out"), std::string::npos);
  EXPECT_NE(refusal(folder / "x.pcap.zst").find("`>(zstd >"), std::string::npos);
  EXPECT_THROW(OutputFile(folder / "x.pcap.gz"), ConfigError);
}

// What comes from standard input is the configuration, or packets; who reads it first would take all.
TEST_F(RunFilesTest, AStreamIsReadOnce) {
  const auto said = [](const config::RunConfig& of) -> std::string {
    try {
      RunFiles(of).check();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const int pipe = open((folder / "in.pcap").c_str(), O_RDONLY);  // any descriptor
  const std::string own = "/dev/fd/" + std::to_string(pipe);
  config.captures[0].in = {"-"};
  EXPECT_EQ(said(config), "") << "the configuration is a file";
  config.file = "standard input";
  config.path = "-";
  EXPECT_EQ(
      said(config),
      "standard input: would be an input of port `d.a` and is the configuration; what comes from there is read once: "
      "give one of both as a file");
  config.captures[0].in = {"/dev/stdin"};
  EXPECT_TRUE(said(config).starts_with("/dev/stdin: would be an input of port `d.a` and is the configuration"));
  config.captures[0].in = {own};
  EXPECT_EQ(said(config), "");
  config.path = "/proc/self/fd/" + std::to_string(pipe);
  EXPECT_TRUE(said(config).starts_with(own + ": would be an input of port `d.a` and is the configuration"));
  config.path = folder / "c.yaml";
  config.captures.push_back({{"d", "b"}, {own}, "", ""});
  EXPECT_EQ(said(config), "") << "ports share an input";
  close(pipe);
}

}  // namespace
}  // namespace rocebox
