// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/contracts/random_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rocebox::test {

std::int64_t RandomFields::draw(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  const auto span = static_cast<std::uint64_t>(high - low);
  const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(span));
  const std::uint64_t offset = random_() & ((std::uint64_t{2} << (random_() % bits)) - 1);
  return low + static_cast<std::int64_t>(std::min(offset, span));
}

std::int64_t RandomFields::draw(std::string_view name, std::int64_t low, std::int64_t high) {
  const auto own = limits_.values.find(name);
  return own == limits_.values.end() ? draw(low, high) : own->second[random_() % own->second.size()];
}

void RandomFields::write(std::string_view name, const std::string& value) {
  text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", name, value);
  written_.insert(std::string(name));
}

void RandomFields::boolean(std::string_view name, bool& value, std::string_view) {
  if (!chosen() || is_kept(name)) return;
  value = random_() % 2;
  write(name, value ? "true" : "false");
}

void RandomFields::integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view) {
  const std::int64_t high = std::max(range.low, std::min(range.high, limits_.integer_max));
  if (!chosen(name, value, high)) return;
  value = draw(name, range.low, high);
  write(name, fmt::format("{}", value));
}

void RandomFields::duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view) {
  const Nanos high = std::max(range.low, std::min(range.high, limits_.duration_max));
  if (!chosen(name, Nanos{0}, high)) return;
  value = draw(name, range.low, high);
  write(name, fmt::format("{}ns", value));
}

void RandomFields::duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view, Range<Nanos> range,
                               std::string_view doc) {
  Nanos time = value.value_or(range.low);
  duration(name, time, range, doc);
  if (given(name)) value = time;
}

void RandomFields::rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  if (!chosen() || is_kept(name)) return;
  const std::uint64_t low = std::max(range.low, limits_.rate_min);
  value = static_cast<std::uint64_t>(draw(static_cast<std::int64_t>(low), static_cast<std::int64_t>(range.high)));
  write(name, fmt::format("{}bps", value));
}

void RandomFields::bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  const std::uint64_t high = std::max(range.low, std::min(range.high, limits_.bytes_max));
  if (!chosen(name, value, high)) return;
  value = static_cast<std::uint64_t>(draw(name, static_cast<std::int64_t>(range.low), static_cast<std::int64_t>(high)));
  write(name, fmt::format("{}B", value));
}

void RandomFields::fraction(std::string_view name, double& value, Range<double> range, std::string_view) {
  if (!chosen() || is_kept(name)) return;
  const double share = static_cast<double>(random_() % 1000) / 1000;
  value = range.low + (range.high - range.low) * share * (random_() % 3 ? 0.05 : 1);
  write(name, fmt::format("{:.6f}", value));
}

// One in four is a group's, or nobody's.
void RandomFields::mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view) {
  if (!chosen(name, value, presence)) return;
  value = roce::Mac{0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(1 + random_() % 2)};
  if (random_() % 4 == 0)
    for (std::uint8_t& byte : *value) byte = static_cast<std::uint8_t>(random_());
  write(name, fmt::format("'{}'", roce::mac_text(*value)));
}

// Hosts 10 to 13 of two networks send the tests' traffic, with IPv6 headers, too; one in four is any, IPv4 or IPv6.
roce::IpAddress RandomFields::draw_address() {
  const auto byte = [this] { return static_cast<std::uint8_t>(random_()); };
  if (random_() % 4 != 0)
    return roce::ipv4(10, 0, static_cast<std::uint8_t>(random_() % 2), static_cast<std::uint8_t>(10 + random_() % 4));
  roce::IpAddress address = roce::ipv4(byte(), byte(), byte(), byte());
  if (random_() % 2 == 0)
    for (std::uint8_t& each : address) each = byte();
  return address;
}

void RandomFields::address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
                           std::string_view) {
  if (!chosen(name, value, presence)) return;
  value = draw_address();
  write(name, fmt::format("'{}'", roce::address_text(*value)));
}

void RandomFields::prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
                          std::string_view) {
  if (!chosen(name, value, presence)) return;
  const roce::IpAddress address = draw_address();
  const bool v4 = roce::is_ipv4(address);
  const unsigned all = v4 ? 32 : 128, bits = static_cast<unsigned>(random_() % (all + 1));
  roce::Prefix drawn{address, v4, bits};
  for (unsigned bit = address.size() * 8 - (all - bits); bit < address.size() * 8; bit++)
    drawn.address[bit / 8] = static_cast<std::uint8_t>(drawn.address[bit / 8] & ~(0x80u >> bit % 8));
  value = drawn;
  write(name, fmt::format("'{}'", roce::prefix_text(drawn)));
}

void RandomFields::choice(std::string_view name, int& index, std::span<const std::string_view> words,
                          std::string_view) {
  if ((!chosen() || is_kept(name)) && index >= 0) return;
  index = static_cast<int>(random_() % words.size());
  write(name, std::string(words[static_cast<std::size_t>(index)]));
}

std::string RandomFields::inner(const std::function<void(Fields&)>& fields) {
  std::string outer_text = std::exchange(text_, {});
  std::set<std::string> outer_written = std::exchange(written_, {});
  fields(*this);
  written_ = std::move(outer_written);
  return std::exchange(text_, std::move(outer_text));
}

void RandomFields::group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) {
  if (const std::string text = inner(fields); !text.empty()) write(name, "{" + text + "}");
}

void RandomFields::items(std::string_view name, std::string_view, std::size_t, std::size_t,
                         const std::function<void(Fields&, std::size_t)>& item) {
  if (is_kept(name)) return;
  std::string all;
  for (std::uint64_t left = random_() % limits_.items_one_in ? 0 : random_() % 3; left > 0; left--)
    all += (all.empty() ? "{" : ", {") + inner([&](Fields& f) { item(f, SIZE_MAX); }) + "}";
  if (!all.empty()) write(name, "[" + all + "]");
}

}  // namespace rocebox::test
