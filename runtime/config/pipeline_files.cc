// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/pipeline_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "runtime/config/device.h"

namespace rocebox::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPipelineSuffix = ".yaml";

std::vector<std::string> known_pipelines() {
  std::vector<std::string> names;
  for (const std::string& folder : pipeline_folders()) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (it->path().extension() == kPipelineSuffix) names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// `node` without one of its keys.
Node without(const Node& node, std::string_view key) {
  Node result = node;
  std::erase_if(result.entries, [key](const Entry& entry) { return entry.key == key; });
  return result;
}

class Resolver {
 public:
  Resolver(const std::string& file, const Registry& registry, Mistakes& mistakes)
      : file_(file), registry_(registry), mistakes_(mistakes) {}

  void resolve(Node& device, const Node& named) {
    const std::optional<std::string> path = path_of(named);
    if (!path) return;
    Mistakes own(*path);
    std::string text;
    try {
      text = read_text_file(*path);
    } catch (const ConfigError& error) {
      return mistakes_.add(named.place, error.what());
    }
    Node pipeline = parse_yaml(text, own);
    std::vector<std::string> kernels;
    if (own.none()) kernels = check(pipeline, own);
    if (!own.none()) return mistakes_.add(own);
    if (!check_use(device, *path, kernels)) return;
    move_to(pipeline, named.place);
    Entry name{"pipeline", named.place, named};
    name.value.scalar = *path;
    const Place place = device.place;
    lay_over(pipeline, without(device, "pipeline"));
    pipeline.entries.push_back(std::move(name));
    device = std::move(pipeline);
    device.place = place;
  }

 private:
  // Where the pipeline lies; empty when it is nowhere, which is a mistake.
  std::optional<std::string> path_of(const Node& named) {
    if (named.scalar.find('/') != std::string::npos || named.scalar.ends_with(kPipelineSuffix))
      return beside(file_, named.scalar);
    for (const std::string& folder : pipeline_folders()) {
      std::error_code ignored;
      if (!is_plain_name(named.scalar)) break;
      if (const fs::path file = fs::path(folder) / (named.scalar + std::string(kPipelineSuffix));
          fs::exists(file, ignored))
        return file.string();
    }
    mistakes_.add(named.place, fmt::format("there is no pipeline `{}`{}", named.scalar,
                                           suggestion(named.scalar, known_pipelines())));
    return std::nullopt;
  }

  // The pipeline by itself must be good. Returns the names of its kernels.
  std::vector<std::string> check(const Node& pipeline, Mistakes& own) {
    TopFields::Device raw;
    raw.name = "pipeline";
    FieldsReader reader(&pipeline, own);
    TopFields(registry_).pipeline_fields(reader, raw);
    reader.finish();
    const DeviceConfig device = resolve_device(raw, pipeline, registry_, own);
    std::vector<std::string> names;
    for (const KernelConfig& kernel : device.kernels) names.push_back(kernel.name);
    return names;
  }

  bool check_use(const Node& device, const std::string& path, const std::vector<std::string>& kernels) {
    const std::size_t before = mistakes_.count();
    for (const char* key : {"path", "kind"})
      if (const Node* node = device.find(key))
        mistakes_.add(node->place, fmt::format("`{}:` and `pipeline:` exclude each other: {} has one", key, path));
    const Node* options = device.find("kernels");
    for (const Entry& entry : options ? options->entries : std::vector<Entry>()) {
      if (std::find(kernels.begin(), kernels.end(), entry.key) == kernels.end())
        mistakes_.add(entry.place,
                      fmt::format("{} has no kernel `{}`{}", path, entry.key, suggestion(entry.key, kernels)));
      if (const Node* type = entry.value.find("type"))
        mistakes_.add(type->place, fmt::format("{} says which type `{}` is", path, entry.key));
    }
    return mistakes_.count() == before;
  }

  const std::string& file_;
  const Registry& registry_;
  Mistakes& mistakes_;
};

}  // namespace

void lay_over(Node& below, const Node& above) {
  if (above.kind == Node::Kind::kNull) return;
  if (!below.is_map() || !above.is_map()) {
    below = above;
    return;
  }
  for (const Entry& entry : above.entries) {
    if (Node* has = below.find(entry.key))
      lay_over(*has, entry.value);
    else
      below.entries.push_back(entry);
  }
}

std::vector<std::string> pipeline_folders() { return data_folders("pipelines", "pipelines"); }

bool resolve_pipelines(Node& root, const std::string& file, const Registry& registry, Mistakes& mistakes, bool follow) {
  Node* devices = root.find("devices");
  if (!devices) return true;
  const std::size_t before = mistakes.count();
  Resolver resolver(file, registry, mistakes);
  for (Entry& entry : devices->entries) {
    const Node* named = entry.value.find("pipeline");
    if (!named || named->kind != Node::Kind::kScalar) continue;  // another kind is a mistake that TopFields tells
    if (follow)
      resolver.resolve(entry.value, Node(*named));
    else
      mistakes.add(named->place, "a pipeline is in another file, and none is opened here");
  }
  return mistakes.count() == before;
}

}  // namespace rocebox::config
