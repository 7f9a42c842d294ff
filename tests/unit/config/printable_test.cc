// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/printable.h"

#include <gtest/gtest.h>

#include "runtime/config/document.h"

namespace rocebox::config {
namespace {

TEST(Printable, ControlCharactersAndBrokenTextAreWrittenOut) {
  struct Row {
    std::string text, shown;
  };
  const Row rows[] = {{"", ""},
                      {"a b~", "a b~"},
                      {"\x1b[31mred", "\\x1b[31mred"},
                      {"a\r\n\tb\x7f", "a\\x0d\\x0a\\x09b\\x7f"},
                      {std::string("a\0b", 3), "a\\x00b"},
                      {"Grüße, 数, 😀", "Grüße, 数, 😀"},
                      {"\xc2\x9b"
                       "31m",
                       "\\xc2\\x9b31m"},  // CSI as one C1 character
                      {"\xff\xc3", "\\xff\\xc3"},
                      {"\xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80", "\\xc0\\xaf \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80"}};
  for (const Row& row : rows) EXPECT_EQ(printable(row.text), row.shown);
  EXPECT_EQ(printable_lines("a\x1b\nb\r\n"), "a\\x1b\nb\\x0d\n");
}

TEST(Printable, MistakesQuoteAFileWithoutItsEscapeCodes) {
  Mistakes mistakes("\x1b]0;title\x07.yaml");
  mistakes.add({1, 2}, "unknown key `\x1b[2J\n`");
  EXPECT_EQ(mistakes.text(), "\\x1b]0;title\\x07.yaml:1:2: unknown key `\\x1b[2J\\x0a`");
}

// An anchor that is used twice, an option that counts for both directions: one mistake is told once, with its place.
TEST(Printable, NoMistakeIsToldTwice) {
  Mistakes mistakes("f.yaml");
  mistakes.add({2, 3}, "`loss` must be less");
  mistakes.add({2, 3}, "`loss` must be less");
  mistakes.add({}, "`loss` must be less");
  mistakes.add({4, 3}, "`loss` must be less");
  EXPECT_EQ(mistakes.text(), "f.yaml:2:3: `loss` must be less\nf.yaml:4:3: `loss` must be less");
  EXPECT_EQ(mistakes.count(), 4u) << "who counts before and after sees that there is one";
}

}  // namespace
}  // namespace rocebox::config
