// SPDX-License-Identifier: BSD-3-Clause
// Program `reduce`: sums of packets, on one switch and up a tree of them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/roce/icrc.h"
#include "tests/unit/switch_model/switch_box.h"

namespace rocebox::reduce_test {
namespace {

constexpr roce::Mac kRouter = {2, 0, 0, 0, 0xFF, 1};
constexpr std::uint32_t kFloat = 0x52440001, kInt = 0x52440002;

roce::PacketSpec spec_of(unsigned source, unsigned owner, std::uint32_t immediate, std::uint32_t qkey,
                         std::span<const std::uint8_t> payload) {
  roce::PacketSpec spec;
  spec.underlay.addresses = {roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(source)),
                             roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(owner))};
  spec.underlay.source_mac = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(source)};
  spec.underlay.destination_mac = kRouter;
  spec.opcode = IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE;
  spec.destination_qp = 0x100 + owner, spec.source_qp = 0x100 + source;
  spec.immediate = immediate, spec.qkey = qkey;
  spec.payload = payload;
  return spec;
}

template <class T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * 4);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> numbers_in(const test::Out& out) {
  std::vector<T> numbers(out.meta.payload_bytes / 4);
  std::memcpy(numbers.data(), out.bytes.data() + out.meta.bth_offset + 12 + 8 + 4, out.meta.payload_bytes);
  return numbers;
}

// Hosts 10.0.0.1 to .4 at p0 to p3; this switch is the root.
const std::string kRoot =
    "ports: [p0, p1, p2, p3]\nprograms: [inc_reduce, forward]\n"
    "forward: {learning: false, unknown: drop_all, router_mac: '02:00:00:00:ff:01', routes: ["
    "{prefix: 10.0.0.1/32, via: [{port: p0, mac: '02:00:00:00:00:01'}]}, "
    "{prefix: 10.0.0.2/32, via: [{port: p1, mac: '02:00:00:00:00:02'}]}, "
    "{prefix: 10.0.0.3/32, via: [{port: p2, mac: '02:00:00:00:00:03'}]}, "
    "{prefix: 10.0.0.4/32, via: [{port: p3, mac: '02:00:00:00:00:04'}]}]}\n"
    "inc_reduce: {slots: 8, bytes: 256, router_mac: '02:00:00:00:ff:01', trees: [{children: [{port: p0, only: "
    "10.0.0.1}, "
    "{port: p1, only: 10.0.0.2}, {port: p2, only: 10.0.0.3}, {port: p3, only: 10.0.0.4}]}]}\n";

TEST(Reduce, TheOwnerGetsTheSumOfAllOthersWhoeverComesFirst) {
  std::minstd_rand random(11);
  std::vector<std::uint8_t> first;
  for (unsigned order = 0; order < 6; order++) {
    test::SwitchBox box(kRoot.c_str());
    std::vector<unsigned> sources = {1, 2, 4};  // for host 3
    for (unsigned i = 0; i < order; i++) std::next_permutation(sources.begin(), sources.end());
    for (const unsigned source : sources) {
      EXPECT_EQ(box.out.size(), 0u);
      // Numbers of which the sum depends on the order: 1, 1e8, -1e8.
      const float value = source == 1 ? 1.f : source == 2 ? 1e8f : -1e8f;
      box.send(1000, static_cast<Port>(source - 1),
               spec_of(source, 3, 5, kFloat, bytes_of(std::vector<float>(10, value))));
    }
    ASSERT_EQ(box.out.size(), 1u);
    EXPECT_EQ(box.out[0].port, 2);
    EXPECT_EQ(numbers_in<float>(box.out[0]), std::vector<float>(10, (1.f + 1e8f) - 1e8f)) << "in the order of ports";
    if (first.empty()) first = box.out[0].bytes;
    EXPECT_EQ(box.out[0].bytes, first) << "headers, too";
    PacketPtr packet = box.pool.allocate(static_cast<std::uint32_t>(first.size()));
    std::ranges::copy(first, packet->data());
    roce::parse(*packet);
    EXPECT_EQ(roce::icrc_check(*packet), roce::IcrcStatus::kGood);
    EXPECT_EQ(box.stats.read("reduced"), 2u);
  }
}

TEST(Reduce, WholeNumbersWrap) {
  test::SwitchBox box(kRoot.c_str());
  const std::vector<std::int32_t> numbers[] = {{INT32_MAX, -5, 0, 7}, {1, 5, 0, 70}, {0, -3, -1, 700}};
  for (unsigned i = 0; i < 3; i++)
    box.send(1000, static_cast<Port>(i), spec_of(i + 1, 4, 0x01000009, kInt, bytes_of(numbers[i])));
  ASSERT_EQ(box.out.size(), 1u);
  EXPECT_EQ(numbers_in<std::int32_t>(box.out[0]), (std::vector<std::int32_t>{INT32_MIN, -3, -1, 777}));
}

