// SPDX-License-Identifier: BSD-3-Clause
// What answers a ping, and to whom: RFC 792, RFC 4443; and who asks whether an address is taken: RFC 4861, RFC 4862.
#include <gtest/gtest.h>

#include "tests/unit/harness.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::echo {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t kMac[] = {2, 0, 0, 0, 0, 9}, kAskerMac[] = {2, 0, 0, 0, 0, 1};

// Of RFC 1071, over all of it.
std::uint16_t checksum(const Bytes& of) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < of.size(); i++) sum += of[i] << (i % 2 ? 0 : 8);
  while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}
void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }
Bytes part(const Bytes& of, std::size_t from, std::size_t bytes) {
  return {of.begin() + static_cast<std::ptrdiff_t>(from), of.begin() + static_cast<std::ptrdiff_t>(from + bytes)};
}

struct Ping {
  bool is_ipv6;
  Bytes source, destination;
  std::uint8_t type = 8;
  std::size_t bytes = 41;  // of the message; odd
  std::uint16_t checksum_off = 0;
  Bytes body = {};                              // of a message that is no ping, behind its checksum
  Bytes mac = Bytes(kAskerMac, kAskerMac + 6);  // it comes from
  std::uint8_t header_off = 0;                  // bits of IPv4's checksum that are wrong

  Bytes frame() const {
    Bytes made(kMac, kMac + 6);
    if (is_ipv6 && destination[0] == 0xFF)
      made = {0x33, 0x33, destination[12], destination[13], destination[14], destination[15]};
    append(made, mac);
    append(made, is_ipv6 ? Bytes{0x86, 0xDD} : Bytes{8, 0});
    const auto length = static_cast<std::uint8_t>(bytes);
    if (is_ipv6) {
      append(made, {0x60, 0, 0, 0, 0, length, 58, 255});
    } else {
      Bytes ip = {0x45, 0, 0, static_cast<std::uint8_t>(20 + length), 0, 0, 0, 0, 64, 1, 0, 0};
      append(ip, source);
      append(ip, destination);
      const std::uint16_t sum = checksum(ip);
      ip[10] = static_cast<std::uint8_t>(sum >> 8), ip[11] = static_cast<std::uint8_t>(sum ^ header_off);
      append(made, ip);
    }
    if (is_ipv6) append(made, source), append(made, destination);
    Bytes message(bytes);
    message[0] = type;
    for (std::size_t i = 4; i < bytes; i++) message[i] = static_cast<std::uint8_t>(i * 37);
    std::copy(body.begin(), body.end(), message.begin() + 4);
    const auto sum = static_cast<std::uint16_t>(checksum(covered(message, source, destination)) + checksum_off);
    message[2] = static_cast<std::uint8_t>(sum >> 8), message[3] = static_cast<std::uint8_t>(sum);
    append(made, message);
    return made;
  }
  // With the pseudo header of RFC 8200, 8.1.
  Bytes covered(const Bytes& message, const Bytes& from, const Bytes& to) const {
    Bytes all;
    if (is_ipv6)
      append(all, from), append(all, to), append(all, {0, 0, 0, static_cast<std::uint8_t>(bytes), 0, 0, 0, 58});
    append(all, message);
    return all;
  }
};

