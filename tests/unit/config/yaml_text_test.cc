// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/yaml_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/config/document.h"
#include "runtime/config/printable.h"

namespace rocebox::config {
namespace {

// The scalars of a document are `text`, as many as are wanted.
void expect_reads(const std::string& yaml, const std::string& text, std::size_t wanted) {
  Mistakes mistakes("test");
  const Node root = parse_yaml(yaml, mistakes);
  ASSERT_TRUE(mistakes.none()) << mistakes.text() << "\n" << yaml;
  const Node* value = root.find("key");
  ASSERT_NE(value, nullptr) << yaml;
  const std::vector<Node> nodes = value->kind == Node::Kind::kList ? value->items : std::vector<Node>{*value};
  ASSERT_EQ(nodes.size(), wanted) << yaml;
  for (const Node& node : nodes) {
    EXPECT_EQ(node.kind, Node::Kind::kScalar) << yaml;
    EXPECT_EQ(node.scalar, text) << yaml;
  }
}

void expect_round_trip(const std::string& text) {
  SCOPED_TRACE(printable(text));
  const std::string written = yaml_text(text);
  expect_reads(fmt::format("key: {}\nother: x\n", written), text, 1);
  expect_reads(fmt::format("key: {}", written), text, 1);
  expect_reads(fmt::format("key:\n  - {}\n  - {}\n", written, written), text, 2);
  expect_reads(fmt::format("key: [{}, {}]\n", written, written), text, 2);
  std::string shown = printable(written);
  for (std::size_t at = 0; at < written.size() && shown != written; at++) {  // bytes that are no UTF-8 stay
    if (static_cast<unsigned char>(written[at]) < 0x80) continue;
    const std::string escape = fmt::format("\\x{:02x}", static_cast<unsigned char>(written[at]));
    if (shown.compare(at, escape.size(), escape) == 0) shown.replace(at, escape.size(), 1, written[at]);
  }
  EXPECT_EQ(shown, written) << "a control character as it is";
}

TEST(YamlText, IsReadBackAsItWas) {
  for (const char* text : {"",
                           " ",
                           "a b",
                           " a",
                           "a ",
                           "null",
                           "Null",
                           "NULL",
                           "~",
                           "true",
                           "no",
                           "0x11",
                           "1e3",
                           "-",
                           "- a",
                           "--- a",
                           "---",
                           "...",
                           "?",
                           "? a",
                           ":",
                           ": a",
                           "a: b",
                           "a:",
                           "a:b",
                           "a #b",
                           "#a",
                           "a#b",
                           "&a",
                           "*a",
                           "!a",
                           "!!str a",
                           "|",
                           ">",
                           "|-",
                           "%a",
                           "@a",
                           "`a`",
                           "'",
                           "''",
                           "'a'",
                           "it's",
                           "\"",
                           "\"a\"",
                           "a\"b",
                           "\\",
                           "\\n",
                           "a\\",
                           "[",
                           "]",
                           "[a]",
                           "{",
                           "}",
                           "{a: b}",
                           ",",
                           "a, b",
                           "a,b",
                           "<<",
                           "=",
                           "a\nb",
                           "\n",
                           "a\n\nb\n",
                           "\r\n",
                           "a\tb",
                           "\t",
                           "\x1b[0m",
                           "\x7f",
                           "ü\x7f",
                           "\x04",
                           "\x01",
                           "Grüße",
                           "数, 😀",
                           "\u00a0",
                           "\u0085",
                           "\u2028",
                           "\ufeff",
                           "a\ufeffb",
                           "\u009b1m",
                           "\xff",
                           "caf\xe9",
                           "b\xe9: 'x'\n",
                           "\xc2",
                           "\xc3\x28",
                           "\xed\xa0\x80",
                           "\xf5\x80\x80\x80 #",
                           "src host 10.77.0.2",
                           "a.b == c.d + 1",
                           "x <-> y"})
    expect_round_trip(text);
  expect_round_trip(std::string("a\0b", 3));
}

TEST(YamlText, IsReadBackWhateverItIsMadeOf) {
  constexpr std::string_view kPieces[] = {"a",  "0",    " ",    "  ", "'",      "\"",     "\\",   "-",    ":",   "#",
                                          "\n", "\t",   "\r",   "?",  "!",      "&",      "*",    "[",    "]",   "{",
                                          "}",  ",",    "|",    ">",  "%",      "@",      "`",    "~",    ".",   "=",
                                          "<",  "\x1b", "\x7f", "ü",  "\u009b", "\u2028", "\xff", "\xc3", "null"};
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); i++) {
    std::string text;
    for (std::size_t n = random() % 6; n > 0; n--) text += kPieces[random() % std::size(kPieces)];
    expect_round_trip(text);
  }
}

TEST(YamlText, IsPlainWhereItMayBe) {
  for (const char* text : {"a.pcap", "5ms", "0x0101", "src host 10.77.0.2", "10.0.0.0/8"})
    EXPECT_EQ(yaml_text(text), text);
  EXPECT_EQ(yaml_text("null"), "\"null\"");
  EXPECT_EQ(yaml_text("a\x1b\n"), "\"a\\x1b\\n\"");
}

}  // namespace
}  // namespace rocebox::config
