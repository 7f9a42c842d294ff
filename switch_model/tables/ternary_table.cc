// SPDX-License-Identifier: BSD-3-Clause
#include "switch_model/tables/ternary_table.h"

#include <fmt/format.h>
#include <rte_acl.h>
#include <rte_errno.h>

#include <array>
#include <cstring>

#include "runtime/kernel/kernel.h"
#include "switch_model/tables/names.h"

namespace rocebox::switch_model {
namespace {

// rte_acl wants a first field of one byte: one that is always 0 stands before the key.
constexpr std::uint32_t kLead = 4, kWord = 4, kWordsMax = 16;
RTE_ACL_RULE_DEF(acl_rule, kWordsMax + 1);

std::uint32_t big_endian(const void* bytes, std::uint32_t word) {
  std::uint8_t b[kWord];
  std::memcpy(b, static_cast<const std::uint8_t*>(bytes) + word * kWord, kWord);
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

rte_acl_config describe_key(std::uint32_t words) {
  rte_acl_config config{};
  config.num_categories = 1;
  config.num_fields = words + 1;
  config.defs[0] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0};
  for (std::uint32_t i = 0; i < words; i++) {
    const auto index = static_cast<std::uint8_t>(i + 1);
    config.defs[i + 1] = {RTE_ACL_FIELD_TYPE_BITMASK, kWord, index, index, kLead + i * kWord};
  }
  return config;
}

}  // namespace

AclIndex::~AclIndex() { rte_acl_free(acl_); }

void AclIndex::build(std::span<const Rule> rules) {
  const std::uint32_t words = key_bytes_ / kWord;
  rte_acl_ctx* made = nullptr;
  if (!rules.empty()) {
    const std::string name = table_name();
    rte_acl_param parameters{};
    parameters.name = name.c_str();
    parameters.socket_id = SOCKET_ID_ANY;
    parameters.rule_size = static_cast<std::uint32_t>(RTE_ACL_RULE_SZ(words + 1));
    parameters.max_rule_num = static_cast<std::uint32_t>(rules.size());
    made = rte_acl_create(&parameters);
    int error = made ? 0 : -rte_errno;
    for (std::size_t i = 0; i < rules.size() && error == 0; i++) {
      acl_rule rule{};
      rule.data.userdata = static_cast<std::uint32_t>(i + 1);  // 0 is a miss
      rule.data.category_mask = 1;
      rule.data.priority = static_cast<std::int32_t>(rules[i].priority);
      rule.field[0].mask_range.u8 = 0xFF;
      for (std::uint32_t word = 0; word < words; word++) {
        rule.field[word + 1].mask_range.u32 = big_endian(rules[i].mask, word);
        rule.field[word + 1].value.u32 = big_endian(rules[i].value, word) & big_endian(rules[i].mask, word);
      }
      error = rte_acl_add_rules(made, reinterpret_cast<const rte_acl_rule*>(&rule), 1);
    }
    const rte_acl_config config = describe_key(words);
    if (error == 0) error = rte_acl_build(made, &config);
    if (error != 0) {
      rte_acl_free(made);
      throw ConfigError(fmt::format("no ternary table of {} entries: {}", rules.size(), rte_strerror(-error)));
    }
  }
  rte_acl_free(acl_);
  acl_ = made;
}

void AclIndex::find_bulk(const std::uint8_t* keys, std::size_t stride, std::uint32_t count,
                         std::uint32_t* entries) const {
  std::fill_n(entries, count, kMiss);
  if (!acl_ || count == 0) return;
  std::array<std::array<std::uint8_t, kLead + kWord * kWordsMax>, kBatchMax> bytes;
  std::array<const std::uint8_t*, kBatchMax> pointers;
  std::array<std::uint32_t, kBatchMax> results;
  for (std::uint32_t i = 0; i < count; i++) {
    std::memset(bytes[i].data(), 0, kLead);
    std::memcpy(bytes[i].data() + kLead, keys + i * stride, key_bytes_);
    pointers[i] = bytes[i].data();
  }
  rte_acl_classify(acl_, pointers.data(), results.data(), count, 1);
  for (std::uint32_t i = 0; i < count; i++)
    if (results[i] != 0) entries[i] = results[i] - 1;
}

}  // namespace rocebox::switch_model