const Bytes kOwn4 = {10, 0, 0, 9}, kAsker4 = {10, 0, 0, 1};
const Bytes kOwn6 = {0xFD, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
const Bytes kAsker6 = {0xFD, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
const Bytes kAllNodes = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

struct Pinged {
  std::unique_ptr<KernelOptions> options =
      nic_test_options("nic", "address: 10.0.0.9\naddress6: fd99::9\nmac: 02:00:00:00:00:09");
  KernelBox box{[this](Stats& s) { return options->make(s); }, 1, Shape::kOneWay, 1, 1};

  // What leaves when it comes, but for questions of its own.
  std::vector<Bytes> answers(const Bytes& frame) {
    const std::size_t before = box.out.size();
    box.send(kMillisecond, 0, frame);
    std::vector<Bytes> all;
    for (std::size_t i = before; i < box.out.size(); i++) all.push_back(box.out[i].bytes);
    return all;
  }
  std::uint64_t count(std::string_view name) const { return box.stats.read(name); }
};

TEST(Echo, IsAnsweredFromTheAddressOfTheNic) {
  Pinged nic;
  std::uint64_t sent = 0;
  for (const std::size_t bytes : {8u, 9u, 64u, 101u})
    for (const Ping& ping : {Ping{false, kAsker4, kOwn4, 8, bytes}, Ping{true, kAsker6, kOwn6, 128, bytes},
                             Ping{true, kAsker6, kAllNodes, 128, bytes}}) {
      SCOPED_TRACE(testing::Message() << "IPv6 " << ping.is_ipv6 << ", " << bytes << " bytes");
      const std::vector<Bytes> answers = nic.answers(ping.frame());
      ASSERT_EQ(answers.size(), 1u);
      const Bytes& answer = answers[0];
      const Bytes asked = ping.frame();
      ASSERT_EQ(answer.size(), asked.size());
      EXPECT_EQ(part(answer, 0, 6), Bytes(kAskerMac, kAskerMac + 6));
      EXPECT_EQ(part(answer, 6, 6), Bytes(kMac, kMac + 6));
      const std::size_t addresses = ping.is_ipv6 ? 22 : 26, width = ping.is_ipv6 ? 16 : 4, at = addresses + 2 * width;
      const Bytes& own = ping.is_ipv6 ? kOwn6 : kOwn4;
      EXPECT_EQ(part(answer, addresses, width), own);
      EXPECT_EQ(part(answer, addresses + width, width), ping.source);
      EXPECT_EQ(answer[ping.is_ipv6 ? 21 : 22], 64) << "hops";
      if (!ping.is_ipv6) {
        EXPECT_EQ(checksum(part(answer, 14, 20)), 0);
      }
      EXPECT_EQ(answer[at], ping.is_ipv6 ? 129 : 0);
      EXPECT_EQ(checksum(ping.covered(part(answer, at, bytes), own, ping.source)), 0);
      EXPECT_EQ(part(answer, at + 4, bytes - 4), part(asked, at + 4, bytes - 4)) << "all that came";
      EXPECT_EQ(nic.count("echo_replies_sent"), ++sent);
    }
}

// A good answer would hide that the request was damaged on its way.
TEST(Echo, OfAWrongChecksumIsNotAnswered) {
  Pinged nic;
  for (Ping ping : {Ping{false, kAsker4, kOwn4, 8}, Ping{true, kAsker6, kOwn6, 128}}) {
    ping.checksum_off = 1;
    EXPECT_TRUE(nic.answers(ping.frame()).empty());
  }
  Ping ping{false, kAsker4, kOwn4, 8};
  ping.header_off = 1;  // who asks may be another one (RFC 1122, 3.2.1.2)
  EXPECT_TRUE(nic.answers(ping.frame()).empty());
  EXPECT_EQ(nic.count("drop_checksum"), 3u);
  EXPECT_EQ(nic.count("echo_replies_sent"), 0u);
}

TEST(Echo, NobodyIsNotAnswered) {
  Pinged nic;
  Bytes loopback6(16);
  loopback6.back() = 1;
  std::vector<Ping> pings = {{false, {224, 0, 0, 1}, kOwn4, 8}, {false, {0, 0, 0, 0}, kOwn4, 8},
                             {false, {127, 0, 0, 1}, kOwn4, 8}, {false, {255, 255, 255, 255}, kOwn4, 8},
                             {true, kAllNodes, kOwn6, 128},     {true, Bytes(16), kOwn6, 128},
                             {true, loopback6, kOwn6, 128},     {false, kAsker4, kOwn4, 0},  // an answer
                             {true, kAsker6, kOwn6, 129}};
  for (const Bytes& mac : {Bytes(6, 0xFF), Bytes{0x33, 0x33, 0, 0, 0, 1}, Bytes(6), Bytes(kMac, kMac + 6)})
    for (const bool is_ipv6 : {false, true}) {
      pings.push_back(is_ipv6 ? Ping{true, kAsker6, kOwn6, 128} : Ping{false, kAsker4, kOwn4, 8});
      pings.back().mac = mac;
    }
  for (const Ping& ping : pings)
    EXPECT_TRUE(nic.answers(ping.frame()).empty()) << int{ping.source[0]} << " " << int{ping.mac[0]};
  EXPECT_EQ(nic.count("drop_no_protocol"), pings.size());
}

// A node that is about to take an address asks all for it, from none (RFC 4862, 5.4.3): it is told, and so all are. One
// that asks for a neighbour need not say its own MAC address (RFC 4861, 4.3).
TEST(NeighborDiscovery, WhoAsksWhetherTheAddressIsTakenIsTold) {
  Pinged nic;
  const Bytes group = {0xFF, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF, 0, 0, 9};
  for (const bool asks_for_taken : {true, false}) {
    SCOPED_TRACE(asks_for_taken);
    Bytes body(4);
    append(body, kOwn6);
    const Ping question{true, asks_for_taken ? Bytes(16) : kAsker6, asks_for_taken ? group : kOwn6, 135, 24, 0, body};
    const std::vector<Bytes> answers = nic.answers(question.frame());
    ASSERT_EQ(answers.size(), 1u);
    const Bytes& answer = answers[0];
    const Bytes& to = asks_for_taken ? kAllNodes : kAsker6;
    EXPECT_EQ(part(answer, 0, 6), asks_for_taken ? Bytes({0x33, 0x33, 0, 0, 0, 1}) : Bytes(kAskerMac, kAskerMac + 6));
    EXPECT_EQ(part(answer, 22, 16), kOwn6);
    EXPECT_EQ(part(answer, 38, 16), to);
    EXPECT_EQ(answer[54], 136);
    EXPECT_EQ(answer[58], asks_for_taken ? 0x20 : 0x60) << "override; solicited, where somebody asked";
    EXPECT_EQ(part(answer, 62, 16), kOwn6);
    EXPECT_EQ(part(answer, 78, 8), Bytes({2, 1, 2, 0, 0, 0, 0, 9})) << "the option with its MAC address";
    EXPECT_EQ(checksum(Ping{true, {}, {}, 136, 32}.covered(part(answer, 54, 32), kOwn6, to)), 0);
  }
  EXPECT_EQ(nic.count("nd_advertisements_sent"), 2u);
}

}  // namespace
}  // namespace rocebox::test::echo
