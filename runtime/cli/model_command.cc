// SPDX-License-Identifier: BSD-3-Clause
// `rocebox model`: the figures of a system's theory.
#include <fmt/format.h>

#include <csignal>

#include "runtime/capture/output_file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sim_files.h"
#include "runtime/config/describe.h"
#include "runtime/config/settings.h"
#include "runtime/kernel/model.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

Json to_json(const ModelFigure& figure) {
  Json json = {{"title", figure.title}, {"x", figure.x.name},    {"y", figure.y.name},
               {"log_x", figure.x.log}, {"log_y", figure.y.log}, {"points", Json::array()}};
  for (const ModelPoint& point : figure.points) {
    Json& row = json["points"].emplace_back(Json{{figure.x.name, point.x}});
    for (std::size_t i = 0; i < figure.curves.size(); i++) row[figure.curves[i]] = point.y.at(i);
  }
  if (!figure.statements.empty()) json["statements"] = Json::array();
  for (const ModelStatement& one : figure.statements)
    json["statements"].push_back(
        {{"statement", one.statement}, {"published", one.published}, {"ours", one.ours}, {"holds", one.holds}});
  return json;
}

// What the axes are drawn like is of no use to who reads the text.
Json for_people(Json report) {
  for (auto& [name, figure] : report["figures"].items())
    for (const char* key : {"x", "log_x", "log_y"}) figure.erase(key);
  return report;
}

int list(const Registry& registry) {
  const std::vector<const Component*> models = registry.of_kind(kModelKind);
  for (const Component* model : models) print_wrapped(fmt::format("{:<10}  ", model->name), model->summary);
  if (models.empty()) fmt::print("none\n");
  fmt::print("\n`rocebox model NAME` computes its figures; with --options it shows what can be set.\n");
  return 0;
}

int show_options(const Component& model, const Registry& registry) {
  fmt::print("{}: {}\n\nOptions of --set\n", model.name, model.summary);
  for (const config::OptionRow& row : config::describe(model, registry))
    print_wrapped(fmt::format("  {:<12}  {:<14}  {:<18}  ", row.name, row.type, row.fallback),
                  row.doc + (row.range.empty() ? "" : fmt::format(" ({})", row.range)));
  return 0;
}

// The options as the settings have them, and what came out of them.
std::unique_ptr<Options> fill(const Component& model, const Registry& registry,
                              const std::vector<std::string>& settings, Json& shown) {
  std::vector<config::Setting> given;
  for (const std::string& text : settings) given.push_back(config::parse_setting(text, "--set"));
  config::Mistakes mistakes(model.name);
  config::Node root;
  root.kind = config::Node::Kind::kMap;
  config::apply_settings(root, given, mistakes);
  config::FieldsReader reader(&root, mistakes);
  std::unique_ptr<Options> options = model.options(registry);
  options->fields(reader);
  reader.finish();
  if (!mistakes.none()) throw ConfigError(mistakes.text());
  shown = Json::object();
  for (const auto& [name, value] : flatten_all(reader.values())) shown[name] = value;
  return options;
}

}  // namespace

int model(const ModelArguments& arguments) {
  const Registry registry = make_registry(arguments.plugins);
  if (arguments.name.empty()) {
    if (arguments.options || !arguments.settings.empty() || !arguments.plot.empty() || !arguments.json.empty())
      throw ConfigError("name a model: `rocebox model` lists them");
    return list(registry);
  }
  const Component* found = registry.find(kModelKind, arguments.name);
  if (!found) {
    std::vector<std::string> names;
    for (const Component* one : registry.of_kind(kModelKind)) names.emplace_back(one->name);
    throw ConfigError(
        fmt::format("there is no model `{}`{}", arguments.name, config::suggestion(arguments.name, names)));
  }
  if (arguments.options) return show_options(*found, registry);
  Json shown;
  const std::unique_ptr<Options> options = fill(*found, registry, arguments.settings, shown);
  const std::int64_t seed = arguments.seed.empty() ? 1 : seed_of(arguments.seed);
  if (!arguments.plot.empty()) require_plots();
  RunFiles files;
  files.writes(ExtraOutputs{{}, arguments.json, !is_standard_output(arguments.json)});
  if (!arguments.plot.empty()) files.writes(plotted_report(arguments.plot), "the report beside the figures");
  check_files(files);
  if (!arguments.plot.empty()) make_folder("--plot", arguments.plot);

  Json report = {{"schema_version", kReportSchemaVersion},
                 {"command", "model"},
                 {"config", arguments.name},
                 {"seed", seed},
                 {"options", shown},
                 {"figures", Json::object()}};
  const auto figures = static_cast<const ModelOptions&>(*options).figures(static_cast<std::uint64_t>(seed));
  for (const ModelFigure& figure : figures) report["figures"][figure.name] = to_json(figure);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing
  if (!is_standard_output(arguments.json)) print_report(for_people(report), stdout, arguments.report);
  if (!arguments.json.empty()) write_file(arguments.json, json_text(report));
  if (!arguments.plot.empty()) write_figures(report, arguments.plot);
  return 0;
}

}  // namespace rocebox::cli
