// SPDX-License-Identifier: BSD-3-Clause
// Devices that take what they have from a pipeline file.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/config/config.h"
#include "runtime/config/differences.h"

namespace rocebox::config {
namespace {

class Pipelines : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rocebox-pipelines-XXXXXX";
    folder_ = mkdtemp(name);
    write("gate.yaml",
          "path: host <-> near <-> link <-> wan\nkernels:\n  near: {type: inspect}\n"
          "  link: {delay: 2ms, forward: {loss: 1%, events: [{packet: 1, do: drop}]}}\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  RunConfig load(const std::string& text, std::string& mistakes, bool follow = true) {
    Mistakes found(folder_ + "/f.yaml");
    RunConfig config = load_text(text, folder_ + "/f.yaml", registry_, found, follow);
    mistakes = found.text();
    for (std::size_t at; (at = mistakes.find(folder_)) != std::string::npos;) mistakes.erase(at, folder_.size() + 1);
    return config;
  }
  std::string good(const std::string& text) {
    std::string mistakes;
    const RunConfig config = load(text, mistakes);
    EXPECT_EQ(mistakes, "");
    return mistakes.empty() ? effective_yaml(config) : "";
  }
  std::string mistakes_of(const std::string& text) {
    std::string mistakes;
    load(text, mistakes);
    return mistakes;
  }

  std::string folder_;
  Registry registry_;
};

TEST_F(Pipelines, TheSameAsWrittenOut) {
  EXPECT_EQ(good("devices: {d: {pipeline: gate.yaml}}\n"),
            good("devices:\n  d:\n    path: host <-> near <-> link <-> wan\n    kernels:\n      near: {type: inspect}\n"
                 "      link: {delay: 2ms, forward: {loss: 1%, events: [{packet: 1, do: drop}]}}\n"));
}

TEST_F(Pipelines, OptionsOfTheDeviceHoldOneByOne) {
  EXPECT_EQ(good("devices: {d: {pipeline: ./gate.yaml, kernels: {link: {rate: 1Gbps, forward: {loss: 2%, events: "
                 "[{packet: 7, do: mark}]}}, near: {flows: 5}}}}\n"),
            good("devices:\n  d:\n    path: host <-> near <-> link <-> wan\n    kernels:\n      near: {type: inspect, "
                 "flows: 5}\n"
                 "      link: {delay: 2ms, rate: 1Gbps, forward: {loss: 2%, events: [{packet: 7, do: mark}]}}\n"));
}

TEST_F(Pipelines, TwoDevicesShareNothing) {
  std::string mistakes;
  const RunConfig config = load(
      "devices: {a: {pipeline: gate.yaml, kernels: {link: {delay: 3ms}}}, b: {pipeline: gate.yaml}}\n"
      "links: {haul: {between: [a.wan, b.wan]}}\n",
      mistakes);
  EXPECT_EQ(mistakes, "");
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].pipeline, folder_ + "/gate.yaml");
  EXPECT_EQ(config.devices[1].wiring.ports, (std::vector<std::string>{"host", "wan"}));
  EXPECT_NE(effective_yaml(config).find("delay: 3ms"), std::string::npos);
  EXPECT_NE(effective_yaml(config).find("delay: 2ms"), std::string::npos);
}

// As `reload` sees it: the pipeline is read again, and what changed in it is an option of a kernel.
TEST_F(Pipelines, AnEditOfThePipelineIsADifference) {
  std::string mistakes;
  const RunConfig before = load("devices: {d: {pipeline: gate.yaml}}\n", mistakes);
  write("gate.yaml",
        "path: host <-> near <-> link <-> wan\nkernels:\n  near: {type: inspect}\n"
        "  link: {delay: 5ms, forward: {loss: 1%, events: [{packet: 1, do: drop}]}}\n");
  const auto all = differences(before, load("devices: {d: {pipeline: gate.yaml}}\n", mistakes));
  ASSERT_EQ(all.size(), 2u);  // the direction that was written has the delay, too
  EXPECT_EQ(all[0].path, "devices.d.kernels.link.delay");
  EXPECT_EQ(all[1].path, "devices.d.kernels.link.forward.delay");
  for (const Difference& difference : all) EXPECT_EQ(difference.kernel, 1u);
}

