// SPDX-License-Identifier: BSD-3-Clause
// The variables of the environment that the API knows, beside SDR_CONFIG.
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "kernels/sdr/sdk/objects.h"

namespace rocebox::libsdr {
namespace {

// What a variable can be: from 1 on.
struct Bound {
  std::uint32_t most;
  bool power_of_two;
};

std::uint32_t number(const char* name, std::uint32_t otherwise, std::optional<Bound> bound = {}) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  std::uint32_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  if (at != end || error == std::errc::invalid_argument)
    throw ConfigError(fmt::format("{} is `{}`, which is no number", name, text));
  if (error != std::errc() ||
      (bound && (value < 1 || value > bound->most || (bound->power_of_two && !std::has_single_bit(value)))))
    throw ConfigError(fmt::format("{} is {}; it can be {}{} to {}", name, text,
                                  bound && bound->power_of_two ? "a power of two from " : "", bound ? 1 : 0,
                                  bound ? bound->most : UINT32_MAX));
  return value;
}

}  // namespace

Environment Environment::read() {
  Environment e;
  e.generations = number("SDR_QP_NUM_GENERATIONS", 4, Bound{sdr::kGenerationsMax, true});
  e.send_batch = number("SDR_SEND_CTX_SWR_BATCH_SIZE", 16, Bound{1u << sdr::kLogSendBlocks, false});
  e.entries_factor = number("SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR", 1, Bound{sdr::kRootEntriesMax, true});
  e.root_keys = number("SDR_RECV_CTX_N_ROOT_MKEYS", e.generations, Bound{sdr::kRootKeysMax, true});
  e.unreliable = number("SDR_USE_UC_QP", 0) != 0;
  e.rnr_retry = number("SDR_NO_RC_RNR_RETRY", 0) == 0;
  e.reports = number("SDR_DPA_RX_PROFILE_STATS_REPORT", 0) != 0;
  const bool offloads = number("SDR_DPA_TX_OFFLOADING_ENABLE", 0) != 0;
  const std::uint32_t senders =  // 4: as the paper's testbed has
      number("SDR_DPA_TX_NUM_WORKERS", 4, offloads ? std::optional(Bound{sdr::kChannelsMax, false}) : std::nullopt);
  if (offloads) e.senders = senders;
  e.reports_sent = number("SDR_DPA_TX_PROFILE_STATS_REPORT", 0) != 0;
  return e;
}

}  // namespace rocebox::libsdr
