// SPDX-License-Identifier: BSD-3-Clause
// Reads event lines of one QP after another and prints what Themis decides, a line each: the C++ half of the
// differential test (themis_differential.py).
//   qp PATHS WINDOW FIRST_PSN OOO_THRESHOLD BASE AVOIDANCE_WINDOW STRICT REROUTE_TIMEOUTS    begins a QP; no answer
//   d PSN SPRAYED WIDTH | a PSN | n PSN | o PSN | g | p PATHS               Themis-D: data, ACK, NACK, other NAK, age,
//   N sd PSN DRAW | sn PSN AVOID                                              Themis-S: data, NACK
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "tests/unit/themis/themis_rig.h"

namespace {

using namespace rocebox::themis;
using Kind = RigEvent::Kind;

bool read_event(const std::string& name, std::istream& words, RigEvent& event) {
  static const std::map<std::string, Kind> kKinds = {
      {"d", Kind::kData}, {"a", Kind::kAck},   {"n", Kind::kNack},        {"o", Kind::kOtherNak},
      {"g", Kind::kAge},  {"p", Kind::kPaths}, {"sd", Kind::kSourceData}, {"sn", Kind::kSourceNack}};
  const auto kind = kKinds.find(name);
  if (kind == kKinds.end()) return false;
  event.kind = kind->second;
  if (event.kind != Kind::kAge) words >> event.psn;
  if (event.kind == Kind::kData) words >> event.sprayed >> event.width;
  if (event.kind == Kind::kSourceData) words >> event.draw;
  if (event.kind == Kind::kSourceNack) words >> event.avoid;
  return !words.fail();
}

bool print_violations(const Rig& rig) {
  for (const auto& violation : rig.violations()) std::cerr << violation.text << '\n';
  return rig.violations().empty();
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::unique_ptr<Rig> rig;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "qp") {
      RigConfig c;
      words >> c.paths >> c.window >> c.first_psn >> c.ooo_threshold >> c.base >> c.avoidance_window >> c.strict >>
          c.reroute_timeouts;
      if (rig && !print_violations(*rig)) return 1;
      rig = std::make_unique<Rig>(c);
      continue;
    }
    RigEvent event{};
    if (!rig || !read_event(name, words, event)) {
      std::cerr << "not an event: " << line << '\n';
      return 2;
    }
    std::cout << rig->event(event) << '\n';
  }
  return rig && !print_violations(*rig) ? 1 : 0;
}
