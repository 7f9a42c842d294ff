// SPDX-License-Identifier: BSD-3-Clause
// The functions of PCC's device side that are not in its headers: programs find them in the command when they are
// loaded. Each works on the process that runs.
#include <fmt/format.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "nic_model/pcc/process.h"

using rocebox::nic_model::pcc::Process;
using rocebox::nic_model::pcc::Tables;

namespace {

constexpr int kOk = 0, kFail = 1;
constexpr std::size_t kTextBytesMax = 256;

Process& pcc_self() { return *Process::current(); }
int pcc_status(bool ok) { return ok ? kOk : kFail; }

// A text by its address and bytes, as programs give descriptions.
std::string pcc_text(std::uint64_t address, std::uint32_t bytes) {
  const auto* first = reinterpret_cast<const char*>(address);
  return first ? std::string(first, strnlen(first, std::min<std::size_t>(bytes, kTextBytesMax))) : std::string();
}

const Tables::Slot* pcc_slot(std::uint32_t port, std::uint32_t slot) {
  return Process::current()->tables().slot(port, slot);
}

// As the program has it: doca_pcc_dev_algo_access.h.
struct AlgorithmMetadata {
  std::uint32_t id, major, minor, text_bytes;
  std::uint64_t text;
};

}  // namespace

extern "C" {

#define DEVICE_API __attribute__((visibility("default"), used))

DEVICE_API void doca_pcc_dev_default_internal_algo(doca_pcc_dev_algo_ctxt_t*, doca_pcc_dev_event_t*,
                                                   const doca_pcc_dev_attr_t*, doca_pcc_dev_results_t* results) {
  pcc_self().internal(*results);
}

DEVICE_API int doca_pcc_dev_algo_init_metadata(std::uint32_t algorithm, const AlgorithmMetadata* about,
                                               std::uint32_t parameters, std::uint32_t counters) {
  return pcc_status(pcc_self().tables().declare(
      algorithm, about ? pcc_text(about->text, about->text_bytes) : std::string(), parameters, counters));
}
DEVICE_API int doca_pcc_dev_algo_init_param(std::uint32_t algorithm, std::uint32_t id, std::uint32_t at_first,
                                            std::uint32_t most, std::uint32_t least, std::uint32_t permissions,
                                            std::uint32_t text_bytes, std::uint64_t text) {
  return pcc_status(pcc_self().tables().declare_parameter(
      algorithm, id, {at_first, least, most, (permissions & 1) != 0, pcc_text(text, text_bytes)}));
}
DEVICE_API int doca_pcc_dev_algo_init_counter(std::uint32_t algorithm, std::uint32_t id, std::uint32_t, std::uint32_t,
                                              std::uint32_t text_bytes, std::uint64_t text) {
  return pcc_status(pcc_self().tables().declare_counter(algorithm, id, pcc_text(text, text_bytes)));
}
DEVICE_API int doca_pcc_dev_init_algo_slot(std::uint32_t port, std::uint32_t slot, std::uint32_t algorithm,
                                           std::uint32_t enabled) {
  return pcc_status(pcc_self().tables().assign(port, slot, algorithm, enabled != 0));
}
DEVICE_API int doca_pcc_dev_declare_slot_algo(std::uint32_t port, std::uint32_t slot, std::uint8_t algorithm) {
  return pcc_status(pcc_self().is_declaring() && pcc_self().tables().plan_slot(port, slot, algorithm));
}
DEVICE_API int doca_pcc_dev_declare_algo(std::uint32_t algorithm, std::uint32_t parameters, std::uint32_t counters) {
  return pcc_status(pcc_self().is_declaring() && pcc_self().tables().plan(algorithm, parameters, counters));
}
// What is not here: doca_pcc_dev.h and doca_pcc_dev_algo_access.h say so.
DEVICE_API int doca_pcc_dev_custom_header_set(void*, void*, std::uint32_t*, std::uint32_t, std::uint32_t) {
  return kFail;
}
DEVICE_API int doca_pcc_dev_declare_num_counter_groups(std::uint32_t) { return kFail; }
DEVICE_API int doca_pcc_dev_set_slot_counter_group(std::uint32_t, std::uint32_t, std::uint32_t) { return kFail; }
DEVICE_API int doca_pcc_dev_declare_threads_per_counter_set(std::uint32_t) { return kFail; }
DEVICE_API std::uint32_t doca_pcc_dev_get_max_threads_per_counter_set() { return 0; }
DEVICE_API int doca_pcc_dev_set_counter_type(std::uint32_t, std::uint32_t, std::uint32_t) { return kFail; }
DEVICE_API int doca_pcc_dev_declare_num_of_histograms(std::uint32_t) { return kFail; }
DEVICE_API int doca_pcc_dev_histogram_init(std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                                           const std::uint32_t*, std::uint32_t, int, const char*, void** histogram) {
  if (histogram) *histogram = nullptr;
  return kFail;
}
DEVICE_API int doca_pcc_dev_histogram_clear(void*) { return kFail; }
DEVICE_API void doca_pcc_dev_histogram_update(void*, std::uint32_t) {}
DEVICE_API const char* doca_pcc_dev_histogram_get_description(void*) { return nullptr; }
DEVICE_API int doca_pcc_dev_histogram_disable(void*) { return kFail; }
DEVICE_API int doca_pcc_dev_histogram_enable(void*) { return kFail; }
DEVICE_API int doca_pcc_dev_algo_register_hist_ids(std::uint32_t, const std::uint32_t*, std::uint32_t) { return kFail; }

DEVICE_API std::uint32_t doca_pcc_dev_get_counters_num(std::uint32_t port, std::uint32_t slot) {
  const Tables::Slot* one = pcc_slot(port, slot);
  return one ? pcc_self().tables().counters(*one) : 0;
}
DEVICE_API std::uint32_t* doca_pcc_dev_get_counters(std::uint32_t port, std::uint32_t slot) {
  const Tables::Slot* one = pcc_slot(port, slot);
  return one ? one->counters : nullptr;
}
DEVICE_API std::uint32_t doca_pcc_dev_get_algo_params_num(std::uint32_t port, std::uint32_t slot) {
  const Tables::Slot* one = pcc_slot(port, slot);
  return one ? pcc_self().tables().parameters(*one) : 0;
}
DEVICE_API std::uint32_t* doca_pcc_dev_get_algo_params(std::uint32_t port, std::uint32_t slot) {
  const Tables::Slot* one = pcc_slot(port, slot);
  return one ? one->parameters : nullptr;
}
DEVICE_API std::uint32_t doca_pcc_dev_get_algo_index(std::uint32_t port, std::uint32_t slot) {
  const Tables::Slot* one = pcc_slot(port, slot);
  return one ? one->algorithm : DOCA_PCC_DEV_ALGO_INDEX_INTERNAL;
}

DEVICE_API void doca_pcc_dev_nic_counters_config(std::uint32_t* ids, std::uint32_t count, std::uint32_t* values) {
  pcc_self().configure_counters(ids, count, values);
}
DEVICE_API void doca_pcc_dev_nic_counters_sample() { pcc_self().sample_counters(); }
DEVICE_API std::uint32_t doca_pcc_dev_get_logical_ports() { return 1; }
DEVICE_API std::uint32_t doca_pcc_dev_get_port_planes(std::uint32_t port) { return port == 0 ? 1 : 0; }
DEVICE_API std::uint32_t doca_pcc_dev_get_port_speed(std::uint32_t port) {
  return port == 0 ? static_cast<std::uint32_t>((pcc_self().line_rate() + 999'999'999) / 1'000'000'000) : 0;
}

DEVICE_API void doca_pcc_dev_printf(const char* format, ...) {
  char line[kTextBytesMax];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  pcc_self().say(line);
}
DEVICE_API void doca_pcc_dev_trace_5(int format, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d,
                                     std::uint64_t e) {
  pcc_self().say(fmt::format("trace {}: {} {} {} {} {}", format, a, b, c, d, e));
}
DEVICE_API void doca_pcc_dev_trace_flush() {}
DEVICE_API unsigned doca_pcc_dev_thread_rank() { return pcc_self().thread_rank(); }

DEVICE_API void doca_pcc_np_dev_set_response_prio(void*, std::uint32_t dscp) { pcc_self().set_response_dscp(dscp); }

DEVICE_API std::uint64_t rocebox_pcc_microseconds() {
  return static_cast<std::uint64_t>(pcc_self().moment().now) / 1000;
}
DEVICE_API std::uint64_t rocebox_pcc_cycles() {
  return static_cast<std::uint64_t>(pcc_self().moment().now) * 18 / 10;  // of 1.8 GHz
}
DEVICE_API int rocebox_pcc_set_udp_source_port(std::uint16_t port) {
  return port != 0 && pcc_self().give_source_port(port) ? 0 : 1;
}
DEVICE_API std::uint16_t rocebox_pcc_udp_source_port() { return pcc_self().source_port(); }
}
