// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/traffic.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <utility>

#include "runtime/lab/checks.h"
#include "runtime/lab/machines.h"
#include "runtime/lab/namespaces.h"
#include "runtime/lab/output.h"

namespace rocebox::lab {
namespace {

constexpr Nanos kLookAgain = 20 * kMillisecond;  // while waiting for a word or a port, which nothing announces
constexpr Nanos kEndPatience = 5 * kSecond;      // from SIGTERM to SIGKILL
// The same in a virtual machine, which must be asked; and how much later than us it may notice a timeout.
constexpr Nanos kMachinePatience = 30 * kSecond;
constexpr std::size_t kSaidBytes = 4096, kSaidLines = 20;

std::string folder_of(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

TrafficRun::TrafficRun(const LabConfig& lab, std::string folder, Appliances& appliances, Interrupts& interrupts,
                       Progress progress)
    : lab_(lab),
      folder_(std::move(folder)),
      appliances_(appliances),
      interrupts_(interrupts),
      progress_(std::move(progress)) {}

std::string TrafficRun::file(const Step& step, const char* kind) const {
  return fmt::format("{}/traffic.{}.{}", folder_, step.config->name, kind);
}

std::string TrafficRun::output_file(const Step& step) const {
  return step.config->output.empty() ? file(step, "stdout") : step.config->output;
}

void TrafficRun::fail(const Step& step, const std::string& why) const {
  std::string said = last_lines(read_tail(file(step, "stderr"), kSaidBytes), kSaidLines);
  if (said.empty()) said = last_lines(read_tail(output_file(step), kSaidBytes), kSaidLines);
  throw std::runtime_error(fmt::format("{}: `{}` in {}: {}{}{}", lab_.place_text(step.config->place), step.config->name,
                                       step.config->host, why, said.empty() ? "; it said nothing" : "; it said:\n",
                                       said));
}

void TrafficRun::run(std::vector<std::string>& failures) {
  try {
    for (std::size_t i = 0; i < lab_.traffic.size(); i++) {
      if (progress_) progress_(lab_.traffic[i]);
      Step& step = start(lab_.traffic[i]);
      if (step.config->background)
        until_ready(step);
      else
        foreground(step);
    }
    if (const std::string why = appliances_.why_ended(); !why.empty()) throw std::runtime_error(why);
  } catch (const std::exception& failure) {
    failures.emplace_back(failure.what());
  }
  end_background(failures);
}

std::vector<std::string> TrafficRun::words(const TrafficStep& config) const {
  std::vector<std::string> all = {"sh", "-c", config.run};
  if (lab_.host(config.host)->machine) {
    constexpr Nanos kAny = std::numeric_limits<Nanos>::max();
    all = in_machine(folder_, config.host, config.background ? kAny : config.timeout + kMachinePatience, all);
  }
  return within(namespace_name(lab_.name, config.host), all);
}

TrafficRun::Step& TrafficRun::start(const TrafficStep& config) {
  const std::string base = fmt::format("{}/traffic.{}", folder_, config.name);
  steps_.push_back({&config,
                    Process({.words = words(config),
                             .environment = {"ROCEBOX_LAB_FOLDER=" + folder_},
                             .folder = folder_of(lab_.file),
                             .out = config.output.empty() ? base + ".stdout" : config.output,
                             .error = base + ".stderr"}),
                    steady_now()});
  return steps_.back();
}

// Until the step or an appliance ends, or for that time.
void TrafficRun::wait_a_moment(const Step& step, Nanos nanos) {
  std::vector<int> descriptors = appliances_.descriptors();
  descriptors.push_back(step.process.descriptor());
  interrupts_.wait(descriptors, nanos);
  if (const std::string why = appliances_.why_ended(); !why.empty()) throw std::runtime_error(why);
}

void TrafficRun::check_exit(Step& step) const {
  const int status = *step.process.status();
  if (step.config->exit != Traffic::kAnyExit && status != step.config->exit)
    fail(step, fmt::format("exit status {}, expected {}", status, step.config->exit));
}

void TrafficRun::foreground(Step& step) {
  const Nanos deadline = step.started + step.config->timeout;
  while (!step.process.status() && steady_now() < deadline) wait_a_moment(step, deadline - steady_now());
  step.ended = steady_now();
  if (step.process.status()) return check_exit(step);
  step.timed_out = true;
  end(step);
  fail(step, fmt::format("not done after {:.3f} s (`timeout:`)", static_cast<double>(step.config->timeout) / 1e9));
}

bool TrafficRun::is_ready(Step& step) const {
  const TrafficStep& config = *step.config;
  if (!config.ready.empty() && read_tail(output_file(step), kOutputBytesMax).find(config.ready) == std::string::npos &&
      read_tail(file(step, "stderr"), kOutputBytesMax).find(config.ready) == std::string::npos)
    return false;
  return config.ready_port == 0 || listens(step);
}

bool TrafficRun::listens(Step& step) const {
  const TrafficStep& config = *step.config;
  if (!lab_.host(config.host)->machine)
    return is_listening(step.process.id(), static_cast<unsigned>(config.ready_port));
  if (!step.listener)
    step.listener.emplace(Command{.words = within(namespace_name(lab_.name, config.host),
                                                  in_machine(folder_, config.host, config.timeout,
                                                             {"sh", "-c", until_listening(config.ready_port)}))});
  return step.listener->status() == 0;
}

void TrafficRun::until_ready(Step& step) {
  const Nanos deadline = step.started + step.config->timeout;
  while (!is_ready(step)) {
    if (step.process.status() && !is_ready(step)) fail(step, "it has ended, and was never ready");
    if (steady_now() >= deadline) {
      step.timed_out = true;
      fail(step, fmt::format("not ready after {:.3f} s (`timeout:`)", static_cast<double>(step.config->timeout) / 1e9));
    }
    wait_a_moment(step, step.process.status() ? 0 : kLookAgain);
  }
}

void TrafficRun::end(Step& step) {
  step.process.signal(SIGTERM);
  if (step.listener) step.listener->signal(SIGTERM);
  const Nanos deadline = steady_now() + (lab_.host(step.config->host)->machine ? kMachinePatience : kEndPatience);
  while (!step.process.status()) {
    const Nanos left = deadline - steady_now();
    if (left <= 0) step.process.signal(SIGKILL);
    interrupts_.wait({step.process.descriptor()}, left > 0 ? left : kLookAgain);
  }
  step.ended = steady_now();
}

void TrafficRun::end_background(std::vector<std::string>& failures) {
  for (Step& step : steps_) {
    if (step.ended >= 0) continue;
    step.ended_by_lab = !step.process.status();
    end(step);
    if (step.ended_by_lab) continue;
    try {
      check_exit(step);
    } catch (const std::exception& failure) {
      failures.emplace_back(failure.what());
    }
  }
}

Json TrafficRun::row(Step& step) const {
  const TrafficStep& config = *step.config;
  Json row = {{"host", config.host},
              {"run", config.run},
              {"exit", step.process.status().value_or(-1)},
              {"elapsed_ns", step.ended - step.started},
              {"timed_out", step.timed_out},
              {"ended_by_lab", step.ended_by_lab}};
  const std::string printed = read_tail(output_file(step), kOutputBytesMax);
  add_numbers(config.numbers, printed + "\n" + read_tail(file(step, "stderr"), kOutputBytesMax), row);
  if (config.json) row["json"] = Json::parse(printed, nullptr, false);
  if (config.json && row["json"].is_discarded()) row["json"] = "no JSON was printed";
  return row;
}

Json TrafficRun::report() {
  Json all = Json::object();
  for (Step& step : steps_) all[step.config->name] = row(step);
  return all;
}

Json TrafficRun::skeleton(const LabConfig& lab) {
  Json all = Json::object();
  for (const TrafficStep& config : lab.traffic) {
    Json row = {{"exit", 0}, {"elapsed_ns", 0}, {"timed_out", false}, {"ended_by_lab", false}};
    for (const std::string& text : config.numbers) {
      NumberRule rule;
      std::string why;
      if (parse_number_rule(text, rule, why)) row[rule.name] = 0;
    }
    if (config.json) row["json"] = Json::array();  // what will stand there is not known
    all[config.name] = std::move(row);
  }
  return all;
}

}  // namespace rocebox::lab
