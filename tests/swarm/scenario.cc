// SPDX-License-Identifier: BSD-3-Clause
#include "tests/swarm/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "switch_model/program.h"
#include "tests/unit/contracts/random_fields.h"

namespace rocebox::swarm {
namespace {

constexpr unsigned kDevicesMax = 4, kKernelsMax = 3;
constexpr int kTries = 200;
// Slower or later than this a run of some thousand packets takes virtual days.
const test::RandomFields::Limits kLimits{.one_in = 8, .rate_min = 1'000'000, .duration_max = 10 * kSecond};

std::string indented(const std::string& text, const std::string& margin) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    all += margin + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return all;
}

bool has(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

class Drawing {
 public:
  Drawing(std::uint64_t seed, Registry& registry) : random_(seed), registry_(registry) {}

  std::string draw() {
    const unsigned devices = 1 + below(kDevicesMax);
    std::string yaml = fmt::format("seed: {}\ndevices:\n", below(1000));
    for (unsigned i = 0; i < devices; i++) yaml += below(4) == 0 && switches_ < 2 ? switch_device(i) : bump(i);
    if (devices > 1) yaml += "links:\n";
    for (unsigned i = 0; i + 1 < devices; i++) {
      std::string options = link_options();
      note("link", options);
      yaml += fmt::format("  l{}: {{between: [d{}.{}, d{}.{}]{}{}}}\n", i, i, rights_[i], i + 1, lefts_[i + 1],
                          options.empty() ? "" : ", ", options);
    }
    return yaml;
  }

  Promises promises;
  std::vector<std::string> components;

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  // Options of a link without the braces: half of the links only carry, with some delay.
  std::string link_options() {
    if (below(2)) return fmt::format("delay: {}us", below(300));
    const std::string all = options_of(*registry_.wire());
    return all.starts_with("{") ? all.substr(1, all.size() - 2) : fmt::format("loss: {}%", below(10));
  }

  // One of the examples, or drawn from the fields; the defaults when nothing drawn is taken.
  std::string options_of(const Component& component) {
    std::vector<const char*> examples;
    for (const Component* each : registry_.all())
      if (each == &component || (each->host && std::string_view(each->host) == component.name))
        for (const Example* example = each->examples; example && example->title; example++)
          examples.push_back(example->yaml);
    if (!examples.empty() && below(3) == 0) return examples[below(static_cast<unsigned>(examples.size()))];
    for (int i = 0; i < 20; i++) {
      test::RandomFields options(random_(), kLimits);
      try {
        component.options(registry_)->fields(options);
      } catch (const ConfigError&) {
        continue;
      }
      if (!options.refused()) return options.yaml();
    }
    return "{}";
  }

  std::string bump(unsigned number) {
    std::vector<const Component*> kinds = registry_.of_kind(kKernelKind);
    std::erase_if(kinds, [this](const Component* kind) {
      const std::unique_ptr<Options> options = kind->options(registry_);
      return static_cast<const KernelOptions&>(*options).shape() != Shape::kTwoSided;
    });
    std::shuffle(kinds.begin(), kinds.end(), random_);
    kinds.resize(std::min<std::size_t>(below(kKernelsMax + 1), kinds.size()));
    std::string path, options;
    bool has_gateway = false;
    for (const Component* type : kinds) {
      path += fmt::format("{} <-> ", type->name);
      has_gateway |= std::string_view(type->name) == "lowar";
      const std::string drawn = options_of(*type);
      note(type->name, drawn);
      options += drawn.starts_with("{") ? fmt::format("      {}: {}\n", type->name, drawn)
                                        : fmt::format("      {}:\n{}", type->name, indented(drawn, "        "));
    }
    // Kernels of one path hand packets to and fro within an instant, where the engine promises no more than one at a
    // time.
    if (kinds.size() > 1) promises.equal_batches = false;
    lefts_.push_back("a");
    rights_.push_back("z");
    // Gateways turn their links' sides to each other; else they are refused.
    const bool faces_left = has_gateway && gateways_++ % 2;
    return fmt::format("  d{}:\n    path: {} <-> {}{}\n{}{}", number, faces_left ? "z" : "a", path,
                       faces_left ? "a" : "z", options.empty() ? "" : "    kernels:\n", options);
  }

  std::string switch_device(unsigned number) {
    switches_++;
    const std::string drawn = options_of(*registry_.find("switch"));
    note("switch", drawn);
    for (const Component* program : registry_.of_kind(switch_model::kProgramKind))
      if (has(drawn, {program->name}) || std::string_view(program->name) == "forward")
        components.emplace_back(program->name);
    lefts_.push_back("p0");
    rights_.push_back(fmt::format("p{}", 1 + below(3)));
    const std::string head = fmt::format("  d{}:\n    switch:\n      ports: [p0, p1, p2, p3]\n", number);
    if (!drawn.starts_with("{")) return head + indented(drawn, "      ");
    const std::string inside = drawn.substr(1, drawn.size() - 2);
    return fmt::format("  d{}: {{switch: {{ports: [p0, p1, p2, p3]{}{}}}}}\n", number, inside.empty() ? "" : ", ",
                       inside);
  }

  // What options take away from what is promised.
  void note(const std::string& type, const std::string& options) {
    components.push_back(type);
    if (type == "lowar") {
      // What waits stands in the order of PSNs. What is sent again is behind it where that is announced: not where the
      // announcement is lost, or where the far end has no gateway.
      promises.repeats_stay = false;
    } else if (type == "link") {
      if (has(options, {"reorder", "duplicate", "events"})) promises.order = false;
      if (has(options, {"corrupt", "trim"})) promises.whole = false;
      if (has(options, {"repaired"})) promises.genuine = false;
    } else if (type == "switch") {
      // Other classes, ports and copies for packets of one flow; mirrored packets are cut.
      if (has(options, {"acl", "themis", "group", "mirror", "class"})) promises.order = false;
      if (has(options, {"mirror"})) promises.whole = false;
      if (has(options, {"packet_generator"})) promises.genuine = false;
    }
  }

  std::mt19937_64 random_;
  Registry& registry_;
  unsigned switches_ = 0, gateways_ = 0;
  std::vector<std::string> lefts_, rights_;
};

}  // namespace

std::unique_ptr<Scenario> make_scenario(std::uint64_t seed) {
  static Registry registry;
  std::string why;
  for (int i = 0; i < kTries; i++) {
    Drawing drawing(seed * kTries + static_cast<std::uint64_t>(i), registry);
    auto scenario = std::make_unique<Scenario>();
    scenario->yaml = drawing.draw();
    config::Mistakes mistakes("swarm");
    scenario->config = config::load_text(scenario->yaml, "swarm.yaml", registry, mistakes, false);
    why = mistakes.text();
    if (!mistakes.none()) continue;
    scenario->edges = config::unbound_ports(scenario->config);
    scenario->promises = drawing.promises;
    scenario->components = drawing.components;
    return scenario;
  }
  throw std::logic_error("no configuration that loads; the last one: " + why);
}

}  // namespace rocebox::swarm
