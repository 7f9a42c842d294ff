// SPDX-License-Identifier: BSD-3-Clause
// How a command ends that gets no more memory: one message, on whichever thread it is.
#pragma once
#include <exception>

namespace rocebox {

/// Whether this is what is thrown where no memory is left, be it for a thread's stack.
bool is_no_memory(const std::exception& error);
/// From now on such an exception that nobody catches ends the process as say_no_memory() says.
void expect_no_memory();
/// Packets begin to flow: from now on the run has failed (1), and not its configuration (2).
void packets_flow();
/// Says on standard error what is lacking, and returns the exit status. Allocates nothing.
int say_no_memory();

}  // namespace rocebox
