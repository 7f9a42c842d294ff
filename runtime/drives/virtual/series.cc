// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/virtual/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/drives/virtual/empty_network.h"

namespace rocebox {
namespace {

// The first step, and samples without a step in the configuration: 128 to 256 of any run.
constexpr Nanos kFirstWidth = 4 * kMicrosecond;
constexpr std::size_t kRows = 256;
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

// The first `kShownMax` by what `most` says of them, without those of which it says 0.
template <class T, class Most>
std::vector<const T*> busiest(const std::vector<T>& all, Most most) {
  std::vector<const T*> some;
  for (const T& one : all)
    if (most(one) > 0) some.push_back(&one);
  std::ranges::stable_sort(some, std::greater<>(), [&](const T* one) { return most(*one); });
  if (some.size() > kShownMax) some.resize(kShownMax);
  return some;
}

}  // namespace

Series::Series(const config::RunConfig& config, const Testbed& testbed)
    : width_(config.sim.sample != 0 ? config.sim.sample : kFirstWidth) {
  std::unordered_map<std::string, std::size_t> places;
  for (unsigned i = 0; i < testbed.device_count(); i++) find_numbers(testbed, i, places);
  find_loads(config, testbed);
  const std::size_t numbers = std::max<std::size_t>(1, counts_.size() + levels_.size() + loads_.size());
  rows_max_ = std::clamp(kNumbersMax / numbers, kRowsMin, config.sim.sample != 0 ? kRowsMax : kRows) & ~std::size_t{1};
}

void Series::find_numbers(const Testbed& testbed, unsigned device,
                          std::unordered_map<std::string, std::size_t>& places) {
  testbed.device(device).books().for_each_counter([&](const CounterView& view) {
    if (view.kernel.empty() || !view.number || view.kind == CounterKind::kPeak) return;
    const std::string name = fmt::format("{}.{}", view.kernel_type, view.name);
    if (view.kind == CounterKind::kLevel) {
      levels_.push_back({fmt::format("{}.{}", testbed.device(device).name(), name), view.number, {}});
      return;
    }
    const auto [place, is_new] = places.try_emplace(name, counts_.size());
    if (is_new) counts_.push_back({name, {}, {}});
    counts_[place->second].numbers.push_back(view.number);
  });
}

void Series::find_loads(const config::RunConfig& config, const Testbed& testbed) {
  for (std::size_t i = 0; i < config.links.size(); i++) {
    const config::LinkConfig& link = config.links[i];
    const Device& device = testbed.device(static_cast<unsigned>(config.devices.size() + i));
    for (Port side = 0; side < 2; side++) {
      Load& load = loads_.emplace_back();
      load.name = fmt::format("{} from {}", link.name, link.between[side].text());
      load.bits_per_second = EmptyNetwork::rate_of(link, side);
      device.books().for_each_counter([&](const CounterView& view) {
        if (view.port != device.ports()[side]) return;
        if (view.name == "rx_packets") load.packets = view.number;
        if (view.name == "rx_bytes") load.bytes = view.number;
      });
    }
  }
}

template <class Each>
void Series::for_each_samples(Each each) {
  for (Count& count : counts_) each(count.samples);
  for (OneLevel& level : levels_) each(level.samples);
  for (Load& load : loads_) each(load.samples);
}

void Series::sample() {
  for (Count& count : counts_) {
    std::uint64_t sum = 0;
    for (const CounterValue* number : count.numbers) sum += number->read();
    count.samples.push_back(sum);
  }
  for (OneLevel& level : levels_) level.samples.push_back(level.number->read());
  for (Load& load : loads_) load.samples.push_back(load.bytes->read() + kWireOverhead * load.packets->read());
  rows_++;
}

// Of each two samples the later one stays: it ends where both end.
void Series::halve() {
  for_each_samples([](std::vector<std::uint64_t>& samples) {
    for (std::size_t i = 0; i < samples.size() / 2; i++) samples[i] = samples[2 * i + 1];
    samples.resize(samples.size() / 2);
  });
  rows_ /= 2;
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

void Series::report(Json& report) const {
  if (rows_ == 0) return;
  Json& series = report["series"];
  Json& at = series["at_ns"] = Json::array();
  for (std::size_t i = 0; i < rows_; i++) at.push_back(static_cast<Nanos>(i) * width_);
  series["end_ns"] = end_;
  Json& counts = series["counts"] = Json::object();
  for (const Count& count : counts_)
    if (count.samples.back() > 0) counts[count.name] = increments(count.samples);
  Json& levels = series["levels"] = Json::object();
  for (const OneLevel* level :
       busiest(levels_, [](const OneLevel& one) { return *std::ranges::max_element(one.samples); }))
    levels[level->name] = level->samples;
  Json& shares = series["utilisation"] = Json::object();
  for (const Load* load :
       busiest(loads_, [](const Load& one) { return one.bits_per_second ? one.samples.back() : 0; })) {
    Json& row = shares[load->name] = Json::array();
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < rows_; i++) {
      const Nanos begin = static_cast<Nanos>(i) * width_, end = i + 1 == rows_ ? end_ : begin + width_;
      const double bits = static_cast<double>(load->samples[i] - before) * 8e9;
      row.push_back(end > begin ? in_thousandths(bits / static_cast<double>(end - begin) /
                                                 static_cast<double>(load->bits_per_second))
                                : 0.0);
      before = load->samples[i];
    }
  }
}

}  // namespace rocebox
