// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nic_model/dpa/program.h"
#include "nic_model/pcc/process.h"
#include "runtime/component/component.h"

namespace rocebox::nic_model::pcc {
namespace {

// Those that come with rocebox, in the folder of device programs.
constexpr std::string_view kPrograms[] = {"rtt_control"};
constexpr std::size_t kSettingsMax = 256;

}  // namespace

void ParameterConfig::fields(Fields& f) {
  f.integer("slot", slot, {0, 7}, "slot whose algorithm it is of");
  f.integer("id", id, {0, 37}, "its number");
  f.integer("value", value, {0, 0xFFFFFFFF}, "what it is to be, in the range that the program gave it");
}

void PccConfig::fields(Fields& f) {
  f.text("program", program,
         fmt::format("of those that come with rocebox: {}; without one all is left to DCQCN, the internal algorithm",
                     fmt::join(kPrograms, ", ")));
  f.file("file", file, "one of your own, in its place: a shared object compiled against the device side of DOCA PCC");
  f.integer("slot", slot, {0, 15}, "slot of the program's whose algorithm flows have; 15: the internal algorithm's");
  f.integer("threads", threads, {1, 256}, "threads that share out flows, as the program can ask");
  f.list("parameters", parameters, kSettingsMax, "parameters that are to be other than the program has them");
  f.duration("watchdog", watchdog, {kMillisecond, 60 * kSecond},
             "CPU time that one event may take; then the program is stopped");
  if (!program.empty() && !file.path.empty()) f.refuse("file", "and `program` are one or the other");
  if (!program.empty() && std::ranges::find(kPrograms, program) == std::end(kPrograms))
    f.refuse("program", fmt::format("is none of: {}", fmt::join(kPrograms, ", ")));
  if (!has_program() && !parameters.empty()) f.refuse("parameters", "are of a program");
  if (file.is_read) try {
      Process::check(file.path, file.text);
    } catch (const ConfigError& error) {
      f.refuse("file", error.what());
    }
}

std::vector<ParameterValue> PccConfig::values() const {
  std::vector<ParameterValue> all;
  for (const ParameterConfig& one : parameters)
    all.push_back({static_cast<std::uint32_t>(one.slot), static_cast<std::uint32_t>(one.id),
                   static_cast<std::uint32_t>(one.value)});
  return all;
}

}  // namespace rocebox::nic_model::pcc
