// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/machines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "runtime/config/text_file.h"
#include "runtime/lab/checks.h"
#include "runtime/lab/namespaces.h"

namespace rocebox::lab {
namespace {

namespace fs = std::filesystem;
constexpr Nanos kBootPatience = 240 * kSecond;    // 6 s on an idle computer, 40 on a busy one
constexpr Nanos kSettingPatience = 30 * kSecond;  // half a second on an idle one
constexpr Nanos kExecMax = 24 * 3600 * kSecond;   // what vm.py takes
constexpr Nanos kSilence = 10 * kSecond;          // longer than it takes to find an image that is there
constexpr int kLacking = 77;                      // exit status of build_image.sh
constexpr std::size_t kHostNameMax = 64, kToldBytes = 4096, kToldLines = 20;

bool has_machines(const LabConfig& lab) {
  return std::any_of(lab.hosts.begin(), lab.hosts.end(), [](const HostConfig& host) { return host.machine; });
}

// Where vm.py can be: beside a program that is where it was built, and in the prefix of one that is installed.
std::vector<std::string> tool_folders() { return config::data_folders("lab_vm", "lab/vm"); }

std::string tool(const char* name) {
  std::error_code ignored;
  for (const std::string& folder : tool_folders())
    if (const fs::path file = fs::path(folder) / name; fs::exists(file, ignored)) return file.string();
  return "";
}

// No compiled files beside what is installed.
std::vector<std::string> vm_words(const char* verb) { return {"python3", "-B", tool("vm.py"), verb}; }

std::string state_folder(const std::string& lab_folder, const std::string& host) {
  return fmt::format("{}/vm.{}", lab_folder, host);
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

bool is_image(const std::string& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder + "/vmlinux", ignored) && fs::is_regular_file(folder + "/initramfs.cpio", ignored);
}

}  // namespace

void require_machine_tools(const LabConfig& lab) {
  if (!has_machines(lab)) return;
  const std::pair<const char*, const char*> programs[] = {
      {"qemu-system-x86_64", "qemu-system-x86"}, {"python3", "python3"}, {"bash", "bash"}};
  for (const auto& [program, package] : programs)
    if (find_program(program).empty())
      throw ConfigError(
          fmt::format("{}: the command `{}` is missing, which its virtual machines take: install the "
                      "package {}",
                      lab.file, program, package));
  if (tool("vm.py").empty())
    throw ConfigError(
        fmt::format("{}: `vm.py`, which its virtual machines take, is in none of: {}; install rocebox with "
                    "all its files",
                    lab.file, fmt::join(tool_folders(), ", ")));
  for (const HostConfig& host : lab.hosts) {
    if (!host.machine) continue;
    if (!host.machine->image.empty() && !is_image(host.machine->image))
      throw ConfigError(
          fmt::format("{}: no vmlinux and initramfs.cpio in `{}`: leave `image:` out, or give what "
                      "build_image.sh has printed",
                      lab.place_text(host.place), host.machine->image));
    if (host.machine->accel == Accelerator::kKvm && access("/dev/kvm", R_OK | W_OK) != 0)
      throw ConfigError(fmt::format("{}: `accel: kvm`, and /dev/kvm cannot be opened here: leave it out",
                                    lab.place_text(host.place)));
  }
}

// Until all have ended; those that have not when something goes wrong are ended.
void Machines::await(std::vector<Process>& processes, Interrupts& interrupts) const {
  try {
    while (true) {
      std::vector<int> running;
      for (Process& each : processes)
        if (!each.status()) running.push_back(each.descriptor());
      if (running.empty()) return;
      interrupts.wait(running, kSecond);
    }
  } catch (...) {
    for (Process& each : processes) each.signal(SIGTERM);
    throw;
  }
}

void Machines::find_image(Interrupts& interrupts) {
  const bool needed = std::any_of(lab_.hosts.begin(), lab_.hosts.end(),
                                  [](const HostConfig& host) { return host.machine && host.machine->image.empty(); });
  if (!needed) return;
  const std::string out = file("vm.image"), error = file("vm.image.stderr");
  std::vector<Process> script;
  script.emplace_back(Command{.words = {"bash", tool("build_image.sh")}, .out = out, .error = error});
  const Nanos begin = steady_now();
  interrupts.wait({script[0].descriptor()}, kSilence);
  if (!script[0].status() && steady_now() - begin >= kSilence)
    fmt::print(stderr,
               "rocebox: what the virtual machines boot is being made, once; it takes a minute and a download\n");
  await(script, interrupts);
  image_ = last_lines(read_tail(out, kToldBytes), 1);
  const std::string said = last_lines(read_tail(error, kToldBytes), kToldLines);
  if (script[0].status() == kLacking)
    throw ConfigError(fmt::format("{}: what its virtual machines boot cannot be made here: {}", lab_.file, said));
  if (script[0].status() != 0 || !is_image(image_))
    throw std::runtime_error(fmt::format("{}: what its virtual machines boot is not made: {}", lab_.file, said));
}

std::vector<std::string> Machines::start_words(const HostConfig& host) const {
  const Interface& wire = host.interfaces[0];
  const VirtualMachine& machine = *host.machine;
  std::vector<std::string> words = vm_words("start");
  words.insert(words.end(), {"--state", state_folder(folder_, host.name), "--name=" + host.name.substr(0, kHostNameMax),
                             "--tap", wire.name, "--mtu", std::to_string(wire.mtu), "--memory",
                             mebibytes(machine.memory), "--accel", machine.accel == Accelerator::kKvm ? "kvm" : "tcg",
                             "--image", machine.image.empty() ? image_ : fs::absolute(machine.image).string(), "--wait",
                             std::to_string(kBootPatience / kSecond)});
  for (const std::string& address : wire.addresses) words.insert(words.end(), {"--address", address});
  if (!wire.mac.empty()) words.insert(words.end(), {"--mac", wire.mac});
  return within(namespace_name(lab_.name, host.name), words);
}

void Machines::boot(Interrupts& interrupts) {
  std::vector<const HostConfig*> hosts;
  std::vector<Process> starts;
  for (const HostConfig& host : lab_.hosts) {
    if (!host.machine) continue;
    hosts.push_back(&host);
    starts.emplace_back(Command{.words = start_words(host), .error = file("vm." + host.name + ".stderr")});
  }
  await(starts, interrupts);
  for (std::size_t i = 0; i < hosts.size(); i++)
    if (starts[i].status() != 0)
      throw std::runtime_error(
          fmt::format("{}: virtual machine `{}` does not boot: {}", lab_.place_text(hosts[i]->place), hosts[i]->name,
                      last_lines(read_tail(file("vm." + hosts[i]->name + ".stderr"), kToldBytes), kToldLines)));
  for (const HostConfig* host : hosts) give_settings(*host);
}

void Machines::give_settings(const HostConfig& host) const {
  const auto run = [&](const std::vector<std::string>& words) {
    const CallResult done =
        call(within(namespace_name(lab_.name, host.name), in_machine(folder_, host.name, kSettingPatience, words)));
    if (done.status != 0)
      throw ConfigError(fmt::format("{}: `{}` failed in virtual machine `{}`: {}", lab_.place_text(host.place),
                                    fmt::join(words, " "), host.name, done.said));
  };
  for (const std::string& setting : host.sysctls) run({"sysctl", "-w", setting});
  for (const std::string& neighbour : host.interfaces[0].neighbours) run(neighbour_words(neighbour, "eth0"));
  for (const std::string& route : host.routes) run(route_words(route));
}

std::vector<std::string> in_machine(const std::string& lab_folder, const std::string& host, Nanos timeout,
                                    const std::vector<std::string>& words) {
  std::vector<std::string> all = vm_words("exec");
  const double seconds = static_cast<double>(std::min(timeout, kExecMax)) / 1e9;
  all.insert(all.end(), {"--state", state_folder(lab_folder, host), "--timeout", fmt::format("{:.3f}", seconds), "--"});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string until_listening(std::int64_t port) {
  return fmt::format(
      "until grep -q ':{:04X} [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null; do sleep 0.2; done", port);
}

}  // namespace rocebox::lab
