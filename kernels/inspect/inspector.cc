// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/inspect/inspector.h"

#include <algorithm>
#include <utility>

#include "runtime/packet/prefetch.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/mad.h"

namespace rocebox::inspect {
namespace {

flows::Pairing::Limits pairing_limits(const Config& config) {
  // Twice the flows: handshakes and static pairs name directions that may never carry a packet.
  return {.directions =
              static_cast<std::uint32_t>(2 * config.flows + 2 * static_cast<std::int64_t>(config.pairs.size()))};
}

}  // namespace

Inspector::Inspector(const Config& config, Stats& stats)
    : config_(config),
      counters_(stats),
      check_icrc_(config.check_icrc),
      window_(static_cast<std::uint32_t>(config.window)),
      mtu_(config.mtu_bytes()),
      events_max_(static_cast<std::uint32_t>(config.events)),
      requests_(window_, config.retransmit_after, false),
      responses_(window_, config.retransmit_after, true),
      table_(static_cast<std::uint32_t>(config.flows)),
      flows_(table_.capacity(), flows::Pages::kHuge),
      // Small pages, each when its PSNs come: a flow uses the ring of the one direction that it is, and a short one
      // little of that.
      rings_(std::size_t{table_.capacity()} * kStreams * window_, flows::Pages::kSmall, flows::Touch::kAsUsed),
      events_(std::size_t{table_.capacity()} * events_max_, flows::Pages::kSmall, flows::Touch::kAsUsed),
      sender_table_(table_.capacity()),
      senders_(sender_table_.capacity()),
      sender_rings_(std::size_t{sender_table_.capacity()} * window_, flows::Pages::kSmall, flows::Touch::kAsUsed),
      address_pairs_(table_.capacity()),
      address_pair_pmtus_(table_.capacity()),
      pairing_(pairing_limits(config)) {
  for (const StaticPair& pair : config.pairs)
    pairing_.connect(*pair.a, static_cast<std::uint32_t>(pair.a_qpn), *pair.b, static_cast<std::uint32_t>(pair.b_qpn),
                     flows::PairSource::kConfig);
}

struct Inspector::Switch final : Change {
  Switch(bool icrc, Nanos after) : check_icrc(icrc), retransmit_after(after) {}
  void apply(Kernel& kernel, Nanos) override {
    auto& inspector = static_cast<Inspector&>(kernel);
    inspector.check_icrc_ = check_icrc;
    inspector.requests_.set_retransmit_after(retransmit_after);
    inspector.responses_.set_retransmit_after(retransmit_after);
  }
  bool check_icrc;
  Nanos retransmit_after;
};

std::unique_ptr<Change> Inspector::prepare(const Config& config) const {
  Config fixed = config;
  fixed.check_icrc = config_.check_icrc;
  fixed.retransmit_after = config_.retransmit_after;
  if (fixed != config_)
    throw ConfigError("of inspect's options only `retransmit_after` and `check_icrc` can be changed while it runs");
  return std::make_unique<Switch>(config.check_icrc, config.retransmit_after);
}

void Inspector::process(Context& context, Port, Batch& batch) {
  // Three rounds, so that the memory of all packets' flows is on its way before the first is
  // counted.
  std::array<Lookup, kBatchMax> lookups;
  const unsigned size = batch.size();
  for (unsigned i = 0; i < size; i++) {
    lookups[i].held = held(batch[i]);
    if (lookups[i].held == Held::kNothing) continue;
    name(batch[i], lookups[i]);
    table_.prefetch(lookups[i].hash);
  }
  for (unsigned i = 0; i < size; i++) {
    if (lookups[i].held == Held::kNothing) continue;
    lookups[i].index = find(lookups[i], batch[i]);
    if (lookups[i].index != kNone) prefetch_flow(lookups[i].index, batch[i]);
  }
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < size; i++) {
    bytes += batch[i].wire_bytes();
    if (lookups[i].held != Held::kNothing)
      inspect(batch[i], lookups[i], context.now());
    else
      count_other(batch[i]);
  }
  counters_.packets.add(size);
  counters_.bytes.add(bytes);
}

