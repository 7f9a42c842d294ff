// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/no_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

namespace rocebox {
namespace {

std::terminate_handler handler_before;
std::atomic<int> exit_status = 2;

[[noreturn]] void on_terminate() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& error) {
    if (is_no_memory(error)) _exit(say_no_memory());
  } catch (...) {
  }
  handler_before();
  std::abort();
}

}  // namespace

bool is_no_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system && (system->code() == std::errc::resource_unavailable_try_again ||
                    system->code() == std::errc::not_enough_memory);
}

void expect_no_memory() { handler_before = std::set_terminate(on_terminate); }

void packets_flow() { exit_status = 1; }

int say_no_memory() {
  rlimit limited{};
  getrlimit(RLIMIT_AS, &limited);
  std::fputs(
      limited.rlim_cur == RLIM_INFINITY
          ? "rocebox: there is no more memory: lower `pool:` and the tables of the configuration, or give the "
            "process more (its control group, the machine)\n"
          : "rocebox: there is no more memory within the limit on this process' address space: raise it (`ulimit "
            "-v`), or lower `pool:` and the tables of the configuration\n",
      stderr);
  return exit_status;
}

}  // namespace rocebox
