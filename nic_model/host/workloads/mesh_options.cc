// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/mesh.h"
#include "nic_model/host/workloads/programs.h"

namespace rocebox::nic_model {

void MeshOptions::fields(Fields& f) {
  f.integer("mtu", mtu, {256, 4096}, "path MTU: 256, 512, 1024, 2048 or 4096 bytes");
  if (!roce::is_path_mtu(static_cast<std::uint32_t>(mtu))) f.refuse("mtu", "must be 256, 512, 1024, 2048 or 4096");
  f.integer("tx_depth", tx_depth, {1, 16384}, "work requests that a queue pair may have posted");
  f.integer("retry_cnt", retry_cnt, {0, 7}, "times that a packet is sent again before its queue pair fails");
  f.integer("timeout", timeout, {0, 31},
            "4.096 us times two to this power until that; a `retransmission_timeout` goes first");
  recovery.fields(f);
  traffic_class_field(f, traffic_class);
  f.bytes("chunk", chunk, {1, std::uint64_t{1} << 30}, "bytes of one work request; longer transfers are several");
  f.integer("connections", connections, {1, 4096},
            "connections from one host to another, at most: a transfer that begins while others are under way takes an "
            "idle one, or one more, so that it shares the wire with them; 1: they go one after the other");
  f.boolean(
      "rdma_cm", rdma_cm,
      "connections are made by RDMA CM, whose messages switches see, those of a collective before its first step; "
      "false: by what hosts know of each other without the network");
}

}  // namespace rocebox::nic_model
