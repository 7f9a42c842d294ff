// SPDX-License-Identifier: BSD-3-Clause
// Workloads and topologies from files beside the configuration.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/drives/run_files.h"
#include "tests/unit/virtual/fabric_kit.h"

namespace rocebox::input_files_test {
namespace {

namespace fs = std::filesystem;

class InputFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rocebox-unit-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  config::RunConfig load(const std::string& yaml, std::string* mistakes = nullptr) {
    return fabric_test::load(yaml, mistakes, (folder_ / "f.yaml").string(), true);
  }

  fs::path folder_;
};

const std::string kDumbbell =
    "topology:\n"
    "  dumbbell: {hosts_per_side: 2, host_rate: 10Gbps, bottleneck_rate: 10Gbps}\n"
    "  hosts: {nic: {header_only: true}}\n"
    "  switches: {switch: {}}\n";

TEST_F(InputFiles, AConnectionMatrixRunsInItsOrder) {
  write("all.cm",
        "Nodes 4\nConnections 3\nTriggers 1\n0->2 start 0 size 100000 recv_done_trigger 1\n"
        "1->3 start 5000000 size 100000 recv_done_trigger 1\n3->0 trigger 1 size 5000\ntrigger id 1 barrier count 2\n");
  fabric_test::FabricBox box(load(kDumbbell + "workloads: {flows: {htsim: all.cm}}\n"));
  const Json& flows = box.run()["workloads"]["flows"]["flows"];
  EXPECT_TRUE(box.sim.succeeded());
  ASSERT_EQ(flows.size(), 3u);
  const auto end = [&](int i) { return flows[i]["start_ns"].get<Nanos>() + flows[i]["completion_ns"].get<Nanos>(); };
  EXPECT_EQ(flows[1]["start_ns"], 5'000);
  EXPECT_EQ(flows[2]["source"], "h3");
  EXPECT_EQ(flows[2]["start_ns"], std::max(end(0), end(1))) << "when the last of both has come";
}

TEST_F(InputFiles, Ns3FlowsRunOverTheirTopology) {
  // Node 0 is a switch, so places and numbers of hosts are not the same.
  write("net.txt", "4 1 3\n0\n1 0 10Gbps 1us 0\n2 0 10Gbps 1us 0\n3 0 10Gbps 1us 0\n");
  write("flows.txt", "2\n1 3 3 100 50000 2\n2 1 3 100 40000 2.00001\n");
  const std::string yaml =
      "topology: {ns3: {file: net.txt}, hosts: {nic: {header_only: true}}, switches: {switch: {}}}\n"
      "workloads: {flows: {ns3: flows.txt}}\n";
  fabric_test::FabricBox box(load(yaml));
  const Json& flows = box.run()["workloads"]["flows"]["flows"];
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_EQ(flows[0]["source"], "h1");
  EXPECT_EQ(flows[0]["destination"], "h3");
  EXPECT_EQ(flows[1]["source"], "h2");
  EXPECT_EQ(flows[1]["start_ns"], 10'000);
  EXPECT_EQ(flows[1]["bytes"], 40'000);

  RunFiles files(box.config);
  files.writes((folder_ / "flows.txt").string(), "the JSON report");
  files.writes((folder_ / "net.txt").string(), "a table");
  try {
    files.check();
    FAIL() << "inputs would be overwritten";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("is an input of workload `flows`"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("is the topology"), std::string::npos) << error.what();
  }
}

TEST_F(InputFiles, MistakesAreToldWithFileAndLine) {
  write("flows.txt", "1\n0 0 3 9 1\n");
  write("net.txt", "2 1 1\n0\n0 1 fast 1us 0\n");
  write("sizes.txt", "0 0\n10 50\n");
  std::string mistakes;
  load(kDumbbell + "workloads: {flows: {ns3: flows.txt}, poisson: {sizes: sizes.txt}}\n", &mistakes);
  EXPECT_NE(mistakes.find(folder_.string() + "/flows.txt:2:3: goes from a node to itself"), std::string::npos)
      << mistakes;
  EXPECT_NE(mistakes.find(folder_.string() + "/sizes.txt:2:1: must end with a share"), std::string::npos) << mistakes;
  load("topology: {ns3: {file: net.txt}, hosts: {nic: {}}, switches: {switch: {}}}\nworkloads: {permutation: {}}\n",
       &mistakes);
  EXPECT_NE(mistakes.find(folder_.string() + "/net.txt:3:5: expected a rate"), std::string::npos) << mistakes;
  EXPECT_EQ(mistakes.find("net.txt:3:5"), mistakes.rfind("net.txt:3:5")) << "once: " << mistakes;
  load(kDumbbell + "workloads: {flows: {ns3: none.txt}}\n", &mistakes);
  EXPECT_NE(mistakes.find("f.yaml:5:26: `ns3`: "), std::string::npos) << mistakes;
  EXPECT_NE(mistakes.find("none.txt: cannot be read"), std::string::npos) << mistakes;
  load(kDumbbell + "workloads: {flows: {ns3: a, htsim: b}}\n", &mistakes);
  EXPECT_NE(mistakes.find("is a second list"), std::string::npos) << mistakes;

  write("far.txt", "1\n0 9 3 9 1\n");
  try {
    fabric_test::FabricBox box(load(kDumbbell + "workloads: {flows: {ns3: far.txt}}\n"));
    FAIL() << "taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("far.txt:2: there is no host `h9`"), std::string::npos) << error.what();
  }
}

// The mean of so many arrivals is known to about 2%, and so is how times between them spread: their standard deviation
// is their mean, where arrivals in even steps have 0.
TEST_F(InputFiles, PoissonArrivalsMakeTheLoad) {
  write("sizes.txt", "0 0\n20000 100\n");
  const std::string yaml = kDumbbell + "workloads: {poisson: {sizes: sizes.txt, load: 40%, duration: 10ms}}\n";
  fabric_test::FabricBox box(load(yaml));
  const Json& poisson = box.run()["workloads"]["poisson"];
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_EQ(poisson["transfers"], poisson["transfers_done"]);
  // 4 hosts, 10 Gbit/s, 10 ms, 10000 bytes.
  EXPECT_NEAR(poisson["transfers"].get<double>(), 4 * 0.4 * 10e9 * 10e-3 / 8 / 10000, 4 * 45);
  EXPECT_NEAR(poisson["bytes"].get<double>(), 4 * 0.4 * 10e9 * 10e-3 / 8, 0.1 * 20e6);
  Nanos before = 0;
  std::map<std::string, int> destinations;
  std::map<std::string, Nanos> last;  // by source, from the beginning of the run
  double gaps = 0, squares = 0;
  for (const Json& flow : poisson["flows"]) {
    EXPECT_GE(flow["start_ns"].get<Nanos>(), before);
    before = flow["start_ns"].get<Nanos>();
    Nanos& at = last[flow["source"].get<std::string>()];
    const auto gap = static_cast<double>(before - at);
    at = before;
    gaps += gap;
    squares += gap * gap;
    EXPECT_NE(flow["source"], flow["destination"]);
    destinations[flow["source"].get<std::string>() + flow["destination"].get<std::string>()]++;
  }
  EXPECT_EQ(destinations.size(), 12u) << "each to each other";
  const double count = poisson["transfers"].get<double>(), mean = gaps / count;
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / mean, 1, 0.2);
}

TEST_F(InputFiles, TheRunDoesNotWaitForWhatIsInTheBackground) {
  write("sizes.txt", "0 0\n20000 100\n");
  const std::string background = "  noise: {type: poisson, sizes: sizes.txt, duration: 0, background: true}\n";
  fabric_test::FabricBox box(
      load(kDumbbell + "workloads:\n  flows: {flows: [{source: 0, destination: 3, bytes: 1MB}]}\n" + background));
  const Json& report = box.run();
  EXPECT_TRUE(box.sim.succeeded());
  EXPECT_EQ(report["run"]["end"], "all workloads had finished");
  EXPECT_TRUE(report["workloads"]["flows"]["finished"]);
  EXPECT_FALSE(report["workloads"]["noise"]["finished"]);
  EXPECT_GT(report["workloads"]["noise"]["transfers_done"], 10);
  EXPECT_EQ(report["run"]["span_ns"], report["workloads"]["flows"]["duration_ns"]);
  EXPECT_TRUE(box.sim.warnings().empty());

  std::string mistakes;
  load(kDumbbell + "workloads:\n" + background, &mistakes);
  EXPECT_NE(mistakes.find("all workloads are in the background"), std::string::npos) << mistakes;
  load(kDumbbell + "workloads:\n  permutation: {after: [noise]}\n" + background, &mistakes);
  EXPECT_NE(mistakes.find("`noise` is in the background, and may never finish"), std::string::npos) << mistakes;
}

}  // namespace
}  // namespace rocebox::input_files_test
