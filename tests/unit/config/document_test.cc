// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/document.h"

#include <gtest/gtest.h>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"

namespace rocebox::config {
namespace {

std::string mistakes_of(const std::string& text) {
  Mistakes mistakes("f");
  parse_yaml(text, mistakes);
  return mistakes.text();
}

TEST(Document, PlacesOfEverything) {
  Mistakes mistakes("f");
  const Node root = parse_yaml("a: 1\nb:\n  - x\n  - {c: 'two', d: [p, q]}\n", mistakes);
  ASSERT_TRUE(mistakes.none()) << mistakes.text();
  ASSERT_TRUE(root.is_map());
  EXPECT_EQ(root.find("a")->scalar, "1");
  EXPECT_EQ(root.find("a")->place.line, 1);
  EXPECT_EQ(root.find("a")->place.column, 4);
  const Node& list = *root.find("b");
  EXPECT_EQ(list.items[0].place.line, 3);
  EXPECT_EQ(list.items[0].place.column, 5);
  EXPECT_EQ(list.items[1].entries[1].place.column, 16);
  EXPECT_EQ(list.items[1].find("d")->items[1].scalar, "q");
  EXPECT_EQ(list.items[1].find("d")->items[1].place.column, 23);
  EXPECT_EQ(root.find("z"), nullptr);
}

TEST(Document, MistakesWithTheirPlaces) {
  struct Row {
    const char* text;
    const char* words;
  };
  constexpr Row kRows[] = {{"a: 1\na: 2\n", "f:2:1: `a` is given twice"},
                           {"a: {b: 1, b: 2}\n", "f:1:11: `b` is given twice"},
                           {"[a]: 1\n", "f:1:1: a key must be a plain word"},
                           {"a: [1\n", "f:2:1: YAML"},
                           {"a: b: c\n", "f:1:5: YAML"},
                           {"a: *x\n", "f:1:4: YAML"},
                           {"a: &x [*x]\n", "an alias refers to the node that it stands in"},
                           {"a: 1\n---\nb: 2\n", "more than one YAML document"},
                           {"\ta: 1\n", "f:1:3: YAML"},
                           {"a: 'x", "YAML"},
                           {"a: \"\\q\"\n", "YAML"},
                           {"%YAML 3.7\n---\na: 1\n", "YAML"},
                           {"~: 1\n", "a key must be a plain word"}};
  for (const Row& row : kRows)
    EXPECT_NE(mistakes_of(row.text).find(row.words), std::string::npos) << row.text << "\n" << mistakes_of(row.text);
}

// The parser takes the key and the next line for one key of two lines, and gives up in the second.
TEST(Document, AForgottenColonIsToldWhereItIs) {
  const std::string missing = "YAML: a `:` is missing, and line ";
  const struct Row {
    const char* text;
    std::string words;
  } rows[] = {{"a\n  b: 1\n", "f:1:1: " + missing + "2 is read as going on with this one"},
              {"a:\n  b: {c: 1}\n  d\ne: 2\n", "f:3:3: " + missing + "4 "},
              {"a: 1\nb 2\n\n\nc: 3\n", "f:2:1: " + missing + "5 "},
              {"a:\n  b\n    c: 1\nd: e: f\n", "f:2:3: " + missing + "3 "},
              {"a: b\n  c: 1\n", "f:2:4: YAML: illegal map value"},
              {"a: 1\nb: c: d\n", "f:2:5: YAML: illegal map value"},
              {"\xEF\xBB\xBF"
               "a\nb: 1\n",
               "f:1:"}};
  for (const Row& row : rows) EXPECT_TRUE(mistakes_of(row.text).starts_with(row.words)) << mistakes_of(row.text);
}

// A comment ends the key, which then is a value of its own where a mapping goes on, or a document.
TEST(Document, AForgottenColonBeforeACommentIsToldWhereItIs) {
  const std::string missing = "YAML: a `:` is missing behind the key of this line";
  const struct Row {
    const char* text;
    std::string words;
  } rows[] = {{"a: 1\nb\n# of c\n  c: 1\n", "f:2:1: " + missing},
              {"a: 1\nb  # of c\n  c: 1\n", "f:2:1: " + missing},
              {"a: 1\nb\n\n  # of c\n  # too\n  c: 1\n", "f:2:1: " + missing},
              {"a:\n  b\n    # of c\n    c: 1\n", "f:2:3: " + missing},
              {"a:\n  - b: 1\n  - c\n   # of d\n    d: 2\n", "f:3:3: " + missing},
              {"a: 1\nb\n  # of c\n  - c\n", "f:2:1: " + missing},
              {"a 1  # one\nb: 2\n", "f:1:1: " + missing},
              {"a: 1\nb 2\n# the end\n", "f:2:1: " + missing},
              {"a\n---\nb: 2\n", "f: more than one YAML document"},
              {"a: 1\nb:\n  c: 1\n d: 2\n", "f:4:2: YAML: end of map not found"}};
  for (const Row& row : rows) EXPECT_EQ(mistakes_of(row.text).find(row.words), 0u) << mistakes_of(row.text);
}

TEST(Document, EmptyOnesAreNothing) {
  for (const char* text : {"", "\n", "# a comment\n", "---\n", "---\n...\n", "~", "\xEF\xBB\xBF"}) {
    Mistakes mistakes("f");
    EXPECT_EQ(parse_yaml(text, mistakes).kind, Node::Kind::kNull) << text;
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
  }
}

TEST(Document, AliasesAreCopies) {
  Mistakes mistakes("f");
  const Node root = parse_yaml("a: &x {b: [1, 2]}\nc: *x\nd: *x\n", mistakes);
  ASSERT_TRUE(mistakes.none()) << mistakes.text();
  EXPECT_EQ(root.find("d")->find("b")->items[1].scalar, "2");
}

TEST(Document, BillionLaughsAreRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; i++) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int n = 1; n < 10; n++) text += ", " + before;
    text += "]\n";
  }
  EXPECT_NE(mistakes_of(text).find("more than 200000 values"), std::string::npos);
}

