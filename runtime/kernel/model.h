// SPDX-License-Identifier: BSD-3-Clause
// Model: what theory says of a system, computed by itself: no packets, no devices. `rocebox model` shows its figures.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/component/component.h"
#include "runtime/component/fields.h"
#include "runtime/component/registry.h"

namespace rocebox {

inline constexpr char kModelKind[] = "model";

/// One axis of a figure. The name carries the unit: `distance_km`.
struct ModelAxis {
  std::string name;
  bool log = false;
};

/// The values of a figure's curves at one place of its x axis, one for each of the curves.
struct ModelPoint {
  double x;
  std::vector<double> y;
};

/// What a publication says in words, and what the model has for it.
struct ModelStatement {
  std::string statement;
  std::string published;  ///< the number or order that the publication's text gives
  std::string ours;
  bool holds;  ///< whether ours agrees with it
};

/// A figure: curves over one axis, and the statements that it bears out or not.
struct ModelFigure {
  std::string name;  ///< of letters, digits and _: the key in the report and the name of the plot's files
  std::string title;
  ModelAxis x, y;
  std::vector<std::string> curves;  ///< their names, no two alike and none `x`
  std::vector<ModelPoint> points;   ///< in the order of x
  std::vector<ModelStatement> statements{};
};

/// The options of a model.
class ModelOptions : public Options {
 public:
  /// Computes the figures; equal options and seeds give equal ones. Throws ConfigError for what fields cannot say.
  virtual std::vector<ModelFigure> figures(std::uint64_t seed) const = 0;
};

/// A row of component_kinds(). No configuration names a model, so it may be called as the kernel that it is the theory
/// of.
inline constexpr ComponentKind kModels = {kModelKind,
                                          [](const Component& row, const Options& options) -> const char* {
                                            if (!dynamic_cast<const ModelOptions*>(&options))
                                              return "has options of another kind: use model_component()";
                                            return row.is_wire ? "is no wire: that is a kernel" : nullptr;
                                          },
                                          nullptr, true};

/// A model of options `O`.
template <class O>
constexpr Component model_component(const char* name, const char* summary, const Example* examples = nullptr) {
  return {kComponentAbi,
          kModelKind,
          name,
          summary,
          [](const Registry&) -> std::unique_ptr<Options> { return std::make_unique<O>(); },
          examples};
}

}  // namespace rocebox
