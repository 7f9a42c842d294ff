// SPDX-License-Identifier: BSD-3-Clause
// Files of hints: written byte by byte from the table in rocebox_hints.h, and by the command; missing, short, torn and
// forged ones are counted, and change nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include "kernels/scr/hints_file.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/counter_set.h"
#include "tests/unit/scr/hints_writer.h"

namespace rocebox::scr {
namespace {

namespace fs = std::filesystem;

// A file of so many rows, as the table has it.
class Bytes {
 public:
  explicit Bytes(std::uint32_t rows = 4) : bytes(64 + 32 * rows) {
    std::memcpy(bytes.data(), "RBHINTS", 8);
    set(8, std::uint32_t{1});
    set(12, rows);
  }
  template <class T>
  void set(std::size_t at, T value) {
    std::memcpy(&bytes.at(at), &value, sizeof value);
  }
  void hint(std::uint32_t row, std::uint32_t sequence, std::uint32_t qpn, std::uint64_t weight) {
    const std::size_t at = 64 + 32 * row;
    set(at, sequence);
    set(at + 4, qpn);
    set(at + 8, weight);
    set(at + 24, rocebox_hint_check(sequence, qpn, weight));
    std::uint32_t changes;
    std::memcpy(&changes, &bytes[16], 4);
    set(16, changes + 1);
  }
  std::vector<std::uint8_t> bytes;
};

class ScrHints : public testing::Test {
 protected:
  ScrHints() : folder(fs::temp_directory_path() / ("rocebox-hints-" + std::to_string(getpid()))) {
    fs::create_directories(folder);
    path = (folder / "nic.hints").string();
  }
  ~ScrHints() override { fs::remove_all(folder); }
  void write(const std::vector<std::uint8_t>& bytes) const {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  // What is new, as QPN=WEIGHT.
  std::string look(HintsFile& file, Nanos after = kMicrosecond) {
    now += after;
    std::string all;
    for (const HintsFile::Hint& one : file.look(now))
      all += (all.empty() ? "" : " ") + std::to_string(one.qpn) + "=" + std::to_string(one.weight);
    return all;
  }
  fs::path folder;
  std::string path;
  CounterSet stats;
  Nanos now = 0;
};

TEST_F(ScrHints, EachIsToldOnceAndAgainWhenItIsAnother) {
  HintsFile file(path, kMicrosecond, stats);
  Bytes bytes;
  bytes.hint(0, 2, 17, 3);
  bytes.hint(2, 4, 18, 65535);
  write(bytes.bytes);
  EXPECT_EQ(look(file), "17=3 18=65535");
  EXPECT_EQ(look(file), "");
  bytes.hint(2, 6, 18, 0);
  write(bytes.bytes);
  EXPECT_EQ(look(file), "18=0");
  EXPECT_EQ(stats.read("scr_hints_taken"), 3u);
  EXPECT_EQ(stats.read("scr_hints_torn") + stats.read("scr_hints_unusable") + stats.read("scr_hints_missing"), 0u);
}

TEST_F(ScrHints, NoneIsLookedForWithoutAPath) {
  HintsFile file("", kMicrosecond, stats);
  EXPECT_EQ(file.due(), kNever);
  EXPECT_TRUE(file.look(kSecond).empty());
}

TEST_F(ScrHints, AMissingOneIsLookedForSeldom) {
  HintsFile file(path, kMicrosecond, stats);
  for (int i = 0; i < 1000; i++) EXPECT_EQ(look(file), "");
  EXPECT_EQ(stats.read("scr_hints_missing"), 1u) << "in a millisecond";
  Bytes bytes;
  bytes.hint(1, 2, 17, 5);
  write(bytes.bytes);
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=5");
}

TEST_F(ScrHints, WhatIsNoFileOfHintsIsLeftAlone) {
  for (const std::size_t at : {0u, 7u, 8u, 12u}) {  // magic, its zero, version, rows
    Bytes bytes;
    bytes.hint(0, 2, 17, 5);
    bytes.bytes[at] ^= 0xFF;
    write(bytes.bytes);
    HintsFile file(path, kMicrosecond, stats);
    EXPECT_EQ(look(file), "") << at;
  }
  EXPECT_EQ(stats.read("scr_hints_unusable"), 4u);
  fs::remove(path);
  fs::create_directory(path);
  HintsFile directory(path, kMicrosecond, stats);
  EXPECT_EQ(look(directory), "");
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  HintsFile pipe(path, kMicrosecond, stats);
  EXPECT_EQ(look(pipe), "") << "and it does not wait for a writer";
  EXPECT_EQ(stats.read("scr_hints_unusable"), 6u);
}

TEST_F(ScrHints, AShortOneIsCountedAtAnyLength) {
  Bytes bytes;
  bytes.hint(0, 2, 17, 5);
  for (std::size_t length = 0; length < bytes.bytes.size(); length++) {
    write({bytes.bytes.begin(), bytes.bytes.begin() + static_cast<std::ptrdiff_t>(length)});
    HintsFile file(path, kMicrosecond, stats);
    EXPECT_EQ(look(file), "") << length;
    EXPECT_EQ(stats.read("scr_hints_unusable"), length + 1);
  }
}

TEST_F(ScrHints, OneThatIsCutWhileItIsReadDoesNoHarm) {
  Bytes bytes;
  bytes.hint(0, 2, 17, 5);
  write(bytes.bytes);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=5");
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  EXPECT_EQ(look(file), "");
  EXPECT_EQ(stats.read("scr_hints_unusable"), 1u);
  bytes.hint(0, 4, 17, 6);
  write(bytes.bytes);
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=6");
}

TEST_F(ScrHints, AnotherFileInItsPlaceIsRead) {
  Bytes bytes;
  bytes.hint(0, 2, 17, 5);
  write(bytes.bytes);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=5");
  fs::remove(path);
  write(bytes.bytes);
  EXPECT_EQ(look(file), "");
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=5");
}

TEST_F(ScrHints, AFileThatIsMovedOverItIsRead) {
  Bytes bytes;
  bytes.hint(0, 2, 17, 5);
  write(bytes.bytes);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=5");
  // The old one is open elsewhere, as whoever has mapped it keeps it.
  const int kept = open(path.c_str(), O_RDONLY);
  const std::string there = std::exchange(path, (folder / "other.hints").string());
  bytes.hint(0, 2, 17, 6);
  write(bytes.bytes);
  fs::create_hard_link(there, folder / "old.hints");
  fs::rename(path, there);
  path = there;
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=6");
  fs::rename(path, folder / "away.hints");
  EXPECT_EQ(look(file, 100 * kMillisecond), "");
  EXPECT_EQ(stats.read("scr_hints_missing"), 1u);
  close(kept);
}

// Nobody looked while it was empty: the same sequences and as many changes as before, and another hint.
TEST_F(ScrHints, OneThatIsEmptiedAndWrittenAgainIsRead) {
  Bytes bytes, again;
  bytes.hint(0, 2, 17, 5);
  bytes.hint(1, 2, 18, 1);
  again.hint(0, 2, 17, 6);
  again.hint(1, 2, 18, 1);
  write(bytes.bytes);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=5 18=1");
  write(again.bytes);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));  // where clocks of files are coarse
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=6");
}

// Whoever completes a row counts a change; the file of one that died is not read again and again.
TEST_F(ScrHints, ATornOneIsNotReadEachPeriod) {
  Bytes bytes;
  bytes.hint(0, 2, 17, 5);
  bytes.bytes[64 + 8] = 6;
  write(bytes.bytes);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "");
  bytes.bytes[64 + 8] = 5;
  write(bytes.bytes);
  EXPECT_EQ(look(file), "") << "nobody has said that it has changed";
  EXPECT_EQ(look(file, 100 * kMillisecond), "17=5") << "seldom it is looked at all the same";
}

