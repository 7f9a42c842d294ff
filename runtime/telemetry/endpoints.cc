// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/endpoints.h"

#include <fmt/format.h>
#include <rte_telemetry.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

namespace rocebox {
namespace {

// DPDK calls back with the command's name alone, so what answers is found by it, process-wide as DPDK's own list.
struct Table {
  std::mutex lock;
  std::map<std::string, Endpoints::Handler> handlers;
  std::set<std::string> registered;  // DPDK cannot forget a command
};
Table& table() {
  static Table* const forever = new Table;  // DPDK's threads outlive main()
  return *forever;
}

// Text that DPDK puts around an answer, and what it keeps free.
constexpr std::size_t kAnswerBytesMax = 16 * 1024 - 128;

std::string number_text(const Json& value) {
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}
bool is_u64(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}
bool is_int(const Json& value) {
  return value.is_boolean() || (value.is_number_integer() && value.get<std::int64_t>() >= INT32_MIN && !is_u64(value));
}
std::string text_of(const Json& value) {
  if (value.is_string()) return telemetry_text(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_null() ? "" : telemetry_text(number_text(value));
}
std::string key_of(const std::string& key) {
  std::string safe = telemetry_text(key);
  for (char& c : safe)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '/') c = '_';
  return safe;
}

// A list whose members are not plain, as an object.
Json numbered(const Json& list) {
  Json object = Json::object();
  for (std::size_t i = 0; i < list.size(); i++) object[std::to_string(i)] = list[i];
  return object;
}
bool is_plain_list(const Json& value) {
  return value.is_array() &&
         std::none_of(value.begin(), value.end(), [](const Json& member) { return member.is_structured(); });
}

// Why DPDK could not hold this; empty when it can.
std::string why_not(const Json& value) {
  const std::size_t most = is_plain_list(value) ? RTE_TEL_MAX_ARRAY_ENTRIES : RTE_TEL_MAX_DICT_ENTRIES;
  if (value.is_structured() && value.size() > most)
    return fmt::format("the answer has {} entries in one list, and DPDK's telemetry holds {}", value.size(), most);
  if (value.is_structured())
    for (const Json& member : value)
      if (std::string why = why_not(member); !why.empty()) return why;
  return "";
}

void fill_list(rte_tel_data* data, const Json& list) {
  const bool numbers = std::all_of(list.begin(), list.end(), is_u64);
  rte_tel_data_start_array(data, numbers && !list.empty() ? RTE_TEL_U64_VAL : RTE_TEL_STRING_VAL);
  for (const Json& member : list) {
    if (numbers)
      rte_tel_data_add_array_u64(data, member.get<std::uint64_t>());
    else
      rte_tel_data_add_array_string(data, text_of(member).c_str());
  }
}

void fill_object(rte_tel_data* data, const Json& object) {
  rte_tel_data_start_dict(data);
  for (const auto& [name, value] : object.items()) {
    const std::string key = key_of(name);
    if (value.is_structured()) {
      rte_tel_data* nested = rte_tel_data_alloc();
      if (!nested) throw std::bad_alloc();
      if (is_plain_list(value))
        fill_list(nested, value);
      else
        fill_object(nested, value.is_array() ? numbered(value) : value);
      if (rte_tel_data_add_dict_container(data, key.c_str(), nested, 0) < 0) rte_tel_data_free(nested);
    } else if (is_u64(value)) {
      rte_tel_data_add_dict_u64(data, key.c_str(), value.get<std::uint64_t>());
    } else if (is_int(value)) {
      rte_tel_data_add_dict_int(data, key.c_str(), value.get<int>());
    } else {
      rte_tel_data_add_dict_string(data, key.c_str(), text_of(value).c_str());
    }
  }
}

void fill(rte_tel_data* data, const Json& answer) {
  if (is_plain_list(answer)) return fill_list(data, answer);
  if (answer.is_array()) return fill_object(data, numbered(answer));
  if (answer.is_object()) return fill_object(data, answer);
  rte_tel_data_string(data, answer.is_string() ? answer.get<std::string>().c_str() : text_of(answer).c_str());
}

// What a handler answers, or an error in its place.
Json answer_of(const char* command, const char* parameters) {
  Table& all = table();
  const std::lock_guard lock(all.lock);
  const auto found = all.handlers.find(command);
  if (found == all.handlers.end()) return {{"error", "the run is over"}};
  try {
    Json answer = found->second(parameters ? parameters : "");
    std::string why = why_not(answer);
    const std::size_t bytes = answer.dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (why.empty() && bytes > kAnswerBytesMax)
      why = fmt::format("the answer has {} bytes, and DPDK's telemetry sends {}", bytes, kAnswerBytesMax);
    if (why.empty()) return answer;
    return {{"error", why}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

int on_call(const char* command, const char* parameters, rte_tel_data* data) {
  fill(data, answer_of(command, parameters));
  return 0;
}

}  // namespace

std::string telemetry_text(std::string text) {
  constexpr std::size_t kMost = RTE_TEL_MAX_STRING_LEN - 1;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end--;
  return text.substr(0, end) + "...";
}

void Endpoints::add(const std::string& path, const std::string& help, Handler handler) {
  Table& all = table();
  const std::lock_guard lock(all.lock);
  if (!all.registered.contains(path)) {
    if (const int error = rte_telemetry_register_cmd(path.c_str(), on_call, help.c_str()))
      throw std::logic_error(fmt::format("DPDK's telemetry does not take the command {}: error {}", path, error));
    all.registered.insert(path);
  }
  all.handlers[path] = std::move(handler);
  paths_.push_back(path);
}

Endpoints::~Endpoints() {
  Table& all = table();
  const std::lock_guard lock(all.lock);
  for (const std::string& path : paths_) all.handlers.erase(path);
}

}  // namespace rocebox
