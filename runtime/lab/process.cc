// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/lab/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "runtime/lab/pidfd.h"

namespace rocebox::lab {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// Our environment, in which `more` takes the place of what has the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** entry = environ; *entry; entry++) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::none_of(more.begin(), more.end(), [&](const std::string& m) { return m.starts_with(name); }))
      all.emplace_back(text);
  }
  return all;
}

pid_t spawn(const Command& command, int out, int error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  if (!command.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;  // the signals that we wait for are blocked in us, and must not be in it
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  const std::vector<std::string> environment = environment_with(command.environment);
  pid_t id = -1;
  const int failed = posix_spawnp(&id, command.words[0].c_str(), &actions, &attributes, pointers(command.words).data(),
                                  pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    throw std::runtime_error(fmt::format("`{}` cannot be started: {}", command.words[0], std::strerror(failed)));
  return id;
}

int open_output(const std::string& file) {
  const char* path = file.empty() ? "/dev/null" : file.c_str();
  const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) throw std::runtime_error(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
  return descriptor;
}

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace

Process::Process(const Command& command) {
  const int out = open_output(command.out);
  int error = -1;
  try {
    error = command.error == command.out ? out : open_output(command.error);
    id_ = spawn(command, out, error);
  } catch (...) {
    if (error >= 0 && error != out) close(error);
    close(out);
    throw;
  }
  if (error != out) close(error);
  close(out);
  descriptor_ = pidfd_open(id_, 0);
}

Process::~Process() {
  if (descriptor_ >= 0) close(descriptor_);
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)), descriptor_(std::exchange(other.descriptor_, -1)), status_(other.status_) {}

std::optional<int> Process::status() {
  int status = 0;
  if (!status_ && id_ > 0 && waitpid(id_, &status, WNOHANG) == id_) status_ = status_of(status);
  return status_;
}

// Until it is waited for, its number belongs to it: no other process can be hit.
void Process::signal(int number) {
  if (!status() && kill(-id_, number) != 0) kill(id_, number);
}

CallResult call(const std::vector<std::string>& words) {
  const int out = memfd_create("rocebox-call", MFD_CLOEXEC);
  if (out < 0) throw std::runtime_error(fmt::format("no memory file: {}", std::strerror(errno)));
  CallResult result{0, ""};
  try {
    const pid_t id = spawn({.words = words}, out, out);
    int status = 0;
    while (waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = status_of(status);
  } catch (...) {
    close(out);
    throw;
  }
  char bytes[4096];
  for (off_t at = 0;;) {
    const ssize_t got = pread(out, bytes, sizeof bytes, at);
    if (got <= 0) break;
    result.said.append(bytes, static_cast<std::size_t>(got));
    at += got;
  }
  close(out);
  while (result.said.ends_with('\n')) result.said.pop_back();
  return result;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/sbin:/usr/bin:/sbin:/bin";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const std::string file = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return "";
}

std::string last_lines(std::string_view text, std::size_t lines) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::size_t at = text.size();
  for (; at > 0; at--)
    if (text[at - 1] == '\n' && lines-- <= 1) break;
  return std::string(text.substr(at));
}

std::string read_tail(const std::string& file, std::size_t bytes_max) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return "";
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(stream.tellg(), 0));
  std::string text(std::min(size, bytes_max), '\0');
  stream.seekg(static_cast<std::streamoff>(size - text.size()));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace rocebox::lab
