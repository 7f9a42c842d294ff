// SPDX-License-Identifier: BSD-3-Clause
// LabLoader: turns the document of a lab into its configuration; every mistake is reported with its place.
#pragma once
#include <string>
#include <vector>

#include "runtime/lab/lab_config.h"

namespace rocebox::lab {

class LabLoader {
 public:
  LabLoader(const std::string& file, const std::vector<std::string>& plugins, config::Mistakes& mistakes, bool follow);
  /// Call once; what comes is usable only when there are no mistakes.
  LabConfig load(const config::Node& root);

 private:
  void host(const LabFields::Host& raw, const config::Node& node);
  void machine(const LabFields::Host& raw, const config::Node& node);
  void interface(const Interface& raw, const config::Node& node);
  void appliance(const LabFields::Appliance& raw, const config::Node& node);
  void appliance_file(ApplianceConfig& appliance, const config::Node& node);
  void inline_appliance(ApplianceConfig& appliance, const config::Node& node);
  void traffic(const std::vector<Traffic>& raw, const config::Node& root);
  void step(const TrafficStep& step, const config::Node& node);
  void name(const std::string& name, config::Place place);
  // Checks each text of a list; `what` says how one looks.
  void texts(const config::Node& node, const char* key, bool (*good)(const std::string&), const char* what);

  std::vector<std::string> plugins_;
  config::Mistakes& mistakes_;
  bool follow_;
  LabConfig lab_;
};

/// Where the `index`th text of list `key` stands; a single text stands for a list of one.
config::Place place_of_text(const config::Node& node, const char* key, std::size_t index);

}  // namespace rocebox::lab
