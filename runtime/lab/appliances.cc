// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/appliances.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "runtime/lab/namespaces.h"
#include "runtime/limits.h"

namespace rocebox::lab {
namespace {

namespace fs = std::filesystem;
constexpr Nanos kReadyPatience = 60 * kSecond;  // a start takes a second; ten on two busy cores may take ten
constexpr Nanos kStopPatience = 20 * kSecond;   // beyond `drain:`
constexpr std::size_t kSaidBytes = 4096, kSaidLines = 20;
constexpr const char* kReportSuffix = ".report.json";
constexpr const char* kDrain = "drain";  // in a lab's folder, in nanoseconds

int notify_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error(path + ": too long for a socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0 || bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(fmt::format("{}: no socket: {}", path, std::strerror(errno)));
  return descriptor;
}

// Whether the process at the other end has said that packets flow.
bool says_ready(int descriptor) {
  char text[4096];
  for (ssize_t got; (got = recv(descriptor, text, sizeof text, 0)) > 0;)
    if (std::string_view(text, static_cast<std::size_t>(got)).starts_with("READY=1")) return true;
  return false;
}

std::string own_program() { return fs::read_symlink("/proc/self/exe").string(); }

const char* bind_word(Bind bind) { return bind == Bind::kTap ? "tap" : bind == Bind::kAfXdp ? "af_xdp" : "af_packet"; }

// Paths that do not depend on where the configuration is read.
void make_absolute(std::string& path) {
  if (!path.empty() && path != "-" && path != "-.pcapng") path = fs::absolute(path).string();
}

Json report_in(const std::string& file) {
  std::ifstream stream(file);
  return stream ? Json::parse(stream, nullptr, false) : Json();
}

}  // namespace

Appliances::Appliances(const LabConfig& lab, std::string folder, std::vector<std::string> plugins)
    : lab_(lab), folder_(std::move(folder)), plugins_(std::move(plugins)) {}

Appliances::~Appliances() {
  for (Running& each : all_)
    if (each.notify >= 0) close(each.notify);
}

std::string Appliances::file(const ApplianceConfig& appliance, const char* kind) const {
  return fmt::format("{}/{}.{}", folder_, appliance.name, kind);
}

std::string Appliances::said_by(const ApplianceConfig& appliance) const {
  return last_lines(read_tail(file(appliance, "stderr"), kSaidBytes), kSaidLines);
}

std::string Appliances::configuration_file(const ApplianceConfig& appliance) const {
  if (!appliance.file.empty()) return appliance.file;
  config::RunConfig config = appliance.config;
  for (std::string& plugin : config.plugins) make_absolute(plugin);
  for (config::CaptureBinding& binding : config.captures) {
    for (std::string& in : binding.in) make_absolute(in);
    make_absolute(binding.out);
  }
  const std::string path = file(appliance, "yaml");
  std::ofstream(path) << config::effective_yaml(config);
  return path;
}

void Appliances::start_one(const ApplianceConfig& appliance, std::size_t number) {
  const std::string socket = fmt::format("{}/ready{}", folder_, number);
  std::vector<std::string> words = {own_program(), "run", configuration_file(appliance)};
  for (const WireConfig& wire : lab_.wires)
    for (const End& end : wire.ends)
      if (end.node == appliance.name)
        words.insert(words.end(),
                     {"--port", fmt::format("{}={{{}: '{}'}}", end.port, bind_word(appliance.bind), end.interface)});
  if (!appliance.cores.empty()) words.insert(words.end(), {"--cores", appliance.cores});
  for (const std::string& plugin : plugins_) words.insert(words.end(), {"--plugin", plugin});
  if (has_instance_name(lab_.name, appliance.name))
    words.insert(words.end(), {"--name", instance_name(lab_.name, appliance.name)});
  words.insert(words.end(), {"--json", fmt::format("{}/{}{}", folder_, appliance.name, kReportSuffix)});
  const int descriptor = notify_socket(socket);
  try {
    all_.push_back({&appliance,
                    Process({.words = within(namespace_name(lab_.name, appliance.name), words),
                             .environment = {"NOTIFY_SOCKET=" + socket},
                             .out = file(appliance, "stdout"),
                             .error = file(appliance, "stderr")}),
                    descriptor});
  } catch (...) {
    close(descriptor);
    throw;
  }
}

void Appliances::start(Interrupts& interrupts) {
  Nanos drain = 0;
  for (const ApplianceConfig& appliance : lab_.appliances) drain = std::max(drain, appliance.config.drain);
  std::ofstream(fmt::format("{}/{}", folder_, kDrain)) << drain << '\n';
  for (std::size_t i = 0; i < lab_.appliances.size(); i++) start_one(lab_.appliances[i], i);
  const Nanos deadline = steady_now() + kReadyPatience;
  while (true) {
    std::vector<int> waiting;
    const Running* late = nullptr;
    for (Running& each : all_) {
      if (each.notify >= 0 && says_ready(each.notify)) close(std::exchange(each.notify, -1));
      if (each.notify >= 0) waiting.push_back(each.notify), late = &each;
      if (each.process.status() == 2)
        throw ConfigError(fmt::format("{}: appliance `{}` does not start: {}", lab_.place_text(each.config->place),
                                      each.config->name, said_by(*each.config)));
    }
    if (const std::string why = why_ended(); !why.empty()) throw std::runtime_error(why);
    if (waiting.empty()) return;
    if (steady_now() >= deadline)
      throw std::runtime_error(fmt::format("appliance `{}` is not ready after {} s; it says: {}", late->config->name,
                                           kReadyPatience / kSecond, said_by(*late->config)));
    for (int descriptor : descriptors()) waiting.push_back(descriptor);
    interrupts.wait(waiting, deadline - steady_now());
  }
}

std::vector<int> Appliances::descriptors() const {
  std::vector<int> all;
  for (const Running& each : all_) all.push_back(each.process.descriptor());
  return all;
}

std::string Appliances::why_ended() {
  for (Running& each : all_)
    if (const auto status = each.process.status())
      return fmt::format("appliance `{}` has ended with exit status {}; it said: {}", each.config->name, *status,
                         said_by(*each.config));
  return "";
}

// False when those that are left are to be killed because of a signal.
bool Appliances::wait_for_end(Nanos deadline, std::vector<std::string>& failures, Interrupts& interrupts) {
  while (steady_now() < deadline) {
    std::vector<int> left;
    for (Running& each : all_)
      if (!each.process.status()) left.push_back(each.process.descriptor());
    if (left.empty()) return true;
    try {
      interrupts.wait(left, deadline - steady_now());
    } catch (const Interrupted& signal) {
      if (interrupts.heard() > 1) return false;
      failures.emplace_back(signal.what());
      fmt::print(stderr, "rocebox: {}: appliances let out what they hold; once more kills them\n", signal.what());
    }
  }
  return true;
}

void Appliances::stop(std::vector<std::string>& failures, Interrupts& interrupts) {
  Nanos patience = kStopPatience;
  for (Running& each : all_) {
    each.process.signal(SIGTERM);
    patience = std::max(patience, kStopPatience + each.config->config.drain);
  }
  const bool in_time = wait_for_end(steady_now() + patience, failures, interrupts);
  const std::string why = in_time ? fmt::format("did not end within {} s and was killed", patience / kSecond)
                                  : "was killed by a second signal before it had ended";
  for (Running& each : all_) {
    if (!each.process.status()) {
      each.process.signal(SIGKILL);
      failures.push_back(fmt::format("appliance `{}` {}", each.config->name, why));
    } else if (*each.process.status() != 0) {
      failures.push_back(fmt::format("appliance `{}` ended with exit status {}; it said: {}", each.config->name,
                                     *each.process.status(), said_by(*each.config)));
    }
  }
}

Json Appliances::reports() const {
  Json all = Json::object();
  const Json found = reports_in(folder_);
  for (const ApplianceConfig& appliance : lab_.appliances)
    if (found.contains(appliance.name)) all[appliance.name] = found[appliance.name];
  return all;
}

std::string instance_name(const std::string& lab, const std::string& appliance) {
  return fmt::format("{}.{}", lab, appliance);
}

bool has_instance_name(const std::string& lab, const std::string& appliance) {
  return instance_name(lab, appliance).size() <= kInstanceNameMax;
}

Nanos drain_in(const std::string& folder) {
  std::ifstream stream(fmt::format("{}/{}", folder, kDrain));
  Nanos drain = 0;
  return stream >> drain ? std::max<Nanos>(drain, 0) : config::RunConfig().drain;
}

Json reports_in(const std::string& folder) {
  Json all = Json::object();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kReportSuffix)) continue;
    if (Json report = report_in(entry.path().string()); report.is_object())
      all[name.substr(0, name.size() - std::string_view(kReportSuffix).size())] = std::move(report);
  }
  return all;
}

}  // namespace rocebox::lab
