// SPDX-License-Identifier: BSD-3-Clause
// Report: where a kernel writes what its counters cannot say: tables of flows, lists of events.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace rocebox {

/// A builder of one object of the report. The same content is shown as text and as JSON; entries keep the order
/// in which they were added, so equal runs give equal bytes.
///
/// The JSON keeps plain numbers; the text shows a number by the last words of its name:
///   psn, number            an identifier: its digits alone, `-` when negative ("any", "none")
///   packet, event          a number in a list that begins with 1: its digits alone, `-` below 1
///   qpn                    the same in hexadecimal, 0x000011
///   bits_per_second        a rate with a unit; the name is shown without these words
///   packets, bytes, times, count   in a table: what a row weighs; of a long one the heaviest are shown
///   at                     (a duration) in a table: its rows stand in the order of time, the first are shown
///   any other              a count, its digits in groups of three; one that is 0 is left out
class Report {
 public:
  virtual ~Report() = default;
  /// The report is made before the run, for the names that expectations may use: what has a value only later is to be
  /// written, too, as 0.
  virtual bool wants_names() const { return false; }
  virtual void count(std::string_view name, std::int64_t value) = 0;
  /// A high-water mark. The shards of a live run report one after another into the same object: counts and levels add
  /// up there, of high-water marks the highest stays.
  virtual void peak(std::string_view name, std::int64_t value) { count(name, value); }
  /// What is the same in each shard, such as an option: the first one's stays.
  virtual void setting(std::string_view name, std::int64_t value) { count(name, value); }
  virtual void setting(std::string_view name, double value) { real(name, value); }
  /// A number with a fraction. Give values that are exact functions of the packets, never of a clock.
  virtual void real(std::string_view name, double value) = 0;
  virtual void flag(std::string_view name, bool value) = 0;
  virtual void text(std::string_view name, std::string_view value) = 0;
  /// A time or time span, in nanoseconds; the text shows it with a unit, the JSON as a whole number `NAME_ns`.
  virtual void duration(std::string_view name, std::int64_t nanos) = 0;
  /// A duration that is known only at the end of what it tells of: without a value it is written for names alone.
  void result(std::string_view name, std::optional<std::int64_t> nanos) {
    if (nanos || wants_names()) duration(name, nanos.value_or(0));
  }
  /// A nested object.
  virtual void object(std::string_view name, const std::function<void(Report&)>& fill) = 0;
  /// A table: `fill` is called `rows` times. The text shows one line a row.
  virtual void table(std::string_view name, std::size_t rows,
                     const std::function<void(Report&, std::size_t row)>& fill) = 0;
};

}  // namespace rocebox
