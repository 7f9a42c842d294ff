// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "nic_model/host/workloads/perftest_config.h"

namespace rocebox::nic_model {

/// write_bw or write_lat with one host: a server, or the client of one in another process or on another machine. The
/// two tell each other by RDMA CM where they write to. Throws ConfigError for what needs both hosts.
std::unique_ptr<Workload> remote_write(const WorkloadHost& on, const PerftestConfig& config, bool latency);

}  // namespace rocebox::nic_model
