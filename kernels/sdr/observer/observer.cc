// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/observer/observer.h"

#include <array>

#include "runtime/roce/icrc.h"

namespace rocebox::sdr::observer {

Observer::Observer(const Config& config, Stats& stats)
    : config_(config), layout_(config.layout()), counters_(stats), connections_(config), messages_(config, counters_) {}

void Observer::process(Context& context, Port, Batch& batch) {
  // Three rounds, so that the memory of all packets' messages is on its way before the first is counted.
  std::array<Lookup, kBatchMax> lookups;
  const unsigned size = batch.size();
  for (unsigned i = 0; i < size; i++) {
    lookups[i].is_ours = look_up(batch[i], lookups[i]);
    if (!lookups[i].is_ours) continue;
    lookups[i].hash = connections_.table().hash(lookups[i].key);
    connections_.table().prefetch(lookups[i].hash);
  }
  for (unsigned i = 0; i < size; i++) {
    Lookup& one = lookups[i];
    if (!one.is_ours) continue;
    one.qp = connections_.table().find(one.key, one.hash);
    if (one.qp != kNone && one.part.immediate.message < config_.slots())
      messages_.prefetch(connections_.qp(one.qp).group, one.part.immediate);
  }
  for (unsigned i = 0; i < size; i++)
    if (lookups[i].is_ours) take(batch[i], lookups[i], context.now());
}

bool Observer::look_up(Packet packet, Lookup& lookup) const {
  if (!roce::is_roce(packet)) return false;
  // One Write is one packet.
  const std::uint8_t opcode = packet.meta().opcode;
  const bool is_uc = opcode == IBV_OPCODE_UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
  const bool is_rc = opcode == IBV_OPCODE_RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
  if (!(is_uc && config_.service != ServiceOf::kRc) && !(is_rc && config_.service != ServiceOf::kUc)) return false;
  lookup.key = {roce::addresses(packet), roce::qpn_and_psn(packet).destination_qp};
  const std::uint32_t offset = packet.meta().bth_offset + sizeof(roce::Bth) + sizeof(roce::Reth);
  lookup.part = {layout_.unpack(static_cast<std::uint32_t>(packet.header<roce::ImmDt>(offset)->data)),
                 packet.meta().payload_bytes, lookup.key.qpn, 0};
  return true;
}

void Observer::take(Packet packet, Lookup& lookup, Nanos now) {
  if (config_.check_icrc && roce::icrc_check(packet) == roce::IcrcStatus::kBad)
    return counters_.rx_icrc_encapsulated.add();
  if (lookup.qp == kNone) {
    // It may be one that a packet before this one of the batch has made.
    lookup.qp = connections_.table().find(lookup.key, lookup.hash);
    if (lookup.qp == kNone)
      lookup.qp = connections_.add(lookup.key, lookup.hash, static_cast<std::uint32_t>(roce::reth(packet)->rkey));
    if (lookup.qp == kNone) return counters_.full.add();
  }
  TransportQp& qp = connections_.qp(lookup.qp);
  Group& group = connections_.group(qp.group);
  counters_.packets.add();
  counters_.bytes.add(lookup.part.bytes);
  if (qp.packets++ == 0) qp.first = now;
  if (group.packets++ == 0) group.first = now;
  qp.last = group.last = now;
  group.bytes += lookup.part.bytes;
  if (lookup.part.immediate.message >= group.ids) {
    group.beyond++;
    return counters_.beyond.add();
  }
  const std::uint32_t id = lookup.part.immediate.message;
  const Slot& slot = messages_.slot(qp.group, id);
  std::uint64_t number = slot.number;
  if (!connections_.is_current(qp, number, slot.generation)) {
    const bool has_come = !qp.has_generation && messages_.has_come(qp.group, lookup.part.immediate);
    number = connections_.number_of(qp, id, has_come);
  }
  lookup.part.generation = qp.generation;
  messages_.arrive(group, qp.group, number, lookup.part, now);
}

}  // namespace rocebox::sdr::observer
