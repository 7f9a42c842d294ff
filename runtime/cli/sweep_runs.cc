// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep_runs.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "runtime/cli/progress_line.h"

namespace rocebox::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kErrorBytesMax = std::size_t{1} << 16;
constexpr int kRunFailed = 1, kRunRefused = 2;  // as the command says it, see commands.h
constexpr int kSignalBase = 128;                // see lab::Process::status()

}  // namespace

Scratch::Scratch() {
  std::string name = (fs::temp_directory_path() / "rocebox-sweep-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no folder for what the runs of a sweep write");
  path_ = name;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::file(std::size_t run, const char* what) const {
  return (path_ / fmt::format("{}.{}", run, what)).string();
}

SweepRuns::SweepRuns(const SimArguments& arguments, const std::vector<SweepPoint>& points, const Ranks& ranks,
                     Extent extent)
    : arguments_(arguments), points_(points), extent_(extent), is_first_(ranks.is_first()) {
  for (std::size_t i = static_cast<std::size_t>(ranks.rank()); i < points.size();
       i += static_cast<std::size_t>(ranks.count()))
    mine_.push_back(i);
}

void SweepRuns::run(const StopRequest& stop) {
  ProgressLine line(arguments_.report.quiet || !is_first_);
  std::size_t next = 0;
  bool told = false;
  while (next < mine_.size() || !running_.empty()) {
    while (!stop.requested() && next < mine_.size() && running_.size() < static_cast<std::size_t>(arguments_.jobs))
      start(mine_[next++]);
    if (stop.requested()) {
      if (!std::exchange(told, true))
        for (Running& one : running_) one.process.signal(SIGINT);
      next = mine_.size();
    }
    line.show(how_far());
    wait(stop, told);
  }
  interrupted_ = stop.requested();
}

std::string SweepRuns::how_far() const {
  // Other ranks are as far as this one, more or less: runs are dealt in turn.
  return fmt::format("sweep  {} of {} runs{}{}", statuses_.size(), mine_.size(),
                     mine_.size() < points_.size() ? " of the first rank" : "",
                     extent_ == Extent::kCheck ? " checked" : "");
}

void SweepRuns::start(std::size_t run) {
  lab::Command command;
  command.words = {"/proc/self/exe",  "sim",
                   arguments_.config, "--quiet",
                   "--json",          scratch_.file(run, "json"),
                   "--seed",          fmt::format("{}", points_[run].seed)};
  for (const std::string& setting : arguments_.settings) command.words.insert(command.words.end(), {"--set", setting});
  for (const auto& [key, value] : points_[run].settings)
    command.words.insert(command.words.end(), {"--set", fmt::format("{}={}", key, value)});
  for (const std::string& plugin : arguments_.plugins) command.words.insert(command.words.end(), {"--plugin", plugin});
  command.words.emplace_back("--notes-told");
  if (extent_ == Extent::kCheck) command.words.emplace_back("--only-check");
  command.error = scratch_.file(run, "err");
  command.environment = Ranks::no_rank();
  running_.push_back({run, lab::Process(command)});
}

void SweepRuns::wait(const StopRequest& stop, bool told) {
  std::vector<pollfd> descriptors;
  for (const Running& one : running_) descriptors.push_back({one.process.descriptor(), POLLIN, 0});
  if (!told) descriptors.push_back({stop.descriptor(), POLLIN, 0});
  if (!descriptors.empty()) poll(descriptors.data(), descriptors.size(), -1);
  std::erase_if(running_, [this](Running& one) {
    const std::optional<int> status = one.process.status();
    if (status) statuses_[one.run] = *status;
    return status.has_value();
  });
}

std::string SweepRuns::said(std::size_t run) const { return lab::read_tail(scratch_.file(run, "err"), kErrorBytesMax); }

// What ended a run that could not say so itself; empty: nothing did. Where the sweep was told to end, one that had just
// been started is ended so.
std::string SweepRuns::killed(std::size_t run, bool has_report) const {
  const auto found = statuses_.find(run);
  if (found == statuses_.end() || found->second <= kSignalBase) return "";
  const int number = found->second - kSignalBase;
  if (interrupted_ && number == SIGINT) return "";
  return fmt::format("rocebox: signal {} ({}) ended this run{}\n", number, strsignal(number),
                     has_report ? "" : ": the table has no row of it");
}

int SweepRuns::status() const {
  int worst = interrupted_ ? kRunFailed : 0;
  for (const auto& [run, status] : statuses_) worst = std::max(worst, status > kRunRefused ? kRunFailed : status);
  return worst;
}

Json SweepRuns::mistakes() const {
  Json all = Json::array();
  for (const auto& [run, status] : statuses_)
    if (status == kRunRefused) all.push_back({run, said(run)});
  return all;
}

Json SweepRuns::outcome() const {
  Json outcome = {{"rows", Json::array()}, {"said", Json::array()}, {"status", status()}, {"begun", statuses_.size()}};
  for (const std::size_t i : mine_) {
    std::ifstream file(scratch_.file(i, "json"));
    const Json report = file ? Json::parse(file, nullptr, false) : Json();
    if (report.is_object()) outcome["rows"].push_back({i, sweep_row(points_[i], report)});
    if (const std::string text = said(i) + killed(i, report.is_object()); !text.empty())
      outcome["said"].push_back({i, text});
  }
  return outcome;
}

}  // namespace rocebox::cli
