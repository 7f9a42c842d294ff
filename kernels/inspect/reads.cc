// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the path MTU, and how many PSNs a READ takes.
#include <algorithm>

#include "kernels/inspect/inspector.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {
void Inspector::learn_pmtu(Flow& flow, std::uint32_t payload_bytes) {
  if (payload_bytes == flow.pmtu && !flow.pmtu_inferred) return;
  // Only what a path MTU can be: a stray length must not decide for the whole address pair.
  if (!roce::is_path_mtu(payload_bytes)) return;
  const auto pmtu = static_cast<std::uint16_t>(payload_bytes);
  flow.pmtu = flow.pmtu_inferred ? pmtu : std::max(flow.pmtu, pmtu);
  flow.pmtu_inferred = false;
  std::uint16_t& of_pair = address_pair_pmtus_[flow.address_pair];
  of_pair = std::max(of_pair, pmtu);
}

std::uint32_t Inspector::known_pmtu(const Flow& flow) const {
  if (mtu_) return mtu_;
  if (flow.pmtu && !flow.pmtu_inferred) return flow.pmtu;
  const Flow* partner = partner_of(flow);
  if (partner && partner->pmtu && !partner->pmtu_inferred) return partner->pmtu;
  if (address_pair_pmtus_[flow.address_pair]) return address_pair_pmtus_[flow.address_pair];
  return flow.pmtu;
}

// Which PSNs a READ takes can be told from the next request alone, when one count fits its PSN.
std::uint32_t Inspector::infer_read_width(Flow& flow, std::uint32_t distance) {
  unsigned fitting = 0;
  std::uint32_t pmtu = 0;
  for (const std::uint32_t each : roce::kPathMtus) {
    if (roce::read_psns(flow.open_read_bytes, each) != distance) continue;
    fitting++;
    pmtu = each;
  }
  if (fitting == 1) {
    flow.pmtu = static_cast<std::uint16_t>(pmtu);
    flow.pmtu_inferred = true;
  }
  return fitting ? distance : 1;
}

// A READ request was counted with one PSN because the path MTU was not known: gives it its PSNs as
// soon as that is, at the latest when the next request comes.
void Inspector::settle_read(std::uint32_t index, const std::uint32_t* next_psn) {
  Flow& flow = flows_[index];
  const std::uint32_t high = flow.requests.high_psn();
  const std::int32_t distance = next_psn ? roce::psn_distance(*next_psn, high) : 0;
  std::uint32_t width = 1;
  if (const std::uint32_t pmtu = known_pmtu(flow))
    width = roce::read_psns(flow.open_read_bytes, pmtu);
  else if (distance > 0)
    width = infer_read_width(flow, static_cast<std::uint32_t>(distance));
  else
    return;
  flow.open_read_bytes = 0;
  requests_.widen(flow.requests, ring(index, PsnSpace::kRequests), width);
  if (flow.direction != flows::Pairing::kNone) pairing_.request(flow.direction, high, roce::psn_add(high, width - 1));
}

// Of a READ request whose length is not held, all that is known is how far its responses go and where the next request
// begins: it takes the PSNs up to `last_psn`.
void Inspector::settle_unsized_read(std::uint32_t index, std::uint32_t last_psn) {
  Flow& flow = flows_[index];
  const std::int32_t more = roce::psn_distance(last_psn, flow.requests.high_psn());
  if (more <= 0 || more > static_cast<std::int32_t>(window_)) return;
  requests_.widen(flow.requests, ring(index, PsnSpace::kRequests), static_cast<std::uint32_t>(more) + 1);
  if (flow.direction != flows::Pairing::kNone) pairing_.request(flow.direction, last_psn, last_psn);
}

// How many PSNs a READ request takes.
void Inspector::read_length(Flow& flow, Packet packet, PsnPacket& facts) {
  facts.read = true;
  const roce::Reth* reth = roce::reth(packet);
  if (!reth) {
    facts.sized = false;
    return;
  }
  facts.size = static_cast<std::uint32_t>(reth->dma_length);
  if (const std::uint32_t pmtu = known_pmtu(flow)) facts.width = roce::read_psns(facts.size, pmtu);
}

}  // namespace rocebox::inspect
