// SPDX-License-Identifier: BSD-3-Clause
// The network of a lab: namespaces, wires, and what hosts are given. All of it is done by the tools of the system (ip,
// ethtool, sysctl), so that it can be repeated, and looked at, by hand.
#pragma once
#include <string>

#include "runtime/lab/lab_config.h"

namespace rocebox::lab {

/// The tools that building this lab takes. Throws ConfigError naming those that are missing, and the right to use them.
void require_tools(const LabConfig& lab);

/// Makes the namespaces, the TAPs of virtual machines, and all wires but those that are TAPs; gives hosts their
/// settings. Throws ConfigError with the place of what cannot be done. `lab.name` names the namespaces.
void build_network(const LabConfig& lab);

/// Moves the TAPs of virtual machines, whose QEMUs hold them by now, to what is at the other ends. Throws ConfigError.
void join_machines(const LabConfig& lab);

/// Moves the TAPs, which their appliances have made by now, to their hosts, and sets up all hosts at TAPs.
/// Throws ConfigError.
void join_taps(const LabConfig& lab);

}  // namespace rocebox::lab
