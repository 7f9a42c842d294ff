// SPDX-License-Identifier: BSD-3-Clause
#include "tests/swarm/random_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rocebox::swarm {
namespace {

// Slower or later than this a run of some thousand packets takes virtual days, and shows nothing more.
constexpr std::int64_t kRateMin = 1'000'000;
constexpr Nanos kDurationMax = 10 * kSecond;

}  // namespace

// Log-uniform above `low`: small values are the interesting ones.
std::int64_t RandomOptions::draw(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  const auto span = static_cast<std::uint64_t>(high - low);
  const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(span));
  const std::uint64_t offset = random_() & ((std::uint64_t{2} << (random_() % bits)) - 1);
  return low + static_cast<std::int64_t>(std::min(offset, span));
}

void RandomOptions::write(std::string_view name, const std::string& value) {
  text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", name, value);
  written_.insert(std::string(name));
}

void RandomOptions::boolean(std::string_view name, bool& value, std::string_view) {
  if (!chosen()) return;
  value = random_() % 2;
  write(name, value ? "true" : "false");
}

void RandomOptions::integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view) {
  if (!chosen()) return;
  value = draw(range.low, range.high);
  write(name, fmt::format("{}", value));
}

void RandomOptions::duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view) {
  if (!chosen()) return;
  value = draw(range.low, std::max(range.low, std::min(range.high, kDurationMax)));
  write(name, fmt::format("{}ns", value));
}

void RandomOptions::rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  if (!chosen()) return;
  const auto low = std::max(static_cast<std::int64_t>(range.low), kRateMin);
  value = static_cast<std::uint64_t>(draw(low, static_cast<std::int64_t>(range.high)));
  write(name, fmt::format("{}bps", value));
}

void RandomOptions::bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  if (!chosen()) return;
  value = static_cast<std::uint64_t>(draw(static_cast<std::int64_t>(range.low), static_cast<std::int64_t>(range.high)));
  write(name, fmt::format("{}B", value));
}

void RandomOptions::fraction(std::string_view name, double& value, Range<double> range, std::string_view) {
  if (!chosen()) return;
  const double share = static_cast<double>(random_() % 1000) / 1000;
  value = range.low + (range.high - range.low) * share * (random_() % 3 ? 0.05 : 1);
  write(name, fmt::format("{:.6f}", value));
}

void RandomOptions::choice(std::string_view name, int& index, std::span<const std::string_view> words,
                           std::string_view) {
  if (!chosen() && index >= 0) return;
  index = static_cast<int>(random_() % words.size());
  write(name, std::string(words[static_cast<std::size_t>(index)]));
}

std::string RandomOptions::inner(const std::function<void(Fields&)>& fields) {
  std::string outer_text = std::exchange(text_, {});
  std::set<std::string> outer_written = std::exchange(written_, {});
  fields(*this);
  written_ = std::move(outer_written);
  return std::exchange(text_, std::move(outer_text));
}

void RandomOptions::group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) {
  if (const std::string text = inner(fields); !text.empty()) write(name, "{" + text + "}");
}

void RandomOptions::items(std::string_view name, std::string_view, std::size_t, std::size_t,
                          const std::function<void(Fields&, std::size_t)>& item) {
  std::string all;
  for (std::uint64_t left = random_() % 4 ? 0 : random_() % 3; left > 0; left--)
    all += (all.empty() ? "{" : ", {") + inner([&](Fields& f) { item(f, SIZE_MAX); }) + "}";
  if (!all.empty()) write(name, "[" + all + "]");
}

}  // namespace rocebox::swarm
