// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/memory.h"

#include <gtest/gtest.h>

#include "runtime/kernel/kernel.h"
#include "runtime/packet/pool.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

class Memory : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder / path;
    std::filesystem::create_directories(whole.parent_path());
    test::write_bytes(whole, text);
  }
  std::uint64_t available() { return available_memory_bytes(folder / ""); }
  test::TemporaryFolder folder;
};

TEST_F(Memory, OfTheMachine) {
  EXPECT_EQ(available(), UINT64_MAX) << "nothing is known";
  file("proc/meminfo", "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\n");
  EXPECT_EQ(available(), 4 * kMebibyte);
  EXPECT_GT(available_memory_bytes(), kMebibyte) << "this machine";
}

// A limit on address space is none on memory: it has a message of its own, with all that is needed of it.
TEST_F(Memory, OfTheAddressSpace) {
  const auto left = [&] { return address_space_bytes(folder / ""); };
  file("proc/meminfo", "MemAvailable: 1048576 kB\n");
  file("proc/self/status", "Name: x\nVmSize:\t    2048 kB\n");
  file("proc/self/limits",
       "Limit Soft Hard Units\nMax address space         unlimited            unlimited            bytes\n");
  EXPECT_EQ(left(), UINT64_MAX);
  file("proc/self/limits",
       "Max address space         " + std::to_string(5 * kMebibyte) + "   unlimited            bytes\n");
  EXPECT_EQ(left(), 3 * kMebibyte);
  EXPECT_EQ(available(), 1024 * kMebibyte);
  file("proc/self/limits", "Max address space         1000   1000            bytes\n");
  EXPECT_EQ(left(), 0u);
}

TEST_F(Memory, OfControlGroups) {
  file("proc/meminfo", "MemAvailable: 1048576 kB\n");
  file("proc/self/cgroup", "0::/slice/unit\n");
  file("sys/fs/cgroup/slice/unit/memory.max", "max\n");
  EXPECT_EQ(available(), 1024 * kMebibyte);
  file("sys/fs/cgroup/slice/memory.max", std::to_string(100 * kMebibyte));
  file("sys/fs/cgroup/slice/memory.current", std::to_string(50 * kMebibyte));
  file("sys/fs/cgroup/slice/memory.stat", "anon 1\nfile " + std::to_string(20 * kMebibyte) + "\n");
  EXPECT_EQ(available(), 70 * kMebibyte) << "the group above limits too, and page cache can be taken back";
  file("sys/fs/cgroup/memory.max", std::to_string(10 * kMebibyte));
  EXPECT_EQ(available(), 10 * kMebibyte) << "a container sees its own limit at the mount point";
  file("proc/self/cgroup", "12:pids:/x\n4:cpu,memory:/docker/1\n");
  EXPECT_EQ(available(), 1024 * kMebibyte);
  file("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", std::to_string(8 * kMebibyte));
  file("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", std::to_string(9 * kMebibyte));
  EXPECT_EQ(available(), 0u);
}

TEST(PoolSizes, MoreThanThereIsIsRefused) {
  const PoolSizes sizes;
  EXPECT_NO_THROW(sizes.require_memory(sizes.mebibytes() << 20));
  EXPECT_THROW(sizes.require_memory((sizes.mebibytes() << 20) - 1), ConfigError);
  EXPECT_GT((PoolSizes{.small = 1 << 24, .large = 1 << 24, .giant = 1 << 24}.mebibytes()), 1'000'000u);
}

TEST(Pool, RemembersTheMostThatWereInUse) {
  Pool pool({.small = 4096, .large = 16, .giant = 2});
  EXPECT_EQ(pool.in_use_max(), 0u);
  std::uint32_t most = 0, state = 1;
  std::vector<PacketPtr> held;
  for (int step = 0; step < 20'000; step++) {
    state = state * 1664525 + 1013904223;
    if (state >> 24 < 128u + (step < 10'000 ? 20u : 0u)) {
      if (PacketPtr packet = pool.allocate((state >> 16 & 63) ? 64 : 4000)) held.push_back(std::move(packet));
    } else if (!held.empty()) {
      held.pop_back();
    }
    most = std::max(most, pool.in_use());
    ASSERT_EQ(pool.in_use_max(), most) << step;
  }
  EXPECT_GT(most, 300u);
}

}  // namespace
}  // namespace rocebox
