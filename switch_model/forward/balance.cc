// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/forward/balance.h"

#include "switch_model/hash.h"

namespace rocebox::switch_model::forward {
namespace {

constexpr unsigned kFlowletStage = 4;

// Flowlets keep the order of a flow when all of its packets follow them; by the packet, only what is placed by its own
// header may be spread.
bool is_concerned(const Config& config, const roce::OpcodeInfo& info) {
  if (config.balance == Balance::kFlow) return false;
  if (config.balance == Balance::kFlowlet) return true;
  const auto named = [&](std::string_view name) {
    return std::ranges::find(config.balance_operations, name) != config.balance_operations.end();
  };
  if (info.service != roce::Service::kRc) return false;
  return (info.has(roce::kIsWrite) && named("write")) || (info.has(roce::kIsReadResponse) && named("read")) ||
         (info.has(roce::kIsSend) && named("send"));
}

}  // namespace

Balancer::Balancer(const Config& config, const Build& build)
    : next_hops_(build.next_hops),
      balance_(config.balance),
      gap_(static_cast<std::uint32_t>(config.flowlet_gap)),
      hash_width_(crc_algorithms()[static_cast<std::size_t>(config.ecmp_hash)].width) {
  for (unsigned opcode = 0; opcode < concerned_.size(); opcode++)
    concerned_[opcode] = is_concerned(config, roce::opcode_info(static_cast<std::uint8_t>(opcode)));
  if (balance_ == Balance::kLeastQueue)
    build.layout.beyond(
        "program forward, ingress: `balance: least_queue` compares the queues of ports, which the hardware does not "
        "show "
        "there");
  if (balance_ != Balance::kFlowlet) return;
  const auto entries = static_cast<std::uint64_t>(config.flowlet_entries);
  cells_ = build.layout.registers<Flowlet>("flowlet", {Gress::kIngress, kFlowletStage}, entries, 1);
  flowlets_ = &build.stats.counter("flowlets", "bursts of RoCEv2 flows for which a next hop was drawn");
  if (!config.has_equal_paths()) build.layout.unused(*cells_, "no address or prefix has equal paths");
}

}  // namespace rocebox::switch_model::forward
