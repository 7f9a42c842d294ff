// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/capture/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"
#include "tests/unit/capture/capture_kit.h"

namespace rocebox {
namespace {

TEST(OutputFile, IsThereWhenItIsPublished) {
  test::TemporaryFolder folder;
  OutputFile file(folder / "a");
  EXPECT_FALSE(file.direct());
  file.write("abc", 3);
  file.close();
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.publish();
  EXPECT_EQ(test::read_bytes(folder / "a"), "abc");
  EXPECT_EQ(folder.files(), 1u);
}

TEST(OutputFile, AnAbandonedOneLeavesTheOldFileAndOthersPartFiles) {
  test::TemporaryFolder folder;
  test::write_bytes(folder / "a", "old");
  test::write_bytes(folder / "a.part", "somebody's");
  {
    OutputFile one(folder / "a"), two(folder / "a");
    one.write("1", 1);
    two.write("2", 1);
    two.close();
  }
  EXPECT_EQ(test::read_bytes(folder / "a"), "old");
  EXPECT_EQ(test::read_bytes(folder / "a.part"), "somebody's");
  EXPECT_EQ(folder.files(), 2u);
}

TEST(OutputFile, ADescriptorIsWrittenWhereItStands) {
  test::TemporaryFolder folder;
  const int descriptor = open((folder / "a").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(descriptor, "head ", 5), 5);
  {
    OutputFile file("/dev/fd/" + std::to_string(descriptor));
    EXPECT_TRUE(file.direct());
    file.write("tail", 4);
    file.close();
    file.publish();
  }
  close(descriptor);
  EXPECT_EQ(test::read_bytes(folder / "a"), "head tail");
  EXPECT_THROW(OutputFile("/dev/fd/999"), ConfigError);
}

// A live run does not wait for a reader: without one there is no opening, and one that leaves is an error of writing.
TEST(OutputFile, APipeWithBoundedPatience) {
  test::TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(OutputFile(path, Patience::kBounded), ConfigError);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  std::signal(SIGPIPE, SIG_IGN);
  OutputFile file(path, Patience::kBounded);
  EXPECT_TRUE(file.direct());
  file.write("abc", 3);
  file.flush();
  char bytes[4] = {};
  EXPECT_EQ(read(reader, bytes, sizeof bytes), 3);
  EXPECT_STREQ(bytes, "abc");
  close(reader);
  EXPECT_EQ(file.failed(), "");
  file.write("d", 1);
  file.flush();
  EXPECT_NE(file.failed().find("Broken pipe"), std::string::npos) << file.failed();
  EXPECT_THROW(file.close(), std::runtime_error);
  std::signal(SIGPIPE, SIG_DFL);
}

// A run that is to end waits neither for somebody to read from a named pipe, nor long for who has stopped to.
TEST(OutputFile, TheEndOfTheRunEndsItsWaiting) {
  test::TemporaryFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  StopRequest stop;
  stop.request();
  Waiting waiting(Patience::kEndless, stop.descriptor());
  waiting.milliseconds = 1;
  EXPECT_THROW(OutputFile(path, waiting), std::runtime_error);
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  for (const std::string& way : {path, "/dev/fd/" + std::to_string(open(path.c_str(), O_WRONLY))}) {
    OutputFile file(way, waiting);
    const std::string much(std::size_t{4} << 20, 'x');
    file.write(much.data(), much.size());
    file.flush();
    EXPECT_NE(file.failed().find("its reader has stopped reading"), std::string::npos) << file.failed();
    EXPECT_THROW(file.close(), std::runtime_error);
  }
  close(reader);
}

TEST(OutputFile, WhatCannotBeOpenedIsAConfigErrorThatNamesIt) {
  test::TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const std::string& path : {folder / "none/x", folder / "", folder / "loop", std::string(5000, 'x')}) {
    try {
      OutputFile file(path);
      FAIL() << path;
    } catch (const ConfigError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
    }
  }
  EXPECT_EQ(folder.files(), 1u);
}

TEST(FileKey, IsOneForAllSpellings) {
  test::TemporaryFolder folder;
  test::write_bytes(folder / "a", "");
  std::filesystem::create_symlink(folder / "a", folder / "link");
  std::filesystem::create_hard_link(folder / "a", folder / "hard");
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("../new", folder / "sub/dangling");
  const std::string a = file_key(folder / "a", 1);
  EXPECT_FALSE(a.empty());
  for (const char* other : {"./a", "link", "hard", "sub/../a"}) EXPECT_EQ(file_key(folder / other, 1), a) << other;
  const std::string created_later = file_key(folder / "new", 1);
  EXPECT_NE(created_later, a);
  EXPECT_EQ(file_key(folder / "sub/../new", 1), created_later);
  EXPECT_EQ(file_key(folder / "sub/dangling", 1), created_later);
  EXPECT_EQ(file_key("/dev/null", 1), "") << "may be shared";
  EXPECT_EQ(file_key("-", 1), file_key("-.pcapng", 1));
  EXPECT_EQ(file_key("-", 1), file_key("/dev/stdout", 1));
  EXPECT_EQ(file_key("-", 0), file_key("/dev/stdin", 0));
  EXPECT_TRUE(is_standard_output("-"));
  EXPECT_TRUE(is_standard_output("/proc/self/fd/1"));
  EXPECT_FALSE(is_standard_output(folder / "a"));
  EXPECT_FALSE(is_standard_output(""));
}

}  // namespace
}  // namespace rocebox
