// SPDX-License-Identifier: BSD-3-Clause
// Texts out of files and pipes, and the files that they name.
#include "runtime/config/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/component/registry.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::config {
namespace {

TEST(TextFile, FilesThatCannotBeRead) {
  EXPECT_THROW(read_text_file("/nonexistent/x.yaml"), ConfigError);
  EXPECT_THROW(read_text_file("/tmp"), ConfigError);
  EXPECT_THROW(read_text_file("/dev/zero", Pipes::kTaken), ConfigError) << "larger than any configuration";
  EXPECT_EQ(read_text_file("/dev/null", Pipes::kTaken), "");
  try {
    read_text_file("-");  // what names it is a file itself, or is read again
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "standard input: cannot be read: is a pipe or a device, and a regular file is needed here");
  }
}

// What is read again, or is named by another file, must be there at once: a pipe may never have a writer.
TEST(TextFile, APipeIsReadOnlyWhereItMayBe) {
  char folder[] = "/tmp/rocebox_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string pipe = std::string(folder) + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  try {
    read_text_file(pipe);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), pipe + ": cannot be read: is a pipe or a device, and a regular file is needed here");
  }
  EXPECT_THROW(Registry().load_plugin(pipe), ConfigError);
  const int both = open(pipe.c_str(), O_RDWR);
  ASSERT_EQ(write(both, "seed: 1", 7), 7);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  close(both);
  // A link to a descriptor is the descriptor, as the descriptor's other names are.
  std::filesystem::create_symlink("/dev/fd/" + std::to_string(reader), std::string(folder) + "/link");
  EXPECT_EQ(read_text_file(std::string(folder) + "/link", Pipes::kTaken), "seed: 1");
  close(reader);
  std::filesystem::remove_all(folder);
}

TEST(TextFile, PathsBesideADescriptorAreThoseOfTheCurrentFolder) {
  EXPECT_EQ(beside("dir/c.yaml", "x.pcap"), "dir/x.pcap");
  EXPECT_EQ(beside("/dev/fd/63", "x.pcap"), "x.pcap");
  EXPECT_EQ(beside("/dev/stdin", "./sub/x.pcap"), "sub/x.pcap");
  EXPECT_EQ(beside("standard input", "x.pcap"), "x.pcap");
  EXPECT_EQ(beside("/dev/fd/63", "-"), "-");
}

}  // namespace
}  // namespace rocebox::config
