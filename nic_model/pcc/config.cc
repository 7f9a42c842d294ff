// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/pcc/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "nic_model/dpa/program.h"
#include "nic_model/pcc/process.h"
#include "runtime/component/component.h"

namespace rocebox::nic_model::pcc {
namespace {

// Those that come with rocebox, in the folder of device programs.
constexpr std::string_view kPrograms[] = {"rtt_control", "swift_control", "load_control"};
constexpr std::string_view kNotificationPrograms[] = {"load_np"};
constexpr std::size_t kSettingsMax = 256;
constexpr std::string_view kOfProgram = "has no effect without a program";

// Which program: one that comes with rocebox, or a file.
void program_fields(Fields& f, std::string& program, InputFile& file, std::span<const std::string_view> known,
                    std::string_view without) {
  f.text("program", program, fmt::format("of those that come with rocebox: {}; {}", fmt::join(known, ", "), without));
  f.file("file", file, "one of your own, in its place: a shared object compiled against the device side of DOCA PCC");
  if (!program.empty() && !file.path.empty()) f.refuse("file", "and `program` are one or the other");
  if (!program.empty() && std::ranges::find(known, program) == known.end())
    f.refuse("program", fmt::format("is none of: {}", fmt::join(known, ", ")));
  if (file.is_read) try {
      Process::check(file.path, file.text);
    } catch (const ConfigError& error) {
      f.refuse("file", error.what());
    }
}

void mailbox_field(Fields& f, std::vector<std::string>& mailbox, bool has_program) {
  f.texts(
      "mailbox", mailbox,
      "messages of the host to the program, in their order, each bytes in hexadecimal: `01 00 00 00`; those that are "
      "new in a change are sent then");
  if (!has_program && !mailbox.empty()) f.refuse("mailbox", "is of a program");
  if (mailbox.size() > kMailsMax) f.refuse("mailbox", fmt::format("has more than {} messages", kMailsMax));
  for (const std::string& one : mailbox)
    if (!mail_bytes(one))
      f.refuse("mailbox",
               fmt::format("has `{}`, which is not 1 to {} bytes of two hexadecimal digits each", one, kMailBytesMax));
}

}  // namespace

void NotificationConfig::fields(Fields& f) {
  program_fields(f, program, file, kNotificationPrograms, "without one probes are answered with three times");
  f.integer("threads", threads, {1, 256}, "threads that share out queue pairs, as the program can ask");
  f.has_effect("threads", has_program(), "program", kOfProgram);
  mailbox_field(f, mailbox, has_program());
}

void ParameterConfig::fields(Fields& f) {
  f.integer("slot", slot, {0, 7}, "slot whose algorithm it is of");
  f.integer("id", id, {0, DOCA_PCC_DEV_MAX_NUM_PARAMS_PER_ALGO - 1}, "its number");
  f.integer("value", value, {0, 0xFFFFFFFF}, "what it is to be, in the range that the program gave it");
}

void PccConfig::fields(Fields& f) {
  program_fields(f, program, file, kPrograms, "without one all is left to DCQCN, the internal algorithm");
  f.integer("slot", slot, {0, 15}, "slot of the program's whose algorithm flows have; 15: the internal algorithm's");
  f.integer("threads", threads, {1, 256}, "threads that share out flows, as the program can ask");
  f.list("parameters", parameters, kSettingsMax, "parameters that are to be other than the program has them");
  f.duration("watchdog", watchdog, {kMillisecond, 60 * kSecond},
             "CPU time that one event may take; then the program is stopped");
  f.integer("budget", budget, {1, std::int64_t{1} << 40},
            "blocks of code that one event may run through, where the program counts them "
            "(gcc -fsanitize-coverage=trace-pc; clang: trace-pc,no-prune); then it is stopped");
  if (!has_program() && !parameters.empty()) f.refuse("parameters", "are of a program");
  mailbox_field(f, mailbox, has_program());
  f.group("notification_point", "a program that writes what the answers to peers' probes carry",
          [this](Fields& g) { notification.fields(g); });
  for (const char* name : {"slot", "threads"}) f.has_effect(name, has_program(), "program", kOfProgram);
  for (const char* name : {"watchdog", "budget"})
    f.has_effect(name, has_program() || notification.has_program(), "program", kOfProgram);
}

std::vector<ParameterValue> PccConfig::values() const {
  std::vector<ParameterValue> all;
  for (const ParameterConfig& one : parameters)
    all.push_back({static_cast<std::uint32_t>(one.slot), static_cast<std::uint32_t>(one.id),
                   static_cast<std::uint32_t>(one.value)});
  return all;
}

}  // namespace rocebox::nic_model::pcc