TEST_F(ScrHints, ATornOneIsCountedOnceAndTakenWhenItIsWhole) {
  HintsFile file(path, kMicrosecond, stats);
  Bytes bytes;
  bytes.hint(0, 3, 17, 5);  // odd: it is being written
  bytes.hint(1, 2, 18, 7);
  bytes.bytes[64 + 32 + 8] = 8;  // another weight than its check says
  bytes.hint(2, 2, 19, 9);
  write(bytes.bytes);
  for (int i = 0; i < 5; i++) EXPECT_EQ(look(file), i == 0 ? "19=9" : "");
  EXPECT_EQ(stats.read("scr_hints_torn"), 2u);
  bytes.hint(0, 4, 17, 5);
  bytes.bytes[64 + 32 + 8] = 7;
  write(bytes.bytes);
  EXPECT_EQ(look(file), "17=5 18=7");
}

// Whatever stands there: no crash, and no hint whose check is wrong.
TEST_F(ScrHints, NoiseTellsNothing) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; i++) {
    Bytes bytes(16);
    for (std::size_t at = 64; at < bytes.bytes.size(); at++) bytes.bytes[at] = static_cast<std::uint8_t>(random());
    bytes.set(16, static_cast<std::uint32_t>(random()));
    write(bytes.bytes);
    HintsFile file(path, kMicrosecond, stats);
    EXPECT_EQ(look(file), "");
  }
  EXPECT_EQ(stats.read("scr_hints_torn"), 300u * 16);
}

