// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/trial.h"

#include <algorithm>

#include "kernels/themis/nack_packet.h"
#include "runtime/roce/mad.h"

namespace rocebox::themis {
namespace {

constexpr std::uint32_t kLocalQpn = 0x7E57, kRemoteQpn = 0x7E58, kLocalId = 0x7E590001, kRemoteId = 0x7E590002;
constexpr std::uint8_t kAck = 0x1F, kRnr = 0x2E, kNack = 0x60;

/// A NIC here and one elsewhere: packets to each leave by these ports.
struct Ways {
  Stimulus here, there;
};

// `there` has as many ports as there are paths, where that is asked for: else nothing is sprayed.
bool pick_ways(const Config& config, const switch_model::SwitchInfo& info, const std::vector<Stimulus>& known,
               bool equal, Ways& ways) {
  const auto is_host = [&](Port port) {
    return std::ranges::find(config.hosts, info.ports[port]) != config.hosts.end();
  };
  for (const Stimulus& here : known) {
    if (here.leads_to.size() != 1 || !is_host(here.leads_to[0])) continue;
    for (const Stimulus& there : known) {
      if (there.leads_to.empty() || std::ranges::any_of(there.leads_to, is_host)) continue;
      if (equal && there.leads_to.size() != static_cast<std::size_t>(config.paths)) continue;
      if (here.underlay.vlans != there.underlay.vlans || here.underlay.ip_version != there.underlay.ip_version)
        continue;
      ways = {here, there};
      return true;
    }
  }
  return false;
}

class Trial {
 public:
  Trial(const Config& config, const Ways& ways, std::vector<Stimulus>& all) : config_(config), all_(all) {
    outward_ = ways.there.underlay;
    inward_ = ways.here.underlay;
    outward_.source_mac = {0x02, 0, 0, 0, 0x7E, 0x01};
    inward_.source_mac = {0x02, 0, 0, 0, 0x7E, 0x02};
    // By prefixes these are the addresses; elsewhere any will do that are two.
    roce::Addresses& addresses = outward_.addresses;
    addresses.source = inward_.addresses.destination;
    if (addresses.source == addresses.destination) addresses.source = inward_.addresses.source;
    inward_.addresses = {addresses.destination, addresses.source};
    here_ = ways.here.leads_to[0];
    there_ = ways.there.leads_to[0];
    const std::array<bool, 256> sprayed = config.sprayed_opcodes();
    for (const std::uint8_t opcode : {IBV_OPCODE_RC_FETCH_ADD, IBV_OPCODE_RC_RDMA_READ_REQUEST, IBV_OPCODE_RC_SEND_ONLY,
                                      IBV_OPCODE_RC_RDMA_WRITE_ONLY})
      if (sprayed[opcode]) opcode_ = opcode;
  }

  void run() {
    shake_hands();
    judge();
    turn_over();
    spray();
    roce::CmDreq end{};
    end.local_communication_id = kLocalId;
    end.remote_communication_id = kRemoteId;
    end.remote_qpn = kRemoteQpn;
    manage(false, end);
  }

 private:
  Stimulus& add(bool inward, const roce::PacketSpec& spec) {
    Stimulus& stimulus = all_.emplace_back();
    stimulus.packet = spec;
    stimulus.packet->underlay = inward ? inward_ : outward_;
    stimulus.in = inward ? there_ : here_;
    return stimulus;
  }
  template <class Message>
  void manage(bool inward, const Message& message) {
    roce::PacketSpec spec;
    spec.opcode = IBV_OPCODE_UD_SEND_ONLY;
    spec.destination_qp = spec.source_qp = roce::kGsiQpn;
    spec.qkey = roce::kGsiQkey;
    const auto mad = roce::cm_mad(kLocalId, message);
    add(inward, spec).payload.assign(mad.begin(), mad.end());
  }
  void request(bool inward, std::uint32_t psn) {
    roce::PacketSpec spec;
    spec.opcode = opcode_;
    spec.destination_qp = inward ? kLocalQpn : kRemoteQpn;
    spec.psn = psn;
    spec.dma_length = 4;
    Stimulus& made = add(inward, spec);
    if (roce::opcode_info(opcode_).has(roce::kHasPayload)) made.payload.assign(4, 0x5A);
  }
  void response(bool inward, std::uint32_t psn, std::uint8_t syndrome, bool avoid = false) {
    roce::PacketSpec spec;
    spec.opcode = IBV_OPCODE_RC_ACKNOWLEDGE;
    spec.destination_qp = inward ? kLocalQpn : kRemoteQpn;
    spec.psn = psn;
    spec.syndrome = syndrome;
    Stimulus& made = add(inward, spec);
    if (avoid) made.bth_reserved = avoidance_mask(config_.path_avoidance_bit);
  }

  // First PSNs are 0 both ways.
  void shake_hands() {
    roce::CmReq ask{};
    ask.local_communication_id = kLocalId;
    ask.local_qpn = kLocalQpn;
    ask.pkey = 0xFFFF;
    ask.mtu_rdc_rnr = 5 << 4;
    std::ranges::copy(outward_.addresses.source, ask.primary_local_gid);
    std::ranges::copy(outward_.addresses.destination, ask.primary_remote_gid);
    manage(false, ask);
    roce::CmRep reply{};
    reply.local_communication_id = kRemoteId;
    reply.remote_communication_id = kLocalId;
    reply.local_qpn = kRemoteQpn;
    manage(true, reply);
    roce::CmRtu ready{};
    ready.local_communication_id = kLocalId;
    ready.remote_communication_id = kRemoteId;
    manage(false, ready);
  }

  // Themis-D: one stash ended by the packet itself, one by another of its path. Window base, then: 1, 3, 3 and N.
  void judge() {
    request(true, 0);
    response(false, 0, kAck);
    request(true, 2);
    response(false, 1, kNack);
    request(true, 1);
    response(false, 2, kAck);
    request(true, 4);
    response(false, 3, kNack);
    next_ = 3 + static_cast<std::uint32_t>(std::min(config_.paths, config_.window - 1));
    request(true, next_);
    request(true, 3);
    response(false, next_, kAck);
    next_++;
    response(false, next_, kRnr);
  }

  // A window on, and one more: the base leaves each half of the bitmap.
  void turn_over() {
    for (int direction = 0; direction < 2; direction++) {
      request(true, next_ + static_cast<std::uint32_t>(config_.window) - 1);
      response(false, next_ + static_cast<std::uint32_t>(config_.window) - 1, kAck);
      next_ += static_cast<std::uint32_t>(config_.window);
    }
    request(true, next_);
  }

  // Themis-S: in order, asked for by a NACK, again without, and with its path given up.
  void spray() {
    for (const std::uint32_t psn : {0, 1, 2}) request(false, psn);
    response(true, 1, kNack);
    for (const std::uint32_t psn : {1, 2, 0}) request(false, psn);
    response(true, 2, kNack, true);
    request(false, 2);
  }

  const Config& config_;
  std::vector<Stimulus>& all_;
  roce::Underlay outward_, inward_;
  Port here_, there_;
  std::uint8_t opcode_ = IBV_OPCODE_RC_RDMA_WRITE_ONLY;
  std::uint32_t next_ = 0;
};

}  // namespace

void add_trial(const Config& config, const switch_model::SwitchInfo& info, std::vector<Stimulus>& all) {
  Ways ways;
  if (config.spray == Spray::kOff) return;
  if (pick_ways(config, info, all, true, ways) || pick_ways(config, info, all, false, ways))
    Trial(config, ways, all).run();
}

}  // namespace rocebox::themis