TEST(Reduce, WhatCannotBeSummedIsDroppedAndCounted) {
  test::SwitchBox box(kRoot.c_str());
  const auto payload = bytes_of(std::vector<float>(4, 1.f));
  const auto give = [&](unsigned source, unsigned owner, std::uint32_t immediate, std::size_t bytes = 16) {
    box.send(1000, static_cast<Port>(source - 1),
             spec_of(source, owner, immediate, kFloat, std::span(payload).first(bytes)));
  };
  give(1, 3, 5);
  give(1, 3, 5);
  EXPECT_EQ(box.stats.read("drop_reduce_duplicate"), 1u) << "twice";
  give(1, 3, 13);
  EXPECT_EQ(box.stats.read("drop_reduce_slot_busy"), 1u) << "8 slots";
  give(3, 3, 5);
  EXPECT_EQ(box.stats.read("drop_reduce_stranger"), 1u) << "its owner has its own";
  give(2, 3, 5, 12);
  EXPECT_EQ(box.stats.read("drop_reduce_length"), 1u);
  std::vector<std::uint8_t> bad = test::frame(spec_of(2, 3, 5, kFloat, payload));
  bad[bad.size() - 6] ^= 1;
  box.send(1000, 1, bad);
  EXPECT_EQ(box.stats.read("drop_reduce_icrc"), 1u);
  give(2, 3, 5);
  give(4, 3, 5);
  ASSERT_EQ(box.out.size(), 1u);
  EXPECT_EQ(numbers_in<float>(box.out[0]), std::vector<float>(4, 3.f));
  give(2, 3, 5);
  EXPECT_EQ(box.stats.read("drop_reduce_duplicate"), 2u) << "late";
  EXPECT_EQ(box.out.size(), 1u);
  // The slot is free for the next chunk; what is for another Q_Key goes its way.
  for (const unsigned source : {1u, 2u, 4u}) give(source, 3, 13);
  EXPECT_EQ(box.out.size(), 2u);
  box.send(1000, 0, spec_of(1, 3, 5, 0x1234, payload));
  EXPECT_EQ(box.out.size(), 3u);
}

// Two hosts at a switch below, of which the sum goes up with its parent's MAC address.
TEST(Reduce, SumsGoUpATree) {
  test::SwitchBox box(
      "ports: [p0, p1, p2, p3]\nprograms: [inc_reduce, forward]\nforward: {learning: false, unknown: drop_all}\n"
      "inc_reduce: {slots: 2, bytes: 64, trees: [{children: [{port: p0, only: 10.0.0.1}, {port: p1, only: 10.0.0.2}], "
      "parent: p2, parent_mac: 02:00:00:00:ee:01}, {}]}\n");
  const auto payload = bytes_of(std::vector<std::uint32_t>(4, 21));
  for (const unsigned source : {1u, 2u})
    box.send(1000, static_cast<Port>(source - 1), spec_of(source, 9, 4, kInt, payload));
  ASSERT_EQ(box.out.size(), 1u);
  EXPECT_EQ(box.out[0].port, 2);
  EXPECT_EQ(numbers_in<std::uint32_t>(box.out[0]), std::vector<std::uint32_t>(4, 42));
  EXPECT_EQ((std::vector<std::uint8_t>(box.out[0].bytes.begin(), box.out[0].bytes.begin() + 6)),
            (std::vector<std::uint8_t>{2, 0, 0, 0, 0xEE, 1}));
  // For host 2 only host 1 contributes; of the second tree nothing passes here.
  box.send(1000, 0, spec_of(1, 2, 6, kInt, payload));
  EXPECT_EQ(box.out.size(), 2u);
  box.send(1000, 0, spec_of(1, 2, 7, kInt, payload));
  EXPECT_EQ(box.stats.read("reduced_sums"), 2u);
}

TEST(Reduce, ImpossibleOptionsAreRefused) {
  const struct Row {
    std::string options, words;
  } rows[] = {
      {"float_qkey: 5, int_qkey: 5", "must not be `float_qkey`"},
      {"trees: [{children: [{port: p9}]}]", "names no port"},
      {"trees: [{children: [{port: p0}, {port: p0}]}]", "`p0` twice"},
      {"trees: [{children: [{port: p0}], parent: p0}]", "is one of the children"},
      {"slots: 65536, trees: [{children: [{port: p0}, {port: p1}, {port: p2}, {port: p3}]}]", "need 1 GiB or more"},
  };
  for (const Row& row : rows) {
    const std::string mistakes =
        test::switch_mistakes("{programs: [inc_reduce, forward], inc_reduce: {" + row.options + "}}");
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.options << mistakes;
  }
  // Strict mode: no chip adds a payload in one pass.
  CounterSet stats;
  EXPECT_THROW(test::make_switch(("strict: true\n" + kRoot).c_str(), stats), ConfigError);
}

}  // namespace
}  // namespace rocebox::reduce_test
