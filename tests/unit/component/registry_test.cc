// SPDX-License-Identifier: BSD-3-Clause
// What the registry takes and refuses. tests/plugin has the same through plugins.
#include "runtime/component/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/config/config.h"
#include "runtime/kernel/model.h"
#include "switch_model/program.h"
#include "tests/unit/config/options_kit.h"

namespace rocebox::registry_test {
namespace {

std::string refusal(Registry& registry, std::span<const Component> rows) {
  try {
    registry.add(rows, "the test");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Component named(const char* name) {
  Component row = test::kOptionsType;
  row.name = name;
  return row;
}

TEST(Registry, RowsAreTakenAllOrNone) {
  Registry registry;
  const std::size_t before = registry.all().size();
  const Component right = named("right"), other = named("other");
  Component wrong = named("wrong");
  wrong.options = nullptr;
  const Component rows[] = {right, other, wrong};
  EXPECT_EQ(refusal(registry, rows), "the test: the row of `wrong` has no options function");
  EXPECT_EQ(registry.all().size(), before);
  EXPECT_FALSE(registry.find("right"));
  EXPECT_EQ(refusal(registry, std::span(rows).first(2)), "");
  EXPECT_EQ(registry.find("kernel", "right"), &rows[0]);
  EXPECT_EQ(registry.of_kind("kernel").back(), &rows[1]);
  EXPECT_FALSE(registry.find("device", "right"));
}

TEST(Registry, NamesAreOneOverAllKinds) {
  Registry registry;
  for (const Component* each : registry.all())
    for (const ComponentKind& kind : component_kinds()) {
      if (kind.own_names) continue;
      Component row = named(each->name);
      row.kind = kind.name;
      EXPECT_EQ(refusal(registry, {&row, 1}), "the test: there is already a " + std::string(each->kind) + " named `" +
                                                  each->name + "`, from the in-tree registry");
    }
}

// A model may be called as the kernel that it is the theory of, and as no other model.
TEST(Registry, KindsOfOwnNamesAreToldApartFromThemselvesOnly) {
  struct Theory final : ModelOptions {
    void fields(Fields&) override {}
    std::vector<ModelFigure> figures(std::uint64_t) const override { return {}; }
  };
  Registry registry;
  const std::size_t before = registry.all().size();
  const Component kernel = named("ours"), model = model_component<Theory>("ours", "theory");
  ASSERT_EQ(refusal(registry, {&kernel, 1}), "");
  ASSERT_EQ(refusal(registry, {&model, 1}), "");
  EXPECT_EQ(refusal(registry, {&model, 1}), "the test: there is already a model named `ours`, from the test");
  EXPECT_EQ(registry.find("ours"), &kernel);
  EXPECT_EQ(registry.find("kernel", "ours"), &kernel);
  EXPECT_EQ(registry.find(kModelKind, "ours"), &model);
  EXPECT_EQ(registry.all().size(), before + 1);
  Component wrong = named("wrong");
  wrong.kind = kModelKind;
  const Component rows[] = {model_component<Theory>("fresh", "theory"), wrong};
  EXPECT_NE(refusal(registry, rows).find("use model_component()"), std::string::npos);
  EXPECT_FALSE(registry.find(kModelKind, "fresh"));
}

// A guest may stand before its host, and a host is no guest.
TEST(Registry, HostsAreComponents) {
  Registry registry;
  Component guest = named("guest"), host = named("host");
  guest.host = "host";
  guest.host_options = [](const Component&) -> std::string { return "{}"; };
  EXPECT_EQ(refusal(registry, {&guest, 1}), "the test: `guest` runs in `host`, and there is no component of that name");
  const Component both[] = {guest, host};
  EXPECT_EQ(refusal(registry, both), "");
  Component self = guest;
  self.name = self.host = "self";
  EXPECT_NE(refusal(registry, {&self, 1}).find("in which nothing runs"), std::string::npos);
}

TEST(Registry, EveryKindInTheTreeIsKnown) {
  for (const Component& row : in_tree_components())
    EXPECT_NE(std::ranges::find(component_kinds(), std::string_view(row.kind), &ComponentKind::name),
              component_kinds().end())
        << row.kind;
}

// An option of the name that the test sets.
std::string option_name;
struct OneOption {
  std::int64_t value = 0;
  void fields(Fields& f) { f.integer(option_name, value, {0, 1}, "an option"); }
};
struct OneOptionKernel final : Kernel {
  using Config = OneOption;
  OneOptionKernel(const Config&, Stats&) {}
  void process(Context&, Port, Batch&) override {}
};
struct OneOptionDevice final : DeviceOptions {
  OneOption option;
  std::vector<std::string> names = {"p0"};
  void fields(Fields& f) override { option.fields(f); }
  const std::vector<std::string>& ports() const override { return names; }
  std::unique_ptr<Kernel> make(Stats& stats) const override { return std::make_unique<OneOptionKernel>(option, stats); }
  std::unique_ptr<Change> change(const Kernel&) const override { return nullptr; }
};
struct OneOptionProgram {
  struct Config {
    OneOption option;
    void fields(Fields& f, const switch_model::SwitchInfo&) { option.fields(f); }
  };
  OneOptionProgram(const Config&, const switch_model::Build&) {}
};

// Whatever stands in a configuration beside a name, or beside an option: the fields say it, and the test reads the
// schema, which is made of the same fields.
TEST(Registry, WordsThatAreTakenAreRefused) {
  Registry registry;
  const auto device = config::schema(registry)["properties"]["devices"]["additionalProperties"]["properties"];
  const auto ambiguous = [](const std::string& word, const std::string& place, const std::string& whose) {
    return "the test: `" + word + "` would mean two things in `" + place + "`: give " + whose + " another name";
  };
  option_name = "floor";
  unsigned words = 0;
  for (const auto& [word, ignored] : device.items()) {
    if (registry.find(word)) continue;  // is taken by its name
    const Component row = device_kind<OneOptionDevice>(word.c_str(), "a device");
    EXPECT_EQ(refusal(registry, {&row, 1}), ambiguous(word, "devices.NAME", "the device"));
    words++;
  }
  EXPECT_EQ(words, 4u) << "pipeline, kind, path, kernels";
  const Component bump = device_kind<OneOptionDevice>("bump", "a device");
  EXPECT_EQ(refusal(registry, {&bump, 1}), ambiguous("bump", "devices.NAME.kind", "the device"));

  words = 0;
  for (const auto& [word, ignored] : device["switch"]["properties"].items()) {
    if (registry.find(word)) continue;
    const Component row = switch_model::program<OneOptionProgram>(word.c_str(), "a program");
    EXPECT_EQ(refusal(registry, {&row, 1}), ambiguous(word, "devices.NAME.switch", "the program"));
    words++;
  }
  EXPECT_GT(words, 5u) << "ports, pipes, programs, traffic_manager, ...";

  const Component kernel = two_sided_kernel<OneOptionKernel>("ttl", "a kernel");
  option_name = "type";
  EXPECT_EQ(refusal(registry, {&kernel, 1}),
            ambiguous("type", "devices.NAME.kernels.NAME", "the option of kernel `ttl`"));
  option_name = "floor";
  for (const char* port : {"a", "b"}) {  // `rocebox run --between eth0 eth1 -- KERNEL`
    const Component row = two_sided_kernel<OneOptionKernel>(port, "a kernel");
    EXPECT_EQ(refusal(registry, {&row, 1}), "the test: `" + std::string(port) +
                                                "` is a port wherever the command line has the path: give the kernel "
                                                "another name");
  }
  const Component dash = two_sided_kernel<OneOptionKernel>("--json", "a kernel");
  EXPECT_NE(refusal(registry, {&dash, 1}).find("is named `--json`, which is no name"), std::string::npos);

  EXPECT_EQ(refusal(registry, {&kernel, 1}), "");
  EXPECT_EQ(registry.all().back(), &kernel) << "what was refused has left nothing behind";
}

// Rows are made by hand, too: a name of another kind over the options of this one would be taken for what they are not.
TEST(Registry, OptionsAreThoseOfTheKind) {
  Registry registry;
  option_name = "floor";
  const Component kernel = two_sided_kernel<OneOptionKernel>("second", "a kernel");
  const Component device = device_kind<OneOptionDevice>("second", "a device");
  const Component program = switch_model::program<OneOptionProgram>("second", "a program");
  for (const auto& [row, kind] : {std::pair(kernel, "device"),
                                  {kernel, "program"},
                                  {device, "program"},
                                  {program, "kernel"},
                                  {program, "device"}}) {
    Component wrong = row;
    wrong.kind = kind;
    EXPECT_NE(refusal(registry, {&wrong, 1})
                  .find("the test: the " + std::string(kind) + " `second` has options of another kind"),
              std::string::npos)
        << row.kind << " as " << kind;
  }
}

TEST(Registry, AProgramRunsInADeviceThatRunsPrograms) {
  Registry registry;
  option_name = "floor";
  Component row = switch_model::program<OneOptionProgram>("second", "a program");
  row.host = nullptr;
  EXPECT_EQ(refusal(registry, {&row, 1}),
            "the test: the program `second` has no host: name the device in which it runs");
  row.host = "link";
  EXPECT_EQ(refusal(registry, {&row, 1}),
            "the test: the program `second` runs in `link`, which is a kernel; it must be a device");
  row.host = "hub";
  const Component both[] = {row, device_kind<OneOptionDevice>("hub", "a device")};
  EXPECT_EQ(refusal(registry, both),
            "the test: the program `second` runs in `hub`, which has no option `second` and so runs no program");
  row.host = "switch";
  EXPECT_EQ(refusal(registry, {&row, 1}), "");
}

TEST(Registry, ThereIsOneWire) {
  Registry registry;
  option_name = "floor";
  Component row = two_sided_kernel<OneOptionKernel>("second", "a kernel");
  row.is_wire = true;
  EXPECT_EQ(refusal(registry, {&row, 1}), "the test: `second` would be what links are made of, and `link` is already");
}

}  // namespace
}  // namespace rocebox::registry_test
