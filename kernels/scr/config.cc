// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/component/component.h"

namespace rocebox::scr {
namespace {

// Those that come with rocebox, in the folder of device programs.
constexpr std::string_view kPolicies[] = {"fair", "swift", "paths", "credits", "backpressure", "dcqcn_policy", "probe"};
constexpr std::string_view kKindNames[] = {"tx", "rx", "ack", "nack", "cnp", "rtt", "peer", "host"};
constexpr std::string_view kThreadNames[] = {"fabric_threads", "peer_threads", "host_threads"};

void timing_fields(Fields& f, Timing& t) {
  const Range<Nanos> range{0, kSecond};
  f.duration("trigger", t.trigger, range, "from an event to its thread");
  f.duration("law", t.law, range, "the program, for one event; its thread is busy so long");
  f.duration("early", t.early, range, "an event that is only put aside; its thread is busy so long");
  f.duration("install", t.install, range, "from the end of the program to the rate in force");
  f.duration("rtt_request", t.rtt_request, range, "from the end of the program to the probe that leaves");
  f.duration("rtt_response", t.rtt_response, range, "from the answer to a probe to its thread");
  f.duration("message", t.message, range, "from a message of a peer or the host to its thread");
}

}  // namespace

void ParameterConfig::fields(Fields& f) {
  f.text("name", name, "its name in the program");
  f.integer("value", value, {INT64_MIN / 2, INT64_MAX / 2}, "what it is to be, in the program's own unit");
}

void HintConfig::fields(Fields& f) {
  f.integer("qpn", qpn, {1, 0xFFFFFF}, "number of the queue pair");
  f.integer("weight", weight, {0, kHintWeightMax}, "its share beside others; 0: the application has ended it");
  f.duration("at", at, {0, 3600 * kSecond}, "when the application says so");
}

void FrameworkConfig::fields(Fields& f) {
  f.text(
      "policy", policy,
      fmt::format("of those that come with rocebox: {}; without one all is left to DCQCN", fmt::join(kPolicies, ", ")));
  f.file("file", file, "one of your own, in its place: a shared object compiled against rocebox_scr.h");
  f.list("parameters", parameters, SCR_PARAMETERS_MAX,
         "parameters of the policy that are to be other than it has them");
  f.integer("flows", flows, {1, kFlowsMax}, "flows that the policy knows; others are DCQCN's");
  for (unsigned i = 0; i < 3; i++)
    f.integer(kThreadNames[i], threads[i], {1, kThreadsMax}, "threads that share out events of that domain");
  f.group("timing", "how long things take", [this](Fields& g) { timing_fields(g, timing); });
  f.group("coalescing", "what becomes of an event when one of its flow and kind waits already", [this](Fields& g) {
    for (unsigned kind = 0; kind < SCR_KINDS; kind++)
      g.choice(kKindNames[kind], coalescing[kind], kStrategyNames, "of events of this kind");
  });
  f.bytes("ceiling", ceiling, {64, 1 << 30}, "an event that tells of so many bytes takes in no more");
  f.integer("stable_after", stable_after, {1, 1 << 20},
            "rate_stable: events of a flow without a change of its rate (1 in 32) after which it is stable");
  f.integer("stable_events", stable_events, {1, 1 << 20},
            "rate_stable: events of a stable flow that are put aside until one is handled");
  f.duration("probe_timeout", probe_timeout, {kMicrosecond, kSecond}, "a probe that is not answered by then is lost");
  f.duration("host_period", host_period, {kMicrosecond, kSecond}, "how often a policy hears of the host and the port");
  f.duration("watchdog", watchdog, {kMillisecond, 60 * kSecond},
             "CPU time that one event may take; then the policy is stopped");
  f.integer("budget", budget, {1, std::int64_t{1} << 40},
            "blocks of code that one event may run through, where the policy counts them "
            "(gcc -fsanitize-coverage=trace-pc; clang: trace-pc,no-prune); then it is stopped");
  f.integer("trace", trace, {0, 1 << 20}, "changes of rates and paths that are listed in the report, the first ones");
  if (!policy.empty() && !file.path.empty()) f.refuse("file", "and `policy` are one or the other");
  if (!policy.empty() && std::ranges::find(kPolicies, policy) == std::end(kPolicies))
    f.refuse("policy", fmt::format("is none of: {}", fmt::join(kPolicies, ", ")));
  if (!has_policy() && !parameters.empty()) f.refuse("parameters", "are of a policy");
  if (file.is_read) try {
      Policy::check(file.path, file.text);
    } catch (const ConfigError& error) {
      f.refuse("file", error.what());
    }
}

std::vector<ParameterValue> FrameworkConfig::values() const {
  std::vector<ParameterValue> all;
  for (const ParameterConfig& one : parameters) all.emplace_back(one.name, one.value);
  return all;
}

void ControlConfig::fields(Fields& f) {
  FrameworkConfig::fields(f);
  f.list("hints", hints, kHintsMax, "what applications say of their queue pairs, in the order of time");
  f.text("hints_file", hints_file,
         "file in which applications of this machine write hints while it runs (rocebox_hints.h, rocebox-hints)");
  f.duration("hints_period", hints_period, {kMicrosecond, kSecond}, "how often it is looked at");
  if (!has_policy() && !hints_file.empty()) f.refuse("hints_file", "is for a policy");
  if (!std::ranges::is_sorted(hints, {}, &HintConfig::at)) f.refuse("hints", "are not in the order of `at`");
  for (const OptionValue& option : f.values())
    if (option.name != "policy" && option.name != "file")
      f.has_effect(option.name, has_policy(), "policy", "has no effect without a policy");
}

}  // namespace rocebox::scr
