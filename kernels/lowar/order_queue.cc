// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/order_queue.h"

#include <algorithm>
#include <limits>

#include "kernels/lowar/repair_packet.h"
#include "kernels/lowar/stream.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_add;

std::optional<std::uint32_t> OrderQueue::last_psn(const Buffer& buffer) const {
  std::uint16_t last = held_.tail;
  while (last != kNone && buffer[last].unsequenced) last = buffer[last].previous;
  if (last == kNone) return {};
  return buffer[last].psn;
}

bool OrderQueue::replace_rebuilt(Buffer& buffer, Packet original) {
  const std::uint16_t slot = buffer.find_rebuilt(held_, psn_of(original));
  if (slot == kNone || !roce::icrc_held(original)) return false;
  if (roce::icrc_stored(original) != roce::icrc_stored(*buffer[slot].packet)) return false;
  buffer[slot].rebuilt = false;
  return true;
}

Share OrderQueue::share_of(const Buffer& buffer, const RepairHeader& header, std::uint32_t expected) const {
  const Block& block = header.block;
  Share share;
  std::uint16_t at = held_.head;
  for (unsigned i = header.isn; i < block.packets; i += block.coding.c) {
    const std::uint32_t psn = psn_add(block.base_psn, i);
    if (roce::psn_before(psn, expected)) {
      share.delivered++;
      continue;
    }
    at = buffer.find(at, psn);
    if (at != kNone && buffer[at].psn == psn) {
      share.usable &= buffer[at].usable;
      share.slots[share.held++] = at;
    } else {
      share.missing++;
      share.missing_psn = psn;
    }
  }
  return share;
}

std::optional<std::uint32_t> OrderQueue::end_of_block(const Buffer& buffer, std::uint32_t psn) const {
  for (std::uint16_t i = repairs_.head; i != kNone; i = buffer[i].next) {
    const Block block = parse_repair(lowar_bytes(*buffer[i].packet))->block;
    if (roce::psn_in_window(psn, block.base_psn, block.packets)) return psn_add(block.base_psn, block.packets);
  }
  return {};
}

std::optional<BlockEnd> OrderQueue::last_end(const Buffer& buffer, std::uint32_t psn) const {
  std::optional<BlockEnd> last;
  for (std::uint16_t i = repairs_.head; i != kNone; i = buffer[i].next) {
    const Block block = parse_repair(lowar_bytes(*buffer[i].packet))->block;
    const std::uint32_t end = psn_add(block.base_psn, block.packets);
    if (roce::psn_before(last ? last->psn : psn, end)) last = {end, block.has_last};
  }
  return last;
}

Nanos OrderQueue::oldest(const Buffer& buffer) const {
  Nanos since = std::numeric_limits<Nanos>::max();
  for (const std::uint16_t slot : {held_.oldest, repairs_.oldest})
    if (slot != kNone) since = std::min(since, buffer[slot].at);
  return since;
}

}  // namespace rocebox::lowar
