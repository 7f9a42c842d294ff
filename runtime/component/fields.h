// SPDX-License-Identifier: BSD-3-Clause
// Config fields: a Config struct shows its fields once, and that serves parsing, checking, `rocebox kernels`,
// the JSON Schema and the dump of the effective configuration.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/component/input_file.h"
#include "runtime/component/option_values.h"
#include "runtime/packet/packet.h"
#include "runtime/roce/address.h"

namespace rocebox {

/// A closed range for a field's value, in the field's own unit.
template <class T>
struct Range {
  T low;
  T high;
};

/// Whether an address must come out. One that need not may be written as '' too, which is none.
enum class Presence : std::uint8_t { kOptional, kRequired };

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

/// A visitor over a Config's fields. The implementations read YAML, print help, make a schema, dump values.
/// Every `value` holds the default when the call is made and the configured value when it returns.
/// Names are snake_case; `doc` is one phrase without a final stop.
class Fields {
 public:
  virtual ~Fields() = default;

  virtual void boolean(std::string_view name, bool& value, std::string_view doc) = 0;
  /// A whole number, decimal or 0x hexadecimal.
  virtual void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view doc) = 0;
  /// Written with a unit: `250ns`, `10us`, `25ms`, `1.5s`.
  virtual void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) = 0;
  /// As duration(), or `otherwise`: a word that stands for none.
  virtual void duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise,
                           Range<Nanos> range, std::string_view doc) = 0;
  /// Bits per second, written with a unit: `10Gbps`, `400Mbps`; 0 is written `0` or `unlimited` when allowed.
  virtual void rate(std::string_view name, std::uint64_t& bits_per_second, Range<std::uint64_t> range,
                    std::string_view doc) = 0;
  /// Bytes, written with a unit: `64KiB`, `1500B`, `1MB`.
  virtual void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) = 0;
  /// A probability or share from 0 to 1, written `0.01%` or `0.0001`.
  virtual void fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) = 0;
  /// Written `02:00:00:00:00:01`.
  virtual void mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view doc) = 0;
  /// Of IPv4 or IPv6, written `10.0.0.1` or `2001:db8::1`.
  virtual void address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
                       std::string_view doc) = 0;
  /// Written `10.0.0.0/24` or `2001:db8::/64`, without address bits behind the length.
  virtual void prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
                      std::string_view doc) = 0;
  virtual void text(std::string_view name, std::string& value, std::string_view doc) = 0;
  /// A file beside the configuration, and what stands in it. It is an input of the run, which no output may overwrite.
  virtual void file(std::string_view name, InputFile& value, std::string_view doc) { text(name, value.path, doc); }
  /// A list of strings.
  virtual void texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) = 0;
  /// One of `words`; `index` is its place. A default of -1 is none of them: the field must be written.
  virtual void choice(std::string_view name, int& index, std::span<const std::string_view> words,
                      std::string_view doc) = 0;
  /// A nested mapping.
  virtual void group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) = 0;
  /// A list of mappings. `item` is called for each entry with a fresh index; in descriptions and schemas it is
  /// called once with index 0 to show the fields of an entry. Call through list() below.
  virtual void items(std::string_view name, std::string_view doc, std::size_t count, std::size_t count_max,
                     const std::function<void(Fields&, std::size_t index)>& item) = 0;

  /// Whether `name` was written in the configuration (false in descriptions and dumps). For fields whose
  /// presence means something.
  virtual bool given(std::string_view name) = 0;

  /// Says that the value of field `name` cannot be used, and why; call after the field was read. Where nothing
  /// is being parsed this does nothing.
  virtual void refuse(std::string_view name, std::string_view why) = 0;

  /// Says that field `name` means nothing beside what else is written, and why: refused where it is written, else no
  /// part of the effective configuration, which must load. Call after the field was read.
  virtual void exclude(std::string_view name, std::string_view why) {
    if (given(name)) refuse(name, why);
  }

  /// Says whether what is written as field `name` has an effect beside what field `choice` says. Where it has none that
  /// is no mistake, since one file may be for several choices, but a user is told, with `why`; not where a parameter or
  /// a setting makes the choice. Call after both were read. Here and in given() what a group has is `group.field`.
  virtual void has_effect(std::string_view /*name*/, bool /*has*/, std::string_view /*choice*/,
                          std::string_view /*why*/) {}

  /// As refuse(), of a place in the file that `name` names; lines and columns from 1.
  virtual void refuse_in(std::string_view name, const InputFile& /*file*/, int /*line*/, int /*column*/,
                         std::string_view why) {
    refuse(name, why);
  }

  /// What has come out so far of this mapping, in the order of the calls; where nothing is being read: nothing.
  virtual const OptionValues& values() const {
    static const OptionValues kNone;
    return kNone;
  }

  /// A list of entries that `show(Fields&, T&)` shows each: for those that need to know more than themselves.
  template <class T, class Show>
  void list(std::string_view name, std::vector<T>& values, std::size_t count_max, std::string_view doc, Show show) {
    items(name, doc, values.size(), count_max, [&](Fields& fields, std::size_t index) {
      if (index < values.size()) return show(fields, values[index]);
      T entry;
      show(fields, entry);
      if (keeps_items()) values.push_back(std::move(entry));
    });
  }
  /// A list of structs that each have `void fields(Fields&)`.
  template <class T>
  void list(std::string_view name, std::vector<T>& values, std::size_t count_max, std::string_view doc) {
    list(name, values, count_max, doc, [](Fields& fields, T& entry) { entry.fields(fields); });
  }

  /// An enum whose values are 0, 1, 2... in the order of `words`.
  template <class E>
  requires std::is_enum_v<E>
  void choice(std::string_view name, E& value, std::span<const std::string_view> words, std::string_view doc) {
    int index = static_cast<int>(value);
    choice(name, index, words, doc);
    value = static_cast<E>(index);
  }

 protected:
  /// True in the implementation that reads a configuration: list() keeps the entries it was shown.
  virtual bool keeps_items() const { return false; }
};

}  // namespace rocebox
