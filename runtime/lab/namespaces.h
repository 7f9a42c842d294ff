// SPDX-License-Identifier: BSD-3-Clause
// The network namespaces of a lab. Their names tell whose they are, and what runs in them is the lab's: that is how
// everything is found again, whatever became of the process that made it.
#pragma once
#include <string>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::lab {

/// The name, as `ip netns` has it, of a host's or an appliance's namespace.
std::string namespace_name(const std::string& lab, const std::string& node);
/// Those of a lab that are there, sorted.
std::vector<std::string> namespaces_of(const std::string& lab);
/// Names of labs that have a namespace.
std::vector<std::string> labs_with_namespaces();
/// The words before a command that is to run in a namespace.
std::vector<std::string> within(const std::string& space, const std::vector<std::string>& words);
/// Whether the calling process is in one of these namespaces.
bool is_within(const std::vector<std::string>& spaces);

/// Ends every process in these namespaces: SIGTERM first, SIGKILL after `patience`. A process is held by its pidfd
/// while its namespace is looked at, so that no other one is hit. Returns how many had to be killed. Throws
/// std::runtime_error when some do not go.
unsigned end_processes(const std::vector<std::string>& spaces, Nanos patience);

/// Takes namespaces away, and with them their interfaces. Throws std::runtime_error.
void delete_namespaces(const std::vector<std::string>& spaces);

}  // namespace rocebox::lab
