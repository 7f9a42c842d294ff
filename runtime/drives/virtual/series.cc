// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/drives/virtual/empty_network.h"

namespace rocebox {
namespace {

// The first step, and samples without a step in the configuration: 128 to 256 of any run. Reading the counters of some
// hundred hosts that often would take a good part of the time: of these there are down to 32.
constexpr Nanos kFirstWidth = 4 * kMicrosecond;
constexpr std::size_t kRows = 256, kRowsOfMany = 64, kReadsMax = std::size_t{1} << 24;
// With one, as for goodput over time; both as far as so many numbers have room: 32 MiB.
constexpr std::size_t kRowsMax = 100'000, kRowsMin = 16, kNumbersMax = std::size_t{1} << 22;
// Directions of links and levels of devices that a report shows: those with the most.
constexpr std::size_t kShownMax = 256;

double in_thousandths(double value) { return std::round(value * 1000) / 1000; }

// What was counted in each sample.
Json increments(const std::vector<std::uint64_t>& samples) {
  Json all = Json::array();
  std::uint64_t before = 0;
  for (const std::uint64_t sample : samples) {
    all.push_back(sample - before);
    before = sample;
  }
  return all;
}

}  // namespace

Series::Series(const config::RunConfig& config, const Testbed& testbed, const SimWorkloads& workloads)
    : width_(config.sim.sample != 0 ? config.sim.sample : kFirstWidth) {
  std::unordered_map<std::string, std::size_t> places;
  for (unsigned i = 0; i < testbed.device_count(); i++) find_numbers(testbed, i, places);
  find_loads(config, testbed);
  for (std::size_t i = 0; i < workloads.rows().size(); i++)
    if (const auto* one = dynamic_cast<const Placer*>(workloads.rows()[i].workload.get())) placers_.push_back({i, one});
  const std::size_t numbers = std::max<std::size_t>(1, columns());
  const std::size_t reads = std::max<std::size_t>(1, counts_.size() + levels_.size() + 2 * loads_.size());
  const std::size_t most = config.sim.sample != 0 ? kRowsMax : std::clamp(kReadsMax / reads, kRowsOfMany, kRows);
  rows_max_ = std::clamp(kNumbersMax / numbers, kRowsMin, most) & ~std::size_t{1};
}

void Series::find_numbers(const Testbed& testbed, unsigned device,
                          std::unordered_map<std::string, std::size_t>& places) {
  testbed.device(device).books().for_each_counter([&](const CounterView& view) {
    if (view.kernel.empty() || !view.number || view.kind == CounterKind::kPeak) return;
    const std::string name = fmt::format("{}.{}", view.kernel_type, view.name);
    if (view.kind == CounterKind::kLevel) {
      levels_.push_back({fmt::format("{}.{}", testbed.device(device).name(), name), view.number});
      return;
    }
    const auto [place, is_new] = places.try_emplace(name, count_names_.size());
    if (is_new) count_names_.push_back(name);
    counts_.push_back({view.number, place->second});
  });
  testbed.device(device).books().for_each_level(
      [&](std::string_view kernel, const std::string& name, const Level& level) {
        levels_.push_back({fmt::format("{}.{}.{}", testbed.device(device).name(), kernel, name), &level});
      });
}

void Series::find_loads(const config::RunConfig& config, const Testbed& testbed) {
  const LinkRates rates(config);
  for (std::size_t i = 0; i < config.links.size(); i++) {
    const config::LinkConfig& link = config.links[i];
    const Device& device = testbed.device(static_cast<unsigned>(config.devices.size() + i));
    for (Port side = 0; side < 2; side++) {
      Load& load = loads_.emplace_back();
      load.name = fmt::format("{} from {}", link.name, link.between[side].text());
      load.bits_per_second = rates.of(i, side);
      device.books().for_each_counter([&](const CounterView& view) {
        if (view.port != device.ports()[side]) return;
        if (view.name == "rx_packets") load.packets = view.number;
        if (view.name == "rx_bytes") load.bytes = view.number;
      });
    }
  }
}

void Series::sample() {
  const std::size_t row = samples_.size();
  samples_.resize(row + columns());
  std::uint64_t* at = samples_.data() + row;
  for (const Count& count : counts_) at[count.place] += count.number->read();
  at += count_names_.size();
  for (const OneLevel& level : levels_) *at++ = level.number->read();
  for (const Load& load : loads_) *at++ = load.bytes->read() + kWireOverhead * load.packets->read();
  for (const OnePlacer& one : placers_) *at++ = static_cast<std::uint64_t>(one.placer->bytes_placed());
  rows_++;
}

// Of each two samples the later one stays: it ends where both end.
void Series::halve() {
  const auto row = [&](std::size_t i) { return samples_.begin() + static_cast<std::ptrdiff_t>(i * columns()); };
  rows_ /= 2;
  for (std::size_t i = 0; i < rows_; i++) std::copy_n(row(2 * i + 1), columns(), row(i));
  samples_.resize(rows_ * columns());
  width_ *= 2;
}

void Series::sample_until(Nanos now) {
  while (next() <= now) {
    end_ = next();
    sample();
    if (rows_ == rows_max_) halve();
  }
}

void Series::finish(Nanos now) {
  if (now > static_cast<Nanos>(rows_) * width_) sample();
  end_ = now;
}

std::vector<std::uint64_t> Series::samples_of(std::size_t column) const {
  std::vector<std::uint64_t> samples(rows_);
  for (std::size_t i = 0; i < rows_; i++) samples[i] = samples_[i * columns() + column];
  return samples;
}

std::vector<std::uint64_t> Series::placed(std::size_t row) const {
  const auto found = std::ranges::find(placers_, row, &OnePlacer::row);
  if (found == placers_.end()) return {};
  return samples_of(columns() - static_cast<std::size_t>(placers_.end() - found));
}

// The first `kShownMax` by what `most` says of their samples, without those of which it says 0.
template <class Most>
std::vector<Series::Busy> Series::busiest(std::size_t first_column, std::size_t count, Most most) const {
  std::vector<std::pair<std::uint64_t, std::size_t>> all;
  for (std::size_t i = 0; i < count; i++)
    if (const std::uint64_t value = most(i, samples_of(first_column + i)); value > 0) all.emplace_back(value, i);
  std::ranges::stable_sort(all, std::greater<>(), [](const auto& one) { return one.first; });
  if (all.size() > kShownMax) all.resize(kShownMax);
  std::vector<Busy> some;
  for (const auto& [value, number] : all) some.push_back({number, samples_of(first_column + number)});
  return some;
}

void Series::report(Json& report) const {
  if (rows_ == 0) return;
  Json& series = report["series"];
  Json& at = series["at_ns"] = Json::array();
  for (std::size_t i = 0; i < rows_; i++) at.push_back(static_cast<Nanos>(i) * width_);
  series["end_ns"] = end_;
  Json& counts = series["counts"] = Json::object();
  for (std::size_t i = 0; i < count_names_.size(); i++)
    if (const std::vector<std::uint64_t> samples = samples_of(i); samples.back() > 0)
      counts[count_names_[i]] = increments(samples);
  Json& levels = series["levels"] = Json::object();
  const auto highest = [](std::size_t, const auto& samples) { return *std::ranges::max_element(samples); };
  for (const Busy& level : busiest(count_names_.size(), levels_.size(), highest))
    levels[levels_[level.number].name] = level.samples;
  report_loads(series["utilisation"]);
}

void Series::report_loads(Json& shares) const {
  shares = Json::object();
  const auto in_all = [&](std::size_t i, const auto& samples) {
    return loads_[i].bits_per_second ? samples.back() : 0;
  };
  for (const Busy& busy : busiest(count_names_.size() + levels_.size(), loads_.size(), in_all)) {
    const Load& load = loads_[busy.number];
    Json& row = shares[load.name] = Json::array();
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < rows_; i++) {
      const Nanos begin = static_cast<Nanos>(i) * width_, end = i + 1 == rows_ ? end_ : begin + width_;
      const double bits = static_cast<double>(busy.samples[i] - before) * 8e9;
      row.push_back(end > begin ? in_thousandths(bits / static_cast<double>(end - begin) /
                                                 static_cast<double>(load.bits_per_second))
                                : 0.0);
      before = busy.samples[i];
    }
  }
}

}  // namespace rocebox