TEST(Document, DepthIsBounded) {
  for (unsigned depth : {kConfigDepthMax, kConfigDepthMax + 1, 400u, 100'000u}) {
    const std::string flow = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_EQ(mistakes_of(flow).empty(), depth <= kConfigDepthMax) << depth;
    EXPECT_FALSE(mistakes_of(std::string(depth, '[')).empty());
    EXPECT_FALSE(mistakes_of(std::string(depth, '{')).empty());
    if (depth > 500) continue;
    std::string block;
    for (unsigned i = 0; i < depth; i++) block += std::string(i, ' ') + "a:\n";
    EXPECT_EQ(mistakes_of(block).empty(), depth <= kConfigDepthMax) << depth;
  }
}

TEST(Document, BytesThatAreNoText) {
  for (const std::string& text :
       {std::string("\xFF\xFE"
                    "a\0:\0",
                    6),
        std::string("\0\0\0", 3), std::string("a: \xC3\x28\n"), std::string("\xFF\xFF\xFF\xFF"),
        std::string("a: \xED\xA0\x80\n"), std::string(1000, '\x01'), std::string("\xFE\xFF\xD8\x00", 4)}) {
    Mistakes mistakes("f");
    parse_yaml(text, mistakes);  // whatever it is, it ends
  }
}

TEST(Document, MistakesAreListedUpToABound) {
  Mistakes mistakes("f");
  for (int i = 0; i < 60; i++) mistakes.add({i + 1, 2}, "m" + std::to_string(i));
  EXPECT_EQ(mistakes.count(), 60u);
  EXPECT_TRUE(mistakes.text().starts_with("f:1:2: m0\nf:2:2: m1\n"));
  EXPECT_TRUE(mistakes.text().ends_with("f:50:2: m49\nf: and 10 more mistakes"));
}

TEST(Document, Suggestions) {
  const std::vector<std::string> words = {"delay", "rate", "jitter", "loss"};
  EXPECT_EQ(nearest("dely", words), "delay");
  EXPECT_EQ(nearest("rat", words), "rate");
  EXPECT_EQ(nearest("los", words), "loss");
  EXPECT_EQ(nearest("unrelated", words), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(suggestion("rale", words), "; did you mean `rate`?");
  EXPECT_EQ(suggestion("qqqqqq", words), "; known: delay, rate, jitter, loss");
  EXPECT_EQ(suggestion("qqqqqq", std::vector<std::string>(13, "long")), "");
  EXPECT_TRUE(suggestion("qqqqqq", std::vector<std::string>(13, "long"), 13).starts_with("; known: long, "));
  EXPECT_EQ(suggestion("goodput", {"goodput_bits_per_second", "goodputs"}), "; did you mean `goodputs`?");
  EXPECT_EQ(suggestion("goodput", {"goodput_bits_per_second", "bytes"}), "; did you mean `goodput_bits_per_second`?");
}

}  // namespace
}  // namespace rocebox::config
