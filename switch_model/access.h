// SPDX-License-Identifier: BSD-3-Clause
// Access: how a program's control touches its resources. Fast is plain memory, inlined; Strict is the same and holds
// each access against what a match-action pipeline can do. A control is a template over it, so both run one code; where
// Fast has a shortcut (forward/recent_flows.h), a test holds its answers against Strict's.
#pragma once
#include <array>
#include <bitset>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel/counter.h"
#include "switch_model/layout.h"

namespace rocebox::switch_model {

/// Plain memory.
class Fast {
 public:
  static constexpr bool kStrict = false;

  /// One stateful-ALU operation on a cell for packet `p`: `alu(T& cell)` reads and writes it, and returns its output.
  template <class T, class Alu>
  auto update(const PacketState& p, RegisterArray<T>& array, std::uint64_t index, Alu&& alu) {
    return array.operate(p.pipe, index, alu);
  }
  template <class T>
  T read(const PacketState& p, RegisterArray<T>& array, std::uint64_t index) {
    return array.operate(p.pipe, index, [](T& cell) { return cell; });
  }
  template <class T>
  void write(const PacketState& p, RegisterArray<T>& array, std::uint64_t index, T value) {
    array.operate(p.pipe, index, [value](T& cell) { cell = value; });
  }
  /// Brings a cell nearer; for batches: prefetch all, then update. No access in the sense of the hardware.
  template <class T>
  void prefetch(const PacketState& p, const RegisterArray<T>& array, std::uint64_t index) {
    array.prefetch(p.pipe, index);
  }

  /// Matches packet `p` against a table (switch_model/tables): what Table::lookup gives.
  template <class Table>
  std::uint32_t lookup(const PacketState&, const Table& table, const typename Table::Key& key) {
    return table.lookup(key);
  }
  /// Matches packets[i], some of the pass's, by keys[i], all at once: entries[i] is what Table::lookup would give.
  template <class Table>
  void lookup_bulk(std::span<PacketState* const>, const Table& table, std::span<const typename Table::Key> keys,
                   std::span<std::uint32_t> entries) {
    table.lookup_bulk(keys, entries);
  }
  /// The same; `found(i, entry)` is called for some that are found, in which a prefetch may be made.
  template <class Table, class Found>
  void lookup_bulk(std::span<PacketState* const>, const Table& table, std::span<const typename Table::Key> keys,
                   std::span<std::uint32_t> entries, Found&& found) {
    table.lookup_bulk(keys, entries, found);
  }
  /// The output of a hash unit (switch_model/hash.h) over `bytes`.
  template <class Unit>
  std::uint32_t hash(const PacketState&, const Unit& unit, std::span<const std::uint8_t> bytes) {
    return unit.compute(bytes);
  }
  /// The color that a meter (switch_model/meter.h) gives packet `p` now.
  template <class Meters>
  auto meter(const PacketState& p, Meters& meters, std::uint64_t index, Nanos now) {
    return meters.execute(p.pipe, index, p.packet.wire_bytes(), now);
  }
  /// Counts packet `p` and its bytes under `index` (switch_model/counter_array.h).
  template <class Counters>
  void count(const PacketState& p, Counters& counters, std::uint64_t index) {
    counters.count(p.pipe, index, p.packet.wire_bytes());
  }
};

/// A breach of the hardware's discipline.
struct Violation {
  std::string text;  ///< "program themis, ingress, stage 3, register `last_nack_psn`: a second access by one packet"
  std::uint64_t count = 0;
};

/// What a switch in strict mode found, over all its programs.
class Violations {
 public:
  explicit Violations(Counter& counter) : counter_(counter) {}
  void add(const std::string& text);
  const std::vector<Violation>& list() const { return list_; }
  /// Accesses were judged for this resource.
  void judged(const Resource& resource) { judged_[resource.id] = true; }
  bool has_judged(const Resource& resource) const { return judged_[resource.id]; }

 private:
  Counter& counter_;
  std::bitset<kResourcesMax> judged_;
  std::vector<Violation> list_;  // at most kViolationsKept
};

/// Records what each packet touches in a control, over all programs of the device. Refused, each with program, control,
/// stage and resource: a resource touched twice by one packet (so a loop over data too), a stage before the one that
/// the packet was in, whichever program's, a resource of the other control, an index beyond the array, a resource that
/// its program calls unused. A prefetch is no access.
class Strict {
 public:
  static constexpr bool kStrict = true;

  explicit Strict(Violations& violations) : violations_(violations) {}

  /// A control begins with these packets, in its first stage: before its first program.
  void begin(Gress gress, std::span<const PacketState> packets);

  template <class T, class Alu>
  auto update(const PacketState& p, RegisterArray<T>& array, std::uint64_t index, Alu&& alu) {
    touch(p, array.resource());
    if (index >= array.entries()) {
      report(array.resource(), "an index beyond the array");
      index = 0;
    }
    return array.operate(p.pipe, index, alu);
  }
  template <class T>
  T read(const PacketState& p, RegisterArray<T>& array, std::uint64_t index) {
    return update(p, array, index, [](T& cell) { return cell; });
  }
  template <class T>
  void write(const PacketState& p, RegisterArray<T>& array, std::uint64_t index, T value) {
    update(p, array, index, [value](T& cell) { cell = value; });
  }
  template <class T>
  void prefetch(const PacketState&, const RegisterArray<T>&, std::uint64_t) {}
  template <class Table>
  std::uint32_t lookup(const PacketState& p, const Table& table, const typename Table::Key& key) {
    touch(p, table.resource());
    return table.lookup(key);
  }
  template <class Table>
  void lookup_bulk(std::span<PacketState* const> packets, const Table& table, std::span<const typename Table::Key> keys,
                   std::span<std::uint32_t> entries) {
    for (const PacketState* p : packets) touch(*p, table.resource());
    table.lookup_bulk(keys, entries);
  }
  template <class Table, class Found>
  void lookup_bulk(std::span<PacketState* const> packets, const Table& table, std::span<const typename Table::Key> keys,
                   std::span<std::uint32_t> entries, Found&&) {
    lookup_bulk(packets, table, keys, entries);
  }
  template <class Unit>
  std::uint32_t hash(const PacketState& p, const Unit& unit, std::span<const std::uint8_t> bytes) {
    touch(p, unit.resource());
    return unit.compute(bytes);
  }
  template <class Meters>
  auto meter(const PacketState& p, Meters& meters, std::uint64_t index, Nanos now) {
    touch(p, meters.resource());
    if (index >= meters.entries()) {
      report(meters.resource(), "an index beyond the array");
      index = 0;
    }
    return meters.execute(p.pipe, index, p.packet.wire_bytes(), now);
  }
  template <class Counters>
  void count(const PacketState& p, Counters& counters, std::uint64_t index) {
    touch(p, counters.resource());
    if (index >= counters.entries()) {
      report(counters.resource(), "an index beyond the array");
      index = 0;
    }
    counters.count(p.pipe, index, p.packet.wire_bytes());
  }

 private:
  struct Track {
    std::bitset<kResourcesMax> touched;
    const Resource* latest = nullptr;  // of the stage furthest behind
  };
  void touch(const PacketState& p, const Resource& resource);
  void report(const Resource& resource, std::string_view what, const Resource* other = nullptr);

  Violations& violations_;
  Gress gress_ = Gress::kIngress;
  const PacketState* first_ = nullptr;
  std::array<Track, kBatchMax> tracks_;
};

}  // namespace rocebox::switch_model