// The flow, and the place of the packet's PSN: it lies in a page that other flows do not share.
void Inspector::prefetch_flow(std::uint32_t index, Packet packet) const {
  prefetch_line(&flows_[index]);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const bool response = info.has(roce::kIsReadResponse);
  if (!response && !info.has(roce::kIsRequest)) return;
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  prefetch_line(ring(index, response ? PsnSpace::kResponses : PsnSpace::kRequests) + (psn & (window_ - 1)));
}

Inspector::Held Inspector::held(Packet packet) {
  if (roce::is_roce(packet)) return Held::kAll;
  if (roce::has_whole_lengths(packet)) return Held::kBth;
  if (roce::is_trimmed(packet)) return Held::kTrimmed;
  return packet.meta().status == ParseStatus::kUnsupportedService ? Held::kForeign : Held::kNothing;
}

void Inspector::name(Packet packet, Lookup& lookup) {
  const auto qpn = static_cast<std::uint32_t>(roce::bth(packet).destination_qp);
  const roce::Service service = roce::opcode_info(packet).service;
  // A CNP has no service of its own: it belongs to the QP's flow, which is RC nearly always.
  lookup.key = FlowKey::of(roce::addresses(packet), qpn, service == roce::Service::kCnp ? roce::Service::kRc : service);
  lookup.hash = flows::FlowTable<FlowKey>::hash(lookup.key);
}

std::uint32_t Inspector::find(const Lookup& lookup, Packet packet) const {
  const std::uint32_t index = table_.find(lookup.key, lookup.hash);
  if (index != kNone || packet.meta().opcode != roce::kOpcodeCnp) return index;
  for (const roce::Service service : {roce::Service::kUc, roce::Service::kUd, roce::Service::kCnp}) {
    const std::uint32_t other = table_.find(FlowKey::of(lookup.key.addresses, lookup.key.qpn(), service));
    if (other != kNone) return other;
  }
  return kNone;
}

std::uint32_t Inspector::make(const Lookup& lookup, Packet packet) {
  FlowKey key = lookup.key;
  if (packet.meta().opcode == roce::kOpcodeCnp) key = FlowKey::of(key.addresses, key.qpn(), roce::Service::kCnp);
  const std::uint32_t index = table_.insert(key);
  if (index == kNone) return kNone;
  counters_.flows.add();
  roce::Addresses pair = key.addresses;
  if (pair.destination < pair.source) std::swap(pair.source, pair.destination);
  flows_[index].address_pair = address_pairs_.insert(pair);  // never full: at most one for each flow
  const bool rc = key.service() == roce::Service::kRc;
  flows_[index].direction = rc ? pairing_.add({key.addresses, key.qpn()}, index) : flows::Pairing::kNone;
  return index;
}

void Inspector::count_other(Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (meta.status == ParseStatus::kReservedOpcode) return counters_.lowar.add();
  switch (roce::class_of(meta.status)) {
    case PacketClass::kRoce:
    case PacketClass::kOther:
      return counters_.not_roce.add();
    case PacketClass::kFragment:
      return counters_.fragments.add();
    case PacketClass::kTruncated:
      return counters_.truncated.add();
    case PacketClass::kMalformed:
    case PacketClass::kUnsupported:  // has a BTH always, and does not come here
      return counters_.malformed.add();
  }
}

// Whether the packet's ICRC is wrong; then only that is counted.
bool Inspector::icrc_refuses(Packet packet, Flow* flow, bool& unverified) {
  if (!check_icrc_) return false;
  const roce::IcrcStatus status = roce::icrc_check(packet);
  unverified = status == roce::IcrcStatus::kUnverifiable;
  if (unverified) counters_.icrc_unverified.add();
  if (status != roce::IcrcStatus::kBad) return false;
  counters_.icrc_errors.add();
  if (flow) flow->icrc_failures++;
  return true;
}

