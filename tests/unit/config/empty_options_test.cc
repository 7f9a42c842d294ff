// SPDX-License-Identifier: BSD-3-Clause
// Options of a kernel that the effective configuration loses, and documents that expand without bound.
#include <gtest/gtest.h>

#include "runtime/config/config.h"
#include "tests/unit/options.h"

namespace rocebox::config {
namespace {

struct TextOptions {
  std::string name = "default", note;
  std::vector<std::string> words = {"default"};
  void fields(Fields& f) {
    f.text("name", name, "a text with a default");
    f.texts("words", words, "texts with a default");
    f.group("group", "texts only", [&](Fields& g) { g.text("note", note, "a text without one"); });
  }
};
TextOptions last;
struct TextKernel final : Kernel {
  using Config = TextOptions;
  TextKernel(const Config& config, Stats&) { last = config; }
  void process(Context&, Port, Batch&) override {}
};
const Component kTextType = two_sided_kernel<TextKernel>("texts", "options that are texts");

// The options of kernel k as they come out of the effective configuration of a device with it.
TextOptions round_trip(const std::string& options, std::string& found) {
  Mistakes mistakes("f");
  RunConfig config;
  KernelConfig kernel{"k", &kTextType, {}, {}};
  kernel.options = test::options_of(kTextType, options, &kernel.values);
  config.devices.push_back({"d", "", {}, nullptr, {"x <-> k <-> y"}, {kernel}, {}});
  const Node again = parse_yaml(effective_yaml(config), mistakes);
  const Node* written = again.find("devices")->find("d")->find("kernels")->find("k");
  FieldsReader reader(written, mistakes);
  TextOptions result;
  std::string type;
  reader.text("type", type, "");
  result.fields(reader);
  reader.finish();
  found = mistakes.text();
  return result;
}

TEST(EmptyOptions, AnEmptyTextGivesBackTheDefault) {
  std::string found;
  EXPECT_EQ(round_trip("{name: '', group: {note: n}}", found).name, "");
  EXPECT_EQ(found, "");
}

TEST(EmptyOptions, AnEmptyListGivesBackTheDefault) {
  std::string found;
  EXPECT_TRUE(round_trip("{words: [], group: {note: n}}", found).words.empty());
}

TEST(EmptyOptions, AGroupOfNothing) {
  std::string found;
  round_trip("{}", found);
  EXPECT_EQ(found, "") << "an empty group is written as `group:`, which has no value";
}

// Aliases of one long text: nodes are counted, bytes are not. 170 000 of them would be 80 GB.
TEST(EmptyOptions, AliasesOfALongText) {
  std::string text = "a: &a '" + std::string(100'000, 'x') + "'\nb: [*a";
  for (int i = 1; i < 2'000; i++) text += ",*a";
  text += "]\n";
  ASSERT_LT(text.size(), std::size_t{1} << 20);
  Mistakes mistakes("f");
  const Node root = parse_yaml(text, mistakes);
  EXPECT_FALSE(mistakes.none()) << text.size() << " bytes became " << root.find("b")->items.size() * 100'000;
}

}  // namespace
}  // namespace rocebox::config
