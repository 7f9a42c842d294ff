// SPDX-License-Identifier: BSD-3-Clause
// A kernel type with one option of each kind, for tests of fields.
#pragma once
#include <string>
#include <vector>

#include "runtime/kernel/kernel_options.h"

namespace rocebox::test {

struct AllOptions {
  struct Event {
    std::int64_t psn = 0;
    std::string note;
    void fields(Fields& f) {
      f.integer("psn", psn, {0, 100}, "a number");
      f.text("note", note, "a text");
    }
  };
  enum class Mode { kSlow, kFast };
  static constexpr std::string_view kModes[] = {"slow", "fast"};

  bool on = false;
  std::int64_t count = 5;
  Nanos delay = kMillisecond;
  std::uint64_t rate = 0, room = 65536;
  double loss = 0.25;
  std::optional<roce::Mac> station;
  std::optional<roce::IpAddress> host;
  std::optional<roce::Prefix> network;
  std::string name;
  std::vector<std::string> words;
  Mode mode = Mode::kSlow;
  std::int64_t inner = 1;
  std::vector<Event> events;

  void fields(Fields& f) {
    f.boolean("on", on, "a switch");
    f.integer("count", count, {-10, 10}, "a count");
    f.duration("delay", delay, {0, kSecond}, "a delay");
    f.rate("rate", rate, {0, 100'000'000'000}, "a rate");
    f.bytes("room", room, {64, 1 << 20}, "a size");
    f.fraction("loss", loss, {0, 1}, "a share");
    f.mac("station", station, Presence::kOptional, "a MAC address");
    f.address("host", host, Presence::kOptional, "an IP address");
    f.prefix("network", network, Presence::kOptional, "a prefix");
    f.text("name", name, "a name");
    f.texts("words", words, "words");
    f.choice("mode", mode, kModes, "a mode");
    f.group("group", "nested", [&](Fields& g) { g.integer("inner", inner, {0, 9}, "inside"); });
    f.list("events", events, 3, "events");
    if (count == 7) f.refuse("count", "is unlucky");
  }
};

struct OptionsKernel final : Kernel {
  using Config = AllOptions;
  OptionsKernel(const Config&, Stats&) {}
  void process(Context&, Port, Batch&) override {}
};
inline const Component kOptionsType = two_sided_kernel<OptionsKernel>("options", "one option of each kind");

}  // namespace rocebox::test