void Inspector::inspect(Packet packet, Lookup& lookup, Nanos now) {
  // An earlier packet of the batch may have made the flow, or a nearer one for a CNP.
  if (lookup.index == kNone || packet.meta().opcode == roce::kOpcodeCnp) lookup.index = find(lookup, packet);
  // What is too short for its opcode is taken for trimmed only where there is traffic to be trimmed.
  if (packet.meta().status == ParseStatus::kNoRoomForExtension && lookup.index == kNone)
    return counters_.malformed.add();
  const Held held = lookup.held;
  if (held == Held::kForeign)
    counters_.unsupported_service.add();
  else
    counters_.roce_packets.add();
  bool unverified = false;
  if (held == Held::kTrimmed)
    counters_.trimmed.add();
  else if (icrc_refuses(packet, lookup.index == kNone ? nullptr : &flows_[lookup.index], unverified))
    return;
  if (held == Held::kBth) counters_.snapped.add();
  if (lookup.index == kNone) lookup.index = make(lookup, packet);
  if (lookup.index == kNone) return counters_.flows_full.add();

  Flow& flow = flows_[lookup.index];
  flow.icrc_unverified += unverified;
  count_packet(flow, packet, held, now);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (held == Held::kForeign) return;
  if (info.service == roce::Service::kCnp) {
    flow.cnps++;
    return counters_.cnps.add();
  }
  if (info.has(roce::kIsRequest))
    counters_.requests.add();
  else
    counters_.responses.add();
  if (info.service == roce::Service::kUd) return datagram(flow, packet, held, now);
  if (held == Held::kTrimmed && !info.has(roce::kHasPayload)) return;  // no switch trims these: cut by a fault
  const bool full = info.has(roce::kHasPayload) && !info.has(roce::kEndsMessage);  // FIRST and MIDDLE
  if (full && held != Held::kTrimmed) learn_pmtu(flow, packet.meta().payload_bytes);
  if (info.has(roce::kIsRequest))
    request(lookup.index, packet, held, now);
  else
    response(lookup.index, packet, held, now);
}

void Inspector::count_packet(Flow& flow, Packet packet, Held held, Nanos now) {
  const PacketMeta& meta = packet.meta();
  if (flow.packets == 0) flow.first_time = now;
  flow.last_time = now;
  flow.packets++;
  flow.bytes += meta.wire_bytes;
  if (held == Held::kTrimmed)
    flow.trimmed++;
  else if (held != Held::kForeign)
    flow.payload_bytes += meta.payload_bytes;
  flow.opcodes[meta.opcode == roce::kOpcodeCnp ? kCnpSlot : meta.opcode & 31u]++;
  const std::uint8_t codepoint = roce::ecn(packet);
  flow.ecn[codepoint]++;
  if (codepoint == roce::kEcnCe) counters_.ecn_ce.add();
  flow.fecn += roce::bth(packet).fecn();
  flow.becn += roce::bth(packet).becn();
}

const Flow* Inspector::partner_of(const Flow& flow) const {
  if (flow.direction == flows::Pairing::kNone) return nullptr;
  const std::uint32_t direction = pairing_.partner(flow.direction);
  if (direction == flows::Pairing::kNone) return nullptr;
  const std::uint32_t index = pairing_.flow(direction);
  return index == flows::Pairing::kNone ? nullptr : &flows_[index];
}

Flow* Inspector::partner_of(const Flow& flow) { return const_cast<Flow*>(std::as_const(*this).partner_of(flow)); }

void Inspector::count_class(PsnClass what) {
  switch (what) {
    case PsnClass::kFirst:
    case PsnClass::kInOrder:
    case PsnClass::kBeyondWindow:  // counted when it is sure
      return;
    case PsnClass::kRestart:
      return counters_.restarts.add();
    case PsnClass::kDuplicate:
      return counters_.duplicates.add();
    case PsnClass::kRetransmission:
      return counters_.retransmissions.add();
    case PsnClass::kOutOfOrder:
      return counters_.out_of_order.add();
    case PsnClass::kUndecided:
      return counters_.undecided.add();
  }
}

}  // namespace rocebox::inspect
