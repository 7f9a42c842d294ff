// SPDX-License-Identifier: BSD-3-Clause
// The runs of a sweep as processes of their own: runs share nothing.
#pragma once
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "runtime/capture/input_stream.h"
#include "runtime/cli/ranks.h"
#include "runtime/cli/sweep.h"
#include "runtime/lab/process.h"

namespace rocebox::cli {

/// A folder for what the runs write, which goes with this.
class Scratch {
 public:
  /// Throws std::runtime_error.
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(std::size_t run, const char* what) const;

 private:
  std::filesystem::path path_;
};

/// Those of one rank: every so many, so that long and short ones are dealt out evenly.
class SweepRuns {
 public:
  /// How far each goes: until all is made that a run needs, which finds every mistake, or to its end.
  enum class Extent : std::uint8_t { kCheck, kRun };
  SweepRuns(const SimArguments& arguments, const std::vector<SweepPoint>& points, const Ranks& ranks, Extent extent);

  /// Starts them, so many at a time, and waits for all. When a stop is requested those that go on are told to end.
  void run(const StopRequest& stop);
  bool interrupted() const { return interrupted_; }

  /// What those said whose configuration does not do (exit status 2), each with its number. What else goes wrong while
  /// a check is made its run meets again, and tells.
  Json mistakes() const;
  /// What came of them, for the first rank: the rows of those that came to a report, what is to be told of them on
  /// standard error, each with its number, and the exit status.
  Json outcome() const;

 private:
  struct Running {
    std::size_t run;
    lab::Process process;
  };
  void start(std::size_t run);
  void wait(const StopRequest& stop, bool told);
  std::string how_far() const;
  std::string said(std::size_t run) const;
  std::string killed(std::size_t run, bool has_report) const;
  int status() const;

  const SimArguments& arguments_;
  const std::vector<SweepPoint>& points_;
  const Extent extent_;
  const bool is_first_;  // of the ranks, which share a terminal
  std::vector<std::size_t> mine_;
  Scratch scratch_;
  std::list<Running> running_;
  std::map<std::size_t, int> statuses_;  // of those that have ended
  bool interrupted_ = false;
};

}  // namespace rocebox::cli