TEST_F(Pipelines, MistakesInAPipelineBearItsName) {
  write("bad.yaml",
        "path: host <-> inspct <-> wan\nkernels:\n  inspect: {flowz: 3, window: 5}\nports: {}\npipeline: x\n");
  const std::string mistakes = mistakes_of("devices: {d: {pipeline: bad.yaml}}\n");
  for (const char* line : {"bad.yaml:3:13: unknown key `flowz`; did you mean `flows`?", "bad.yaml:3:31: `window`",
                           "bad.yaml:4:1: unknown key `ports`", "bad.yaml:5:1: unknown key `pipeline`", "inspct"})
    EXPECT_NE(mistakes.find(line), std::string::npos) << line << "\n" << mistakes;
  EXPECT_EQ(mistakes.find("f.yaml"), std::string::npos) << mistakes;
  EXPECT_EQ(
      mistakes_of("devices: {d: {pipeline: bad.yaml, kernels: {inspect: {flows: 7}}}}\nports: {d.host: {ring: r}}\n"),
      mistakes)
      << "what cannot be known without it is not said";
  write("list.yaml", "- a\n");
  EXPECT_NE(mistakes_of("devices: {d: {pipeline: list.yaml}}\n").find("list.yaml:1:1: expected a mapping"),
            std::string::npos);
  write("torn.yaml", "path: 'host\n");
  EXPECT_NE(mistakes_of("devices: {d: {pipeline: torn.yaml}}\n").find("torn.yaml:1:7: the quote"), std::string::npos);
}

TEST_F(Pipelines, MistakesInItsUseAreThoseOfTheConfiguration) {
  struct Row {
    const char *text, *said;
  };
  const Row rows[] = {
      {"devices: {d: {pipeline: gate.yaml, path: a <-> b}}\n",
       "f.yaml:1:42: `path:` and `pipeline:` exclude each other"},
      {"devices: {d: {pipeline: gate.yaml, kind: bump}}\n", "f.yaml:1:42: `kind:` and `pipeline:` exclude each other"},
      {"devices: {d: {pipeline: gate.yaml, kernels: {lnk: {delay: 1ms}}}}\n",
       "f.yaml:1:46: gate.yaml has no kernel `lnk`; did you mean `link`?"},
      {"devices: {d: {pipeline: gate.yaml, kernels: {near: {type: link}}}}\n",
       "f.yaml:1:59: gate.yaml says which type `near` is"},
      {"devices: {d: {pipeline: gate.yaml, kernels: {link: {dely: 1ms}}}}\n", "f.yaml:1:53: unknown key `dely`"},
      {"devices: {d: {pipeline: nowhere.yaml}}\n", "f.yaml:1:25: nowhere.yaml: cannot be read"},
      {"devices: {d: {pipeline: no_such_thing}}\n", "f.yaml:1:25: there is no pipeline `no_such_thing`"},
      {"devices: {d: {pipeline: [a]}}\n", "f.yaml:1:25: `pipeline` must be a text"},
      {"devices: {d: {pipeline: f.yaml}}\n", "f.yaml: cannot be read"},
      {"path: a <-> inspect <-> b\n", "f.yaml:1:7: this is a pipeline"}};
  for (const Row& row : rows)
    EXPECT_NE(mistakes_of(row.text).find(row.said), std::string::npos) << row.text << mistakes_of(row.text);
}

// What both said together is a mistake of who put them together.
TEST_F(Pipelines, AContradictionIsToldWhereThePipelineIsNamed) {
  write("coded.yaml", "path: host <-> lowar <-> wan\nkernels: {lowar: {r: 32, c: 4}}\n");
  const std::string mistakes = mistakes_of("devices:\n  d:\n    pipeline: coded.yaml\n    kernels: {lowar: {r: 2}}\n");
  EXPECT_NE(mistakes.find("f.yaml:3:15: `c` must not exceed `r`"), std::string::npos) << mistakes;
}

TEST_F(Pipelines, NoFileIsOpenedWhereNoneMayBe) {
  std::string mistakes;
  load("devices: {d: {pipeline: gate.yaml}}\n", mistakes, false);
  EXPECT_EQ(mistakes, "f.yaml:1:25: a pipeline is in another file, and none is opened here");
}

}  // namespace
}  // namespace rocebox::config
