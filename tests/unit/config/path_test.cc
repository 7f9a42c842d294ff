// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/path.h"

#include <gtest/gtest.h>

namespace rocebox::config {
namespace {

// k, l: two-sided; c: one-way, 2 inputs, 3 outputs.
const std::vector<PathKernel> kAll = {
    {"k", Shape::kTwoSided, 2, 2}, {"l", Shape::kTwoSided, 2, 2}, {"c", Shape::kOneWay, 2, 3}};

std::string show(Edge e) {
  return e.stage == Edge::kOutside   ? "out" + std::to_string(e.port)
         : e.stage == Edge::kNowhere ? "-"
                                     : std::to_string(e.stage) + "." + std::to_string(e.port);
}
// "host wire | inputs | outputs of each kernel", or the mistakes.
std::string wired(const std::vector<std::string>& chains, const std::vector<PathKernel>& kernels) {
  Mistakes mistakes("f");
  const Wiring wiring = wire(chains, kernels, {3, 4}, mistakes);
  if (!mistakes.none()) return mistakes.text();
  std::string text;
  for (const std::string& port : wiring.ports) text += port + " ";
  text += "|";
  for (Edge e : wiring.inputs) text += " " + show(e);
  for (const auto& outputs : wiring.outputs) {
    text += " |";
    for (Edge e : outputs) text += " " + show(e);
  }
  return text;
}

TEST(Path, Wirings) {
  struct Row {
    std::vector<std::string> chains;
    std::vector<std::size_t> kernels;
    const char* wiring;
  };
  const Row rows[] = {
      {{"host <-> k <-> wire"}, {0}, "host wire | 0.0 0.1 | out0 out1"},
      {{"host<->k<->wire"}, {0}, "host wire | 0.0 0.1 | out0 out1"},
      {{"  host  <->  k  <->  wire "}, {0}, "host wire | 0.0 0.1 | out0 out1"},
      {{"host <-> k <-> l <-> wire"}, {0, 1}, "host wire | 0.0 1.1 | out0 1.0 | 0.1 out1"},
      {{"host <-> l <-> k <-> wire"}, {0, 1}, "host wire | 1.0 0.1 | 1.1 out1 | out0 0.0"},
      {{"a -> k -> b"}, {0}, "a b | 0.0 - | - out1"},
      {{"a -> c -> b", "d -> c.1", "c.1 -> e", "c.2 -> a"}, {2}, "a b d e | 0.0 - 0.1 - | out1 out3 out0"},
      {{"a <-> b"}, {}, "a b | out1 out0"},
      {{"a -> b"}, {}, "a b | out1 -"},
      {{"my-host <-> k <-> wire_2"}, {0}, "my-host wire_2 | 0.0 0.1 | out0 out1"},
  };
  for (const Row& row : rows) {
    std::vector<PathKernel> kernels;
    for (std::size_t i : row.kernels) kernels.push_back(kAll[i]);
    EXPECT_EQ(wired(row.chains, kernels), row.wiring) << row.chains[0];
  }
}

TEST(Path, Mistakes) {
  struct Row {
    std::vector<std::string> chains;
    const char* words;
  };
  const Row rows[] = {
      {{"host <-> kk <-> wire"}, "unknown kernel `kk`; did you mean `k`?"},
      {{"host"}, "is no chain"},
      {{""}, "is no chain"},
      {{"-> k"}, "is no chain"},
      {{"host <-> k <->"}, "is no chain"},
      {{"host <- k -> x"}, "is no chain"},
      {{"host <-> k! <-> w"}, "is no chain"},
      {{"host <-> k.x <-> w"}, "is no chain"},
      {{"host <-> k.-1 <-> w"}, "is no chain"},
      {{"host <-> k.300 <-> w"}, "is no chain"},
      {{"host <-> . <-> w"}, "is no chain"},
      {{"host.0 <-> k <-> w"}, "is a port of the device and has no port numbers"},
      {{"host <-> k.1 <-> w"}, "possible at the ends of a chain only"},
      {{"k.2 -> w"}, "kernel `k` has ports 0 to 1"},
      {{"c.3 -> w"}, "kernel `c` has ports 0 to 2"},
      {{"w -> c.2"}, "kernel `c` has ports 0 to 1"},
      {{"host <-> c <-> w"}, "kernel `c` is not two-sided"},
      {{"a <-> k <-> b", "c.1 -> k"}, "kernel `l` stands in no path"},
      {{"a -> k -> b", "k -> d"}, "`k` is wired twice"},
      {{"a -> k -> b", "a -> l -> e"}, "`a` is wired twice"},
      {{"k -> l -> k"}, "back to itself"},
      {{"c.1 -> c"}, "back to itself"},
      {{"a -> k -> k -> b"}, "twice"},
      {{"k <-> l"}, "the path has no port"},
  };
  for (const Row& row : rows) {
    const std::string found = wired(row.chains, kAll);
    EXPECT_NE(found.find(row.words), std::string::npos) << row.chains[0] << "\n" << found;
    EXPECT_TRUE(found.starts_with("f:3:4: ")) << found;
  }
}

TEST(Path, ATwoSidedKernelFacingItselfIsNoRing) {
  EXPECT_EQ(wired({"a -> k -> b", "l -> k.1"}, {kAll[0], kAll[1]}), "a b | 0.0 - | - out1 | - 0.1");
}

TEST(Path, MorePortsThanAByteCountsAreRefused) {
  std::vector<std::string> chains;
  for (int i = 0; i < 150; i++) chains.push_back("a" + std::to_string(i) + " -> b" + std::to_string(i));
  EXPECT_TRUE(wired(chains, {}).starts_with("f:3:4: "));
}

TEST(Path, NamesInOrderWithoutRepetition) {
  EXPECT_EQ(path_names({"a <-> k <-> b", "b -> k.1", "broken ->"}), (std::vector<std::string>{"a", "k", "b"}));
}

}  // namespace
}  // namespace rocebox::config
