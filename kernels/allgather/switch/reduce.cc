// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/switch/reduce.h"

#include <array>

#include "kernels/allgather/switch/config.h"
#include "kernels/allgather/switch/slots.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/parse.h"

namespace rocebox {
namespace reduce {
namespace {

using switch_model::kNoPort;
using switch_model::PacketState;
using switch_model::Pass;

class Reduce {
 public:
  using Config = reduce::Config;

  Reduce(const Config& config, const switch_model::Build& build)
      : config_(config),
        slots_(static_cast<std::uint32_t>(config.slots), config.children_max(), config.bytes),
        count_(build.stats) {
    for (const TreeConfig& row : config.trees) {
      // Its parent would wait for what is for that host from here, and nothing would come.
      if (!row.parent.empty() && row.children.size() == 1 && row.children[0].only)
        throw ConfigError("inc_reduce: a tree has one host alone at a switch that is not its root: `" +
                          row.children[0].port + "`");
      Tree& tree = trees_.emplace_back();
      tree.child_of.fill(kNone);
      tree.parent = row.parent.empty() ? kNoPort : build.info.find(row.parent);
      tree.parent_mac = row.parent_mac;
      for (std::size_t i = 0; i < row.children.size(); i++) {
        tree.child_of[build.info.find(row.children[i].port)] = static_cast<std::uint8_t>(i);
        tree.all.set(i);
        tree.only.push_back(row.children[i].only);
      }
    }
    if (!trees_.empty())
      build.layout.beyond(
          "program inc_reduce, ingress: it adds a whole payload in one pass, and waits for all children");
  }

  template <class Access>
  void ingress(Access&, Pass& pass) {
    if (trees_.empty()) return;
    for (PacketState& p : pass) {
      if (p.drop_reason || p.egress_port != kNoPort || !roce::is_roce(p.packet)) continue;
      const roce::Deth* deth = roce::deth(p.packet);
      const roce::ImmDt* immediate = roce::immdt(p.packet);
      if (!deth || !immediate) continue;
      const std::int64_t qkey = static_cast<std::uint32_t>(deth->qkey);
      if (qkey != config_.float_qkey && qkey != config_.int_qkey) continue;
      contribute(pass, p,
                 {roce::addresses(p.packet).destination, static_cast<std::uint32_t>(roce::bth(p.packet).destination_qp),
                  static_cast<std::uint32_t>(immediate->data), qkey == config_.float_qkey});
    }
  }

  void report(Report& report) const {
    std::vector<std::uint32_t> busy;
    for (std::uint32_t i = 0; i < slots_.size(); i++)
      if (slots_[i].busy) busy.push_back(i);
    report.table("waiting", busy.size(), [&](Report& row, std::size_t i) {
      const Slot& slot = slots_[busy[i]];
      row.text("owner", roce::address_text(slot.key.owner));
      row.count("immediate_number", slot.key.immediate);
      row.count("contributions", static_cast<std::int64_t>(slot.came.count()));
    });
  }

 private:
  static constexpr std::uint8_t kNone = 0xFF;
  struct Tree {
    std::array<std::uint8_t, switch_model::kSwitchPortsMax> child_of;  // by port
    Children all;
    std::vector<std::optional<roce::IpAddress>> only;
    Port parent = kNoPort;
    std::optional<roce::Mac> parent_mac;
  };
  struct Counters {
    explicit Counters(Stats& stats)
        : sums(stats.counter("reduced_sums", "sums that went on")),
          absorbed(stats.counter("reduced", "contributions that went into a sum and no further")),
          without_bytes(stats.counter("reduced_without_bytes", "contributions of which only headers were there")),
          duplicates(stats.counter("drop_reduce_duplicate", "contributions that had come before")),
          busy(stats.counter("drop_reduce_slot_busy", "contributions whose slot had another chunk")),
          length(stats.counter("drop_reduce_length",
                               "contributions of another length than the first, or none of numbers")),
          icrc(stats.counter("drop_reduce_icrc", "contributions with a wrong ICRC")),
          stranger(stats.counter("drop_reduce_stranger", "contributions from where none are expected")) {}
    Counter &sums, &absorbed, &without_bytes, &duplicates, &busy, &length, &icrc, &stranger;
  };

  // The children that contribute to what `owner` gets.
  static Children expected(const Tree& tree, const roce::IpAddress& owner) {
    Children children = tree.all;
    for (std::size_t i = 0; i < tree.only.size(); i++)
      if (tree.only[i] == owner) children.reset(i);
    return children;
  }

