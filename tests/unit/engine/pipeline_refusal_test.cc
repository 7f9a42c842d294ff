// SPDX-License-Identifier: BSD-3-Clause
// Calls of the engine that it neither answers rightly nor refuses.
#include <gtest/gtest.h>

#include <unistd.h>

#include "tests/unit/engine/script_kernel.h"

namespace rocebox {
namespace {

using test::out;
using test::PipelineBox;
using test::range;
using test::stage;

// A batch holds kBatchMax packets; a larger cut must be refused or brought down to that, not written beyond the batch.
TEST(PipelineRefusal, BatchMaxBeyondTheBatch) {
  auto run = [] {
    std::vector<Stage> stages;
    stages.push_back(stage("k", {out(0)}, [](Context&, Port, Batch& b) {
      if (b.size() > kBatchMax) _exit(3);
    }));
    PipelineBox box(std::move(stages));
    box.pipeline.set_batch_max(200);
    box.send(0, range(0, 200));
    _exit(box.left.size() == 200 ? 0 : 4);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// A kernel without outputs (a sink) that forgets to drop: an unconnected output, or an abort with words; not undefined.
TEST(PipelineRefusal, PassOfAKernelWithoutOutputs) {
  auto run = [] {
    std::vector<Stage> stages;
    stages.push_back(stage("sink", {}));
    PipelineBox box(std::move(stages));
    box.send(0, {1});
    _exit(box.stats.read("drop_not_connected") == 1 ? 0 : 4);
  };
  EXPECT_EXIT(
      run(),
      [](int status) {
        return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
      },
      "");
}

}  // namespace
}  // namespace rocebox
