// SPDX-License-Identifier: BSD-3-Clause
// Ipv4Lpm, Ipv6Lpm: longest-prefix match on rte_lpm and rte_lpm6, or for a few prefixes on SmallLpm. What a prefix
// gives is a number.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "switch_model/layout.h"
#include "switch_model/tables/miss.h"
#include "switch_model/tables/small_lpm.h"

struct rte_lpm;
struct rte_lpm6;

namespace rocebox::switch_model {

/// Values that a prefix can give: what rte_lpm6 has bits for.
inline constexpr std::uint32_t kLpmValueMax = (1u << 21) - 1;

/// IPv4. The tables of rte_lpm take 64 MiB of address space, of which the system gives what is touched; they are made
/// with the first prefix.
class Ipv4Lpm : public ResourceHandle {
 public:
  using Key = std::uint32_t;  ///< the address as a number

  Ipv4Lpm(Layout& layout, std::string_view name, At at, std::uint32_t capacity, unsigned value_bits);
  /// One beside the declared ones, to be filled and then taken over by swap_entries().
  explicit Ipv4Lpm(std::uint32_t capacity) : capacity_(capacity) {}
  ~Ipv4Lpm();
  Ipv4Lpm(Ipv4Lpm&& other) noexcept : Ipv4Lpm(other.capacity_) { swap_entries(other); }
  Ipv4Lpm& operator=(Ipv4Lpm&&) = delete;

  /// Takes the entries of a table of the same capacity, and leaves it its own. Does not allocate.
  void swap_entries(Ipv4Lpm& other) noexcept {
    std::swap(lpm_, other.lpm_);
    std::swap(small_, other.small_);
    std::swap(default_, other.default_);
  }

  std::uint32_t lookup(Key address) const;
  /// At most kBatchMax at once.
  void lookup_bulk(std::span<const Key> addresses, std::span<std::uint32_t> values) const;
  /// False when the table is full. Throws ConfigError when there is no memory for the first prefix.
  bool insert(Key address, unsigned prefix_bits, std::uint32_t value);
  bool erase(Key address, unsigned prefix_bits);

 private:
  bool is_small() const { return capacity_ <= kSmallLpmPrefixes; }
  rte_lpm* lpm_ = nullptr;
  SmallLpm<4> small_;
  std::uint32_t capacity_, default_ = kMiss;  // 0.0.0.0/0, which rte_lpm cannot hold
};

/// IPv6.
class Ipv6Lpm : public ResourceHandle {
 public:
  using Key = std::array<std::uint8_t, 16>;

  Ipv6Lpm(Layout& layout, std::string_view name, At at, std::uint32_t capacity, unsigned value_bits);
  explicit Ipv6Lpm(std::uint32_t capacity) : capacity_(capacity) {}
  ~Ipv6Lpm();
  Ipv6Lpm(Ipv6Lpm&& other) noexcept : Ipv6Lpm(other.capacity_) { swap_entries(other); }
  Ipv6Lpm& operator=(Ipv6Lpm&&) = delete;

  void swap_entries(Ipv6Lpm& other) noexcept {
    std::swap(lpm_, other.lpm_);
    std::swap(small_, other.small_);
    std::swap(default_, other.default_);
  }

  std::uint32_t lookup(const Key& address) const;
  void lookup_bulk(std::span<const Key> addresses, std::span<std::uint32_t> values) const;
  bool insert(const Key& address, unsigned prefix_bits, std::uint32_t value);
  bool erase(const Key& address, unsigned prefix_bits);

 private:
  bool is_small() const { return capacity_ <= kSmallLpmPrefixes; }
  rte_lpm6* lpm_ = nullptr;
  SmallLpm<16> small_;
  std::uint32_t capacity_, default_ = kMiss;
};

}  // namespace rocebox::switch_model
