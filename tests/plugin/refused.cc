// SPDX-License-Identifier: BSD-3-Clause
// Tables that rocebox must refuse. The environment says what is wrong with this one: TABLE, and for some KIND and NAME.
#include <cstdlib>
#include <string_view>

#include "runtime/component/component.h"

using namespace rocebox;

namespace {

struct Nothing final : Options {
  void fields(Fields&) override {}
};
std::unique_ptr<Options> nothing(const Registry&) { return std::make_unique<Nothing>(); }
std::unique_ptr<Options> null_options(const Registry&) { return nullptr; }
std::string no_host_options(const Component&) { return "{}"; }

}  // namespace

extern "C" const Component* rocebox_components() {
  const std::string_view table = std::getenv("TABLE");
  const char* kind = std::getenv("KIND");
  static Component rows[3];
  rows[0] = {kComponentAbi, kind, "first", "a right row", &nothing};
  rows[1] = {kComponentAbi, kind, "second", "another one", &nothing};
  rows[2] = {};
  if (table == "null") return nullptr;
  if (table == "empty") rows[0] = {};
  if (table == "abi") rows[0].abi++;
  if (table == "second_abi") rows[1].abi++;
  if (table == "name") rows[1].name = std::getenv("NAME");
  if (table == "no_kind") rows[1].kind = nullptr;
  if (table == "no_summary") rows[1].summary = nullptr;
  if (table == "no_options") rows[1].options = nullptr;
  if (table == "null_options") rows[1].options = &null_options;
  if (table == "host") rows[1].host = std::getenv("NAME");
  if (table == "host") rows[1].host_options = &no_host_options;
  if (table == "no_host_options") rows[1].host = "first";
  return rows;
}
