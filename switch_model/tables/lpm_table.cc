// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/tables/lpm_table.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>

#include "runtime/kernel/kernel.h"
#include "switch_model/tables/names.h"

namespace rocebox::switch_model {
namespace {

// Groups of 256 addresses below /24: one for each long prefix, and some to spare.
constexpr std::uint32_t kTbl8PerPrefix = 1, kTbl8Spare = 256;

Resource lpm_resource(std::string_view name, At at, std::uint32_t capacity, unsigned key_bits, unsigned value_bits) {
  return {{}, std::string(name), ResourceKind::kLpmTable, at, capacity, key_bits, value_bits, 0, 0};
}

[[noreturn]] void no_memory(std::uint32_t capacity) {
  throw ConfigError(fmt::format("no memory for {} prefixes: {}", capacity, rte_strerror(rte_errno)));
}

SmallLpm<4>::Key bytes_of(Ipv4Lpm::Key address) {
  return {static_cast<std::uint8_t>(address >> 24), static_cast<std::uint8_t>(address >> 16),
          static_cast<std::uint8_t>(address >> 8), static_cast<std::uint8_t>(address)};
}

}  // namespace

Ipv4Lpm::Ipv4Lpm(Layout& layout, std::string_view name, At at, std::uint32_t capacity, unsigned value_bits)
    : capacity_(capacity) {
  layout.declare(*this, lpm_resource(name, at, capacity, 32, value_bits));
}
Ipv4Lpm::~Ipv4Lpm() { rte_lpm_free(lpm_); }

std::uint32_t Ipv4Lpm::lookup(Key address) const {
  if (is_small()) {
    const std::uint32_t found = small_.lookup(bytes_of(address));
    return found == kMiss ? default_ : found;
  }
  std::uint32_t value;
  return lpm_ && rte_lpm_lookup(lpm_, address, &value) == 0 ? value : default_;
}

void Ipv4Lpm::lookup_bulk(std::span<const Key> addresses, std::span<std::uint32_t> values) const {
  const auto count = static_cast<unsigned>(addresses.size());
  if (!lpm_) {
    for (unsigned i = 0; i < count; i++) values[i] = is_small() ? lookup(addresses[i]) : default_;
    return;
  }
  if (count == 0) return;
  rte_lpm_lookup_bulk(lpm_, addresses.data(), values.data(), count);
  for (unsigned i = 0; i < count; i++)
    values[i] = values[i] & RTE_LPM_LOOKUP_SUCCESS ? values[i] & 0x00FFFFFF : default_;
}

bool Ipv4Lpm::insert(Key address, unsigned prefix_bits, std::uint32_t value) {
  if (prefix_bits == 0) {
    default_ = value;
    return true;
  }
  if (is_small()) return small_.insert(bytes_of(address), prefix_bits, value, capacity_);
  if (!lpm_) {
    const rte_lpm_config config{capacity_, capacity_ * kTbl8PerPrefix + kTbl8Spare, 0};
    lpm_ = rte_lpm_create(table_name().c_str(), SOCKET_ID_ANY, &config);
    if (!lpm_) no_memory(capacity_);
  }
  return rte_lpm_add(lpm_, address, static_cast<std::uint8_t>(prefix_bits), value) == 0;
}

bool Ipv4Lpm::erase(Key address, unsigned prefix_bits) {
  if (prefix_bits == 0) {
    default_ = kMiss;
    return true;
  }
  if (is_small()) return small_.erase(bytes_of(address), prefix_bits);
  return lpm_ && rte_lpm_delete(lpm_, address, static_cast<std::uint8_t>(prefix_bits)) == 0;
}

Ipv6Lpm::Ipv6Lpm(Layout& layout, std::string_view name, At at, std::uint32_t capacity, unsigned value_bits)
    : capacity_(capacity) {
  layout.declare(*this, lpm_resource(name, at, capacity, 128, value_bits));
}
Ipv6Lpm::~Ipv6Lpm() { rte_lpm6_free(lpm_); }

std::uint32_t Ipv6Lpm::lookup(const Key& address) const {
  if (is_small()) {
    const std::uint32_t found = small_.lookup(address);
    return found == kMiss ? default_ : found;
  }
  std::uint32_t value;
  return lpm_ && rte_lpm6_lookup(lpm_, address.data(), &value) == 0 ? value : default_;
}

void Ipv6Lpm::lookup_bulk(std::span<const Key> addresses, std::span<std::uint32_t> values) const {
  for (std::size_t i = 0; i < addresses.size(); i++) values[i] = lookup(addresses[i]);
}

bool Ipv6Lpm::insert(const Key& address, unsigned prefix_bits, std::uint32_t value) {
  if (prefix_bits == 0) {
    default_ = value;
    return true;
  }
  if (is_small()) return small_.insert(address, prefix_bits, value, capacity_);
  if (!lpm_) {
    // A prefix of 128 bits takes up to 13 groups of 256.
    const rte_lpm6_config config{capacity_, capacity_ * 13 + kTbl8Spare, 0};
    lpm_ = rte_lpm6_create(table_name().c_str(), SOCKET_ID_ANY, &config);
    if (!lpm_) no_memory(capacity_);
  }
  return rte_lpm6_add(lpm_, address.data(), static_cast<std::uint8_t>(prefix_bits), value) == 0;
}

bool Ipv6Lpm::erase(const Key& address, unsigned prefix_bits) {
  if (prefix_bits == 0) {
    default_ = kMiss;
    return true;
  }
  if (is_small()) return small_.erase(address, prefix_bits);
  return lpm_ && rte_lpm6_delete(lpm_, address.data(), static_cast<std::uint8_t>(prefix_bits)) == 0;
}

}  // namespace rocebox::switch_model
