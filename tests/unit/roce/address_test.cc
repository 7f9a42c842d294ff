// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/roce/address.h"

#include <gtest/gtest.h>

namespace rocebox::roce {
namespace {

TEST(Address, MacsAreReadAndWritten) {
  EXPECT_EQ(parse_mac("02:00:5e:10:00:ff"), (Mac{2, 0, 0x5E, 0x10, 0, 0xFF}));
  EXPECT_EQ(mac_text(parse_mac("02:00:5E:10:00:FF").value()), "02:00:5e:10:00:ff");
  EXPECT_EQ(mac_text(Mac{}), "00:00:00:00:00:00");
  for (const char* text : {"", "02:00:00:00:00", "02:00:00:00:00:0", "02:00:00:00:00:001", "02-00-00-00-00-01",
                           "0g:00:00:00:00:01", "02:00:00:00:00:01 ", "+2:00:00:00:00:01", "020000000001"})
    EXPECT_FALSE(parse_mac(text)) << text;
}

TEST(Address, AddressesAreReadAndWritten) {
  for (const char* text : {"10.1.2.3", "0.0.0.0", "255.255.255.255", "fe80::1", "::", "::1", "2001:db8:1::2"})
    EXPECT_EQ(address_text(parse_address(text).value()), text);
  EXPECT_EQ(address_text(parse_address("2001:DB8:0:0::0002").value()), "2001:db8::2");
  EXPECT_EQ(parse_address("::ffff:10.1.2.3"), parse_address("10.1.2.3"));
  EXPECT_TRUE(is_ipv4(parse_address("10.1.2.3").value()));
  EXPECT_FALSE(is_ipv4(parse_address("::10.1.2.3").value()));
  for (const std::string text : {"", "10.1.2", "10.1.2.256", "10.1.2.3.4", "10.1.2.3 ", "10.1.2.3/8", "host",
                                 "fe80::1%eth0", "1::2::3", "010.1.2.3"})
    EXPECT_FALSE(parse_address(text)) << text;
  EXPECT_FALSE(parse_address(std::string_view("10.1.2.3\0x", 10)))
      << "what stands behind a zero byte is not overlooked";
}

TEST(Address, PrefixesAreReadAndWritten) {
  std::string why;
  for (const char* text : {"10.0.0.0/8", "0.0.0.0/0", "10.1.2.3/32", "10.1.2.128/25", "::/0", "2001:db8::/32",
                           "fe80::1/128", "2001:db8:8000::/33", "::ffff:10.0.0.0/104"}) {
    const auto prefix = parse_prefix(text, why);
    ASSERT_TRUE(prefix) << text << ": " << why;
    EXPECT_EQ(prefix_text(*prefix), text);
    EXPECT_EQ(parse_prefix(prefix_text(*prefix), why), prefix);
  }
  EXPECT_EQ(parse_prefix("10.0.0.0/8", why), (Prefix{parse_address("10.0.0.0").value(), true, 8}));
  EXPECT_FALSE(parse_prefix("::ffff:10.0.0.0/104", why)->is_ipv4) << "its length counts in 128 bits";
}

TEST(Address, PrefixesThatAreNone) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "must be a prefix, such as"},
      {"10.0.0.0", "must be a prefix, such as"},
      {"10.0.0/8", "must be a prefix, such as"},
      {"/8", "must be a prefix, such as"},
      {"10.0.0.0/", "must have a length from 0 to 32"},
      {"10.0.0.0/33", "must have a length from 0 to 32"},
      {"10.0.0.0/-1", "must have a length from 0 to 32"},
      {"10.0.0.0/8x", "must have a length from 0 to 32"},
      {"::/129", "must have a length from 0 to 128"},
      {"10.0.0.1/31", "has address bits behind its length: `10.0.0.1/31`"},
      {"2001:db8::1/64", "has address bits behind its length"},
      {"128.0.0.0/0", "has address bits behind its length"}};
  for (const auto& [text, words] : rows) {
    std::string why;
    EXPECT_FALSE(parse_prefix(text, why)) << text;
    EXPECT_NE(why.find(words), std::string::npos) << text << ": " << why;
  }
}

}  // namespace
}  // namespace rocebox::roce