// All of them have the file, and none finds it half made.
TEST_F(ScrHints, ThreadsMayOpenANewFileAtOnce) {
  for (unsigned round = 0; round < 50; round++) {
    fs::remove(path);
    std::array<int, 4> errors{};
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < errors.size(); i++)
        threads.emplace_back([&, i] { errors[i] = rocebox_test_hint(path.c_str(), 17 + i, 1 + i, 0); });
    }
    for (const int error : errors) ASSERT_EQ(error, 0) << std::strerror(error) << ", round " << round;
    HintsFile file(path, kMicrosecond, stats);
    ASSERT_EQ(look(file).size(), std::strlen("17=1 18=2 19=3 20=4"));
  }
}

TEST_F(ScrHints, AFileOfAnotherUserInAStickyDirectoryIsOpened) {
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 3, kTestSticky), 0) << "it makes one";
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 4, kTestSticky), 0) << "it opens one";
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=4");
}

TEST_F(ScrHints, AFullFileSystemIsAnErrorAndNoSignal) {
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 3, kTestFull), ENOSPC);
  EXPECT_EQ(fs::file_size(path), 0u) << "nothing that is taken for a file of hints";
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 3, 0), 0) << "when there is room again";
  // One with holes, as ftruncate makes it.
  fs::remove(path);
  std::ofstream(path).flush();
  fs::resize_file(path, 64 + 32 * 8);
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 3, kTestFull), ENOSPC);
  EXPECT_EQ(rocebox_test_hint(path.c_str(), 17, 3, 0), 0) << "its maker has died before it was begun";
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=3");
}

// The command is the header's other caller.
TEST_F(ScrHints, TheCommandWritesWhatIsRead) {
  const auto command = [&](const std::string& words) {
    const std::string output = (folder / "said").string();
    const int status =
        std::system((std::string(ROCEBOX_HINTS_COMMAND) + " " + words + " > " + output + " 2>&1").c_str());
    std::ifstream said(output);
    return std::to_string(WEXITSTATUS(status)) + " " + std::string(std::istreambuf_iterator(said), {});
  };
  EXPECT_EQ(command(path + " 17=3 0x12=4"), "0 ");
  EXPECT_EQ(fs::file_size(path), 64u + 256 * 32);
  HintsFile file(path, kMicrosecond, stats);
  EXPECT_EQ(look(file), "17=3 18=4");
  EXPECT_EQ(command(path + " 18=0"), "0 ");
  EXPECT_EQ(look(file), "18=0");
  EXPECT_EQ(command(path), "0 17=3\n18=0\n");
  for (const char* wrong : {" 0=1", " 17=65536", " 17", " =1", " 17=x", " 16777216=1", " 17=1x", " 17=-1"})
    EXPECT_EQ(command(path + wrong).substr(0, 8), "2 usage:") << wrong;
  EXPECT_EQ(command(path), "0 17=3\n18=0\n");
  std::string many;
  for (int i = 0; i < 255; i++) many += " " + std::to_string(100 + i) + "=1";
  EXPECT_EQ(command(path + many), "1 rocebox-hints: queue pair 354: all rows are others'\n");
  EXPECT_EQ(look(file).substr(0, 12), "100=1 101=1 ");
  write(Bytes().bytes);
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  EXPECT_EQ(command(path + " 17=1"), "1 rocebox-hints: " + path + ": is no file of hints\n");
}

}  // namespace
}  // namespace rocebox::scr
