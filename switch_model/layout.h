// SPDX-License-Identifier: BSD-3-Clause
// Layout: what a program takes of the hardware, declared once. A declaration gives the memory that the datapath uses,
// the row of the resource report, and what strict mode checks each access against.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/flows/flow_table.h"
#include "runtime/packet/prefetch.h"
#include "switch_model/packet_state.h"

namespace rocebox::switch_model {

enum class ResourceKind : std::uint8_t { kRegister, kExactTable, kLpmTable, kTernaryTable, kHash, kMeter, kCounters };
std::string_view resource_kind_name(ResourceKind kind);

/// Where a resource stands: its control, and the stage there, counted from the program's first one. What one stage
/// cannot hold takes the stages behind it too, and pushes back those of the program's later stages. lay_out() puts the
/// stages of a program behind all that programs before it have in that control: it may depend on what they decide.
struct At {
  Gress gress;
  unsigned stage;
};

/// One declared resource.
struct Resource {
  std::string program, name;
  ResourceKind kind;
  At at;
  std::uint64_t entries = 0;  ///< cells, table entries; 0: none (hash units)
  unsigned key_bits = 0;      ///< tables, hash units
  unsigned value_bits = 0;    ///< register cell, action data, output of a hash unit
  unsigned stateful_alus = 0;
  std::uint64_t per_flow = 0;  ///< cells that belong to one flow (QP); 0: the resource is shared by all
  unsigned id = 0;             ///< number among the switch's resources
  // Filled by lay_out(), which makes at.stage the chip's: where the program's stage begins.
  unsigned first_stage = 0, last_stage = 0;  ///< what it takes
  std::string part{};                        ///< of its program, see Layout::part()
  std::string unused{};                      ///< why no packet touches it with these options; see Layout::unused()

  std::uint64_t bits() const { return entries * (key_bits + value_bits); }
};

class Layout;

/// What every resource knows of itself.
class ResourceHandle {
 public:
  const Resource& resource() const { return *resource_; }
  unsigned id() const { return resource_->id; }

 protected:
  friend class Layout;
  const Resource* resource_ = nullptr;
};

/// A register array: `entries` cells of T, touched by one stateful-ALU operation per packet. T is up to 64 bits: a
/// number, bool (one bit a cell), or a pair of numbers that the ALU updates together. One array per pipe. All zero at
/// the start.
template <class T>
class RegisterArray : public ResourceHandle {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a stateful ALU has 64 bits of a cell");

 public:
  RegisterArray() = default;
  std::uint64_t entries() const { return entries_; }

  /// One stateful-ALU operation: `alu(T& cell)` may read and write the cell; what it returns is the ALU's output. The
  /// control plane may call this; a program goes through its Access, so that strict mode sees it.
  template <class Alu>
  auto operate(unsigned pipe, std::uint64_t index, Alu&& alu) {
    assert(index < entries_);
    return alu(cells_[pipe * entries_ + index]);
  }
  void prefetch(unsigned pipe, std::uint64_t index) const { prefetch_line(&cells_[pipe * entries_ + index]); }

 private:
  friend class Layout;
  flows::ZeroedArray<T> cells_;
  std::uint64_t entries_ = 0;
};

/// One-bit cells, packed.
template <>
class RegisterArray<bool> : public ResourceHandle {
 public:
  RegisterArray() = default;
  std::uint64_t entries() const { return entries_; }

  template <class Alu>
  auto operate(unsigned pipe, std::uint64_t index, Alu&& alu) {
    assert(index < entries_);
    std::uint64_t& word = words_[pipe * stride_ + index / 64];
    const std::uint64_t mask = std::uint64_t{1} << index % 64;
    bool cell = word & mask;
    struct Store {  // whatever the ALU returns, void too
      std::uint64_t &word, mask;
      bool& cell;
      ~Store() { word = cell ? word | mask : word & ~mask; }
    } store{word, mask, cell};
    return alu(cell);
  }
  void prefetch(unsigned pipe, std::uint64_t index) const { prefetch_line(&words_[pipe * stride_ + index / 64]); }
  /// The control plane: `count` cells from `from` on are false; both are multiples of 64, or the cells lie in one word.
  void clear(unsigned pipe, std::uint64_t from, std::uint64_t count) {
    std::uint64_t* words = &words_[pipe * stride_ + from / 64];
    assert(from + count <= entries_ && (count % 64 == 0 ? from % 64 == 0 : from % 64 + count <= 64));
    if (count < 64) *words &= ~(((std::uint64_t{1} << count) - 1) << from % 64);
    std::fill_n(words, count / 64, 0);
  }

 private:
  friend class Layout;
  flows::ZeroedArray<std::uint64_t> words_;
  std::uint64_t entries_ = 0, stride_ = 0;
};

/// What a program's constructor declares its resources with. One for all programs of a switch.
class Layout {
 public:
  explicit Layout(unsigned pipes) : pipes_(pipes) {}

  /// Resources declared from now on belong to this program.
  void begin(std::string_view program) {
    program_ = program;
    part_.clear();
  }
  /// Resources declared from now on are a part of the program that the report sums up alone, such as one table of a
  /// paper.
  void part(std::string_view name) { part_ = name; }

  /// `per_flow`: how many of the cells one flow (QP) has, for the report's bytes per flow. Throws ConfigError when
  /// there are more than kEntriesMax cells or kResourcesMax resources.
  template <class T>
  RegisterArray<T> registers(std::string_view name, At at, std::uint64_t entries, std::uint64_t per_flow = 0) {
    RegisterArray<T> array;
    constexpr unsigned kBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);
    array.resource_ = &add({program_, std::string(name), ResourceKind::kRegister, at, entries, 0, kBits, 1, per_flow});
    array.entries_ = entries;
    if constexpr (std::is_same_v<T, bool>) {
      array.stride_ = (entries + 63) / 64;
      array.words_ = flows::ZeroedArray<std::uint64_t>(pipes_ * array.stride_, flows::Pages::kHuge);
    } else {
      array.cells_ = flows::ZeroedArray<T>(pipes_ * entries, flows::Pages::kHuge);
    }
    return array;
  }

  /// Declares what holds its memory itself: tables, hash units, meters. The handle becomes the resource's.
  void declare(ResourceHandle& handle, Resource resource);

  /// With the options as they are no packet can touch this resource, since `why`: `check --strict` does not ask for it
  /// then. Strict mode holds the program to it.
  void unused(const ResourceHandle& handle, std::string_view why) { resources_[handle.id()].unused = why; }

  /// The same of all that the present program has declared.
  void unused_program(std::string_view why) {
    for (Resource& resource : resources_)
      if (resource.program == program_) resource.unused = why;
  }

  /// What the program does and no layout makes possible: strict mode refuses it before anything starts.
  void beyond(std::string_view what) { beyond_.emplace_back(what); }
  const std::vector<std::string>& beyond() const { return beyond_; }

  /// Reserves `words` 32-bit words of PacketState::metadata for this program; gives the first. Throws ConfigError when
  /// they do not fit.
  unsigned metadata(unsigned words);

  unsigned pipes() const { return pipes_; }
  const std::deque<Resource>& resources() const { return resources_; }
  std::deque<Resource>& resources() { return resources_; }

 private:
  Resource& add(Resource resource);

  unsigned pipes_;
  unsigned metadata_words_ = 0;
  std::string program_, part_;
  std::deque<Resource> resources_;  // a deque: handles point to them
  std::vector<std::string> beyond_;
};

}  // namespace rocebox::switch_model
