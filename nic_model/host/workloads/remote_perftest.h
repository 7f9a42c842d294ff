// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "nic_model/host/workloads/perftest_config.h"

namespace rocebox::nic_model {

/// Such a workload with one host: a server, or the client of one in another process or on another machine. The two tell
/// each other by RDMA CM what they measure, and with which memory. Throws ConfigError for what needs both hosts.
std::unique_ptr<Workload> remote_perftest(const WorkloadHost& on, const PerftestConfig& config, Verb verb,
                                          bool latency);

}  // namespace rocebox::nic_model
