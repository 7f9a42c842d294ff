// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/themis/destination.h"

#include <algorithm>

namespace rocebox::themis {

Destination::Destination(const Config& config, Layout& layout)
    : modulo_(config.paths),
      pipes_(layout.pipes()),
      paths_max_(config.paths_max),
      window_(config.window),
      window_packets_(static_cast<std::int32_t>(config.window)),
      ooo_threshold_(static_cast<std::int32_t>(config.ooo_threshold)),
      path_check_(config.path_check),
      lazy_dropping_(config.lazy_dropping) {
  const std::uint32_t slots = config.slots;
  const std::uint64_t bits = std::uint64_t{slots} * 2 * window_, paths = std::uint64_t{slots} * paths_max_;
  const auto at = [](unsigned stage) { return At{Gress::kEgress, stage}; };
  layout.part(kPartOurs);
  highest_psn_ = layout.registers<PsnCell>("highest_psn", at(EgressStage::kHighest), slots, 1);
  layout.part(kPartDestination);
  epsn_array_ = layout.registers<PsnCell>("epsn_array", at(EgressStage::kBase), slots, 1);
  layout.part(kPartOurs);
  doubt_until_ = layout.registers<PsnCell>("doubt_until", at(EgressStage::kDoubt), slots, 1);
  far_count_ = layout.registers<std::uint8_t>("far_count", at(EgressStage::kDoubt), slots, 1);
  layout.part(kPartDestination);
  bases_[0] = layout.registers<std::uint8_t>("base_first_half", at(EgressStage::kHalves), slots, 1);
  bases_[1] = layout.registers<std::uint8_t>("base_second_half", at(EgressStage::kHalves), slots, 1);
  bitmap_array_ = layout.registers<bool>("bitmap_array", at(EgressStage::kBitmap), bits, 2 * window_);
  path_psn_max_array_ = layout.registers<PsnCell>("path_psn_max_array", at(EgressStage::kPaths), paths, paths_max_);
  layout.part(kPartOurs);
  half_counts_ = layout.registers<HalfCounts>("half_counts", at(EgressStage::kStash), slots, 1);
  layout.part(kPartDestination);
  stashed_nack_psn_ = layout.registers<PsnCell>("stashed_nack_psn", at(EgressStage::kStash), slots, 1);
  stash_nack_path_id_ = layout.registers<std::uint32_t>("stash_nack_path_id", at(EgressStage::kStash), slots, 1);
  stashed_nack_valid_ = layout.registers<std::uint8_t>("stashed_nack_valid", at(EgressStage::kStashValid), slots, 1);
  stash_nack_qpn_ = layout.registers<std::uint32_t>("stash_nack_qpn", at(EgressStage::kStashRest), slots, 1);
  stash_nack_egress_port_ =
      layout.registers<std::uint16_t>("stash_nack_egress_port", at(EgressStage::kStashRest), slots, 1);
  layout.part(kPartOurs);
  stash_nack_aeth_ = layout.registers<std::uint32_t>("stash_nack_aeth", at(EgressStage::kStashRest), slots, 1);
  stash_time_ = layout.registers<std::uint32_t>("stash_time", at(EgressStage::kStashRest), slots, 1);
}

void Destination::begin(unsigned pipe, Slot slot, std::uint32_t highest) {
  const auto set = [pipe](auto& array, std::uint64_t index, auto value) {
    array.operate(pipe, index, [value](auto& cell) { cell = value; });
  };
  set(highest_psn_, slot.number, PsnCell::of(highest));
  set(epsn_array_, slot.number, PsnCell::of(slot.origin));
  set(doubt_until_, slot.number, PsnCell{});
  set(far_count_, slot.number, std::uint8_t{0});
  for (auto& base : bases_) set(base, slot.number, std::uint8_t{0});
  set(half_counts_, slot.number, HalfCounts{});
  bitmap_array_.clear(pipe, std::uint64_t{slot.number} * 2 * window_, 2 * window_);
  for (std::uint32_t path = 0; path < paths_max_; path++) set(path_psn_max_array_, path_cell(slot, path), PsnCell{});
  set(stashed_nack_psn_, slot.number, PsnCell{});
  set(stashed_nack_valid_, slot.number, std::uint8_t{0});
  // Packets that no one has recorded: for this round there is doubt whether they came, and in the next, when the half
  // is turned over, their bits must not say so.
  const std::int32_t before = roce::psn_distance(highest, slot.origin) + 1;
  if (before <= 0) return;
  set(doubt_until_, slot.number, PsnCell::of(roce::psn_add(highest, 1)));
  const std::int32_t set_bits = std::min(before, window_packets_);
  for (std::int32_t i = 0; i < set_bits; i++) set(bitmap_array_, bit_of(slot, roce::psn_add(slot.origin, i)), true);
  set(half_counts_, slot.number, HalfCounts{{static_cast<std::uint32_t>(set_bits) << 1, 0}});
}

void Destination::change(std::uint32_t paths, std::uint32_t ooo_threshold) {
  ooo_threshold_ = static_cast<std::int32_t>(ooo_threshold);
  if (paths == modulo_.count()) return;
  modulo_ = Modulo(paths);
  for (unsigned pipe = 0; pipe < pipes_; pipe++)
    for (std::uint64_t slot = 0; slot < stashed_nack_psn_.entries(); slot++) {
      const std::uint32_t psn = stashed_nack_psn_.operate(pipe, slot, [](PsnCell& cell) { return cell.psn(); });
      stash_nack_path_id_.operate(pipe, slot, [&](std::uint32_t& path) { path = modulo_(psn); });
    }
}

Decision Destination::age(unsigned pipe, Slot slot, std::uint32_t since) {
  const std::uint32_t written = stash_time_.operate(pipe, slot.number, [](std::uint32_t& time) { return time; });
  if (static_cast<std::int32_t>(since - written) < 0) return {};
  return take_stash(pipe, slot.number);
}

Decision Destination::take_stash(unsigned pipe, std::uint32_t slot) {
  const auto get = [pipe, slot](auto& array) { return array.operate(pipe, slot, [](auto& cell) { return cell; }); };
  if (!has_stash(pipe, slot)) return {};
  stashed_nack_valid_.operate(pipe, slot, [](std::uint8_t& valid) { valid = 0; });
  return {.action = Action::kGenerate,
          .reason = Reason::kAged,
          .stash = {.epsn = get(stashed_nack_psn_).psn(),
                    .qpn = get(stash_nack_qpn_),
                    .aeth = get(stash_nack_aeth_),
                    .exit = get(stash_nack_egress_port_)}};
}

}  // namespace rocebox::themis