  void contribute(Pass& pass, PacketState& p, const ChunkKey& key) {
    const Tree& tree = trees_[key.immediate % trees_.size()];
    if (tree.parent != kNoPort && p.ingress_port == tree.parent) return;  // a whole sum on its way down
    if (tree.all.none()) return;                                          // the tree does not pass here
    const std::uint8_t child = tree.child_of[p.ingress_port];
    const Children wanted = expected(tree, key.owner);
    if (child == kNone || !wanted[child]) return pass.drop(p, count_.stranger);
    const roce::IcrcStatus icrc = roce::icrc_check(p.packet);
    if (icrc == roce::IcrcStatus::kBad) return pass.drop(p, count_.icrc);
    const std::uint32_t number = key.immediate % slots_.size();
    Slot& slot = slots_[number];
    if (!slot.busy && slot.has_last && slot.last == key) return pass.drop(p, count_.duplicates);
    if (slot.busy && slot.key != key) return pass.drop(p, count_.busy);
    const std::uint32_t bytes = p.packet.meta().payload_bytes;
    if (!slot.busy) begin(slot, key, bytes);
    if (slot.came[child]) return pass.drop(p, count_.duplicates);
    if (bytes != slot.bytes || bytes % 4 != 0 || bytes > config_.bytes) {
      slot.busy = slot.came.any();
      return pass.drop(p, count_.length);
    }
    keep(p.packet, slot, number, child, icrc == roce::IcrcStatus::kGood);
    if ((wanted & ~slot.came).any()) return pass.drop(p, count_.absorbed);
    finish(p, slot, number, tree);
  }

  static void begin(Slot& slot, const ChunkKey& key, std::uint32_t bytes) {
    slot.busy = slot.has_bytes = true;
    slot.key = key;
    slot.bytes = bytes;
    slot.came.reset();
    slot.head_bytes = 0;
  }

  void keep(Packet packet, Slot& slot, std::uint32_t number, std::uint8_t child, bool is_whole) {
    slot.came.set(child);
    if (!is_whole) {
      slot.has_bytes = false;
      return count_.without_bytes.add();
    }
    const std::uint32_t head = payload_offset(packet);
    slots_.keep(number, child, packet.data() + head, slot.bytes);
    if (head > kHeadMax || (slot.head_bytes != 0 && slot.head_child < child)) return;
    slot.head_bytes = head;
    slot.head_child = child;
    std::memcpy(slot.head, packet.data(), head);
  }
  static std::uint32_t payload_offset(Packet packet) {
    return packet.meta().bth_offset +
           static_cast<std::uint32_t>(sizeof(roce::Bth) + sizeof(roce::Deth) + sizeof(roce::ImmDt));
  }

  // The contribution that was the last becomes the sum; its headers are the first child's, whoever was the last.
  void finish(PacketState& p, Slot& slot, std::uint32_t number, const Tree& tree) {
    if (slot.has_bytes) {
      const std::uint32_t head = payload_offset(p.packet);
      slots_.sum(number, slot.came, slot.key.is_float, p.packet.data() + head, slot.bytes);
      if (slot.head_bytes == head) std::memcpy(p.packet.data(), slot.head, head);
      roce::icrc_store(p.packet);
    }
    slot.busy = false;
    slot.has_last = true;
    slot.last = slot.key;
    count_.sums.add();
    auto* ethernet = p.packet.header<roce::Ethernet>(0);
    const std::optional<roce::Mac>& to = tree.parent != kNoPort ? tree.parent_mac : config_.router_mac;
    if (to) std::memcpy(ethernet->destination, to->data(), 6);
    p.egress_port = tree.parent;  // of a root kNoPort: the programs behind send it to its owner
  }

  const Config config_;
  std::vector<Tree> trees_;
  Slots slots_;
  Counters count_;
};

constexpr Example kReduceExamples[] = {
    {"the root of a tree of two hosts and a switch below",
     "{programs: [inc_reduce, forward], inc_reduce: {slots: 16, bytes: 256, trees: [{children: [{port: p0, only: "
     "10.0.0.1}, "
     "{port: p1, only: 10.0.0.2}, {port: p2}]}]}}"},
    {"below it",
     "{programs: [inc_reduce, forward], inc_reduce: {slots: 4, bytes: 1KiB, trees: [{children: [{port: p0}, {port: "
     "p1}], "
     "parent: p3, parent_mac: 02:00:00:00:00:02}]}}"},
    {nullptr, nullptr},
};

}  // namespace
}  // namespace reduce

Component inc_reduce_component() {
  return switch_model::program<reduce::Reduce>(
      "inc_reduce", "before `forward`: sums of packets of a reduction, on their way up a tree (INC ReduceScatter)",
      reduce::kReduceExamples);
}

}  // namespace rocebox
