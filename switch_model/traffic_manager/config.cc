// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/traffic_manager/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/kernel/rate_queue.h"

namespace rocebox::switch_model {
namespace {

constexpr std::string_view kClassOfWords[] = {"none", "dscp", "pcp"};
constexpr std::string_view kSchedulerWords[] = {"strict", "round_robin"};
constexpr Range<std::uint64_t> kQueueBytes{0, kRateQueueBytesMax};
constexpr std::int64_t kPacketsMax = 1 << 20;
constexpr std::uint64_t kOverheadMax = 256;
// Frames without FCS: of an MTU of 1500 with a VLAN tag, which each buffer must have room for, and the longest.
constexpr std::uint64_t kFrameBytes = 1518, kJumboBytes = 9216;

int class_number(const std::string& text) {
  return text.size() == 1 && text[0] >= '0' && text[0] < '0' + static_cast<int>(kQueuesPerPort) ? text[0] - '0' : -1;
}

}  // namespace

namespace {

void refuse_two_rates(Fields& f, const std::vector<RateConfig>& rates) {
  std::set<std::string> seen;
  for (const RateConfig& row : rates)
    for (const std::string& port : row.ports)
      if (!seen.insert(port).second) f.refuse("rates", fmt::format("gives port `{}` two rates", port));
}

// A class is lossless when its senders are told to pause before there is no room.
void check_pauses(Fields& f, const TrafficManagerConfig& config) {
  const std::vector<std::string>& classes = config.pfc_classes;
  if (config.xon > config.xoff) f.refuse("xon", "must not exceed `xoff`");
  if (classes.empty()) {
    constexpr std::string_view kWhy = "is of no use without `classes`";
    f.exclude("xoff", kWhy);
    if (!f.given("xoff")) f.exclude("xon", kWhy);
    return;
  }
  for (auto text = classes.begin(); text != classes.end(); ++text)
    if (std::find(classes.begin(), text, *text) != text) f.refuse("classes", fmt::format("names {} twice", *text));
  if (config.xoff >= config.buffer)
    f.refuse("xoff", fmt::format("must be below `buffer` ({} bytes), or packets are lost before a pause is asked for",
                                 config.buffer));
  if (const auto held = static_cast<std::uint64_t>(config.packets) * kJumboBytes; config.xoff >= held)
    f.refuse("xoff", fmt::format("is never exceeded: `packets: {}` hold {} bytes at most", config.packets, held));
}

}  // namespace

std::uint8_t TrafficManagerConfig::lossless() const {
  unsigned bits = 0;
  for (const std::string& text : pfc_classes)
    if (const int number = class_number(text); number >= 0) bits |= 1u << number;
  return static_cast<std::uint8_t>(bits);
}

void TrafficManagerConfig::fields(Fields& f, const SwitchInfo& info) {
  const auto check_rate = [](Fields& g, std::uint64_t value) {
    if (value != 0 && value < kRateMin) g.refuse("rate", "must be 1kbps at least, or unlimited");
  };
  f.rate("rate", rate, {0, kRateMax},
         "rate of every port, in a topology that of its wire; unlimited: nothing waits unless it is paused");
  check_rate(f, rate);
  places_rates = !f.given("rate");
  f.list("rates", rates, kSwitchPortsMax, "rates of single ports", [&](Fields& g, RateConfig& row) {
    info.read_ports(g, "ports", row.ports, "ports of this rate");
    if (row.ports.empty()) g.refuse("ports", "must name one at least");
    g.rate("rate", row.rate, {0, kRateMax}, "their rate");
    check_rate(g, row.rate);
  });
  refuse_two_rates(f, rates);
  f.bytes("overhead", overhead, {0, kOverheadMax}, "bytes on the wire beyond the frame: preamble 8, FCS 4, gap 12");
  f.bytes("buffer", buffer, {kFrameBytes, kRateQueueBytesMax}, "bytes that all queues share");
  f.integer("packets", packets, {kBatchMax, kPacketsMax}, "packets that all queues share");
  f.fraction("alpha", alpha, {1.0 / 128, 16},
             "dynamic threshold: a queue may hold this times what is free of the buffer");
  f.choice("class_of", class_of, kClassOfWords, "what a packet's class, and so its queue, is taken from");
  f.choice("scheduler", scheduler, kSchedulerWords,
           "strict: the highest class first; round_robin: equal bytes to each");
  f.group("ecn", "CE marks on what enters a queue (RED on its length)", [&](Fields& g) {
    g.bytes("min", ecn_min, kQueueBytes, "Kmin: up to this length none is marked");
    g.bytes("max", ecn_max, kQueueBytes, "Kmax: from this length each is marked; 0: no marks");
    g.fraction("probability", ecn_probability, {0, 1}, "Pmax: probability just below `max`, from 0 at `min`");
    if (ecn_max != 0 && ecn_min > ecn_max) g.refuse("min", "must not exceed `max`");
    if (ecn_max == 0 && ecn_min != 0) g.refuse("max", "must be given when the group is used");
    if (ecn_max == 0) g.exclude("probability", "is of no use without `max`");
    if (ecn_max != 0 && ecn_min >= buffer)
      g.refuse("min", fmt::format("must be below `buffer` ({} bytes), or nothing is marked", buffer));
  });
  f.group("pfc", "lossless classes, with pause frames (802.1Qbb) in place of drops", [&](Fields& g) {
    g.texts("classes", pfc_classes, "classes that are paused and not dropped, such as [3]");
    for (const std::string& text : pfc_classes)
      if (class_number(text) < 0) g.refuse("classes", fmt::format("must be numbers from 0 to 7, found `{}`", text));
    g.bytes("xoff", xoff, kQueueBytes, "one port and class of which more bytes than these are buffered is paused");
    g.bytes("xon", xon, kQueueBytes, "one that is paused goes on when no more bytes than these are left of it");
    check_pauses(g, *this);
  });
  f.has_effect("pfc", class_of != ClassOf::kNothing || (lossless() & 1) || info.classifies, "class_of",
               "has no effect: with `class_of: none` every packet is of class 0");
  if (!waits() && ecn_max != 0) f.refuse("ecn", "needs `rate`, or lossless classes: else nothing waits to be marked");
}

std::uint64_t TrafficManagerConfig::rate_of(const SwitchInfo& info, Port port) const {
  for (const RateConfig& row : rates)
    if (std::ranges::find(row.ports, info.ports[port]) != row.ports.end()) return row.rate;
  return places_rates && port < placed.size() ? placed[port] : rate;
}

std::uint64_t TrafficManagerConfig::wire_rate_of(const SwitchInfo& info, Port port) const {
  return port < placed.size() ? placed[port] : rate_of(info, port);
}

bool TrafficManagerConfig::waits() const {
  const auto has_rate = [](const RateConfig& row) { return row.rate != 0; };
  return rate != 0 || lossless() != 0 || std::ranges::any_of(rates, has_rate) ||
         (places_rates && std::ranges::any_of(placed, [](std::uint64_t wire) { return wire != 0; }));
}

}  // namespace rocebox::switch_model
