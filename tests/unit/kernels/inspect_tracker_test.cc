// SPDX-License-Identifier: BSD-3-Clause
// The PSN tracker against a brute-force model with sets, over thousands of random streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kernels/inspect/psn_tracker.h"

namespace rocebox::inspect {
namespace {

constexpr std::uint32_t kMask = roce::kPsnMask;

// The definitions of README.md, with PSNs that do not wrap and memory without end.
struct Model {
  bool used = false, sparse = false, informed = true;
  std::int64_t first = 0, high = 0;
  std::uint16_t newest = 0;
  bool complete = false;
  int compared = 0, increased = 0;
  std::set<std::int64_t> seen, holes;
  std::set<std::int64_t> message_ends;
  std::map<std::int64_t, std::uint16_t> ids;  // the newest seen with each PSN
  std::uint64_t opened = 0, late = 0, payload = 0;
  std::map<std::int64_t, PsnPacket> firsts, lasts;  // what was seen first of a PSN, where it is a packet's first, last
  std::uint64_t duplicates = 0, retransmissions = 0, out_of_order = 0, degree_max = 0;

  static bool newer_id(std::uint16_t a, std::uint16_t b) {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>(a - b)) > 0;
  }

  void add(std::int64_t psn, const PsnPacket& p) {
    const auto last = psn + p.width - 1;
    const bool newer = static_cast<std::int16_t>(static_cast<std::uint16_t>(p.id - newest)) > 0;
    if (!used || psn > high) {
      if (used) compared++, increased += newer;
      if (used && !(sparse && p.starts && complete))
        for (auto skipped = high + 1; skipped < psn; skipped++) holes.insert(skipped), opened++;
      payload += p.payload;
    } else {
      if (!seen.count(psn)) payload += p.payload;
      const bool informative = compared >= 3 && increased * 8 >= compared * 7;
      informed &= informative;
      // Newer than all, or than the newest copy of its own PSN: a retransmission that was overtaken.
      if (newer || (seen.count(psn) && newer_id(p.id, ids[psn]))) {
        retransmissions++;
      } else if (seen.count(psn)) {
        duplicates++;
      } else {
        out_of_order++;
        degree_max = std::max(degree_max, static_cast<std::uint64_t>(high - psn));
        for (auto each = psn; each <= last; each++) late += holes.count(each) && !seen.count(each);
      }
    }
    if (!used || newer) newest = p.id;
    if (!used || last > high) high = last, complete = p.ends;
    first = used ? std::min(first, psn) : psn;
    used = true;
    for (auto each = psn; each <= last; each++) {
      if (seen.count(each)) continue;
      if (each == psn) firsts[each] = p;
      if (each == last) lasts[each] = p;
    }
    for (auto each = psn; each <= last; each++)
      if (seen.insert(each).second || newer_id(p.id, ids[each])) ids[each] = p.id;
    if (p.ends) message_ends.insert(last);
  }
  // Count and bytes of the messages of which all PSNs were seen.
  std::pair<std::uint64_t, std::uint64_t> whole_messages() const {
    std::pair<std::uint64_t, std::uint64_t> whole;
    for (const auto& [start, packet] : firsts) {
      std::uint64_t bytes = 0;
      for (auto at = start; packet.starts && seen.count(at); at++) {
        if (firsts.count(at)) {
          if (at != start && firsts.at(at).starts) break;
          bytes += firsts.at(at).size;
        }
        if (!lasts.count(at) || !lasts.at(at).ends) continue;
        whole.first++;
        whole.second += bytes;
        break;
      }
    }
    return whole;
  }
  std::uint64_t missing() const {
    if (!sparse) return static_cast<std::uint64_t>(high - first + 1) - seen.size();
    return static_cast<std::uint64_t>(
        std::count_if(holes.begin(), holes.end(), [&](auto psn) { return !seen.count(psn); }));
  }
};

struct Sent {
  std::int64_t psn;
  PsnPacket packet;
};

// What a sender emits: messages, and now and then a go-back to an earlier packet; IDs rise by 1
// to 20.
std::vector<Sent> emit(std::mt19937& random, bool sparse) {
  std::vector<Sent> plan, sent;
  std::int64_t psn = static_cast<std::int64_t>(kMask - random() % 200) * (random() % 2);
  auto id = static_cast<std::uint16_t>(random());
  for (int messages = 20; messages > 0; messages--) {
    const auto length = static_cast<std::uint32_t>(1 + random() % 6);
    const bool read = !sparse && random() % 8 == 0;
    for (unsigned i = 0; i < (read ? 1 : length); i++) {
      PsnPacket p;
      p.starts = i == 0, p.ends = read || i == length - 1, p.read = read;
      p.width = read ? length : 1;
      p.payload = read ? 0 : 100;
      p.size = read ? 5000 : 100;
      p.psn = static_cast<std::uint32_t>(psn) & kMask;
      plan.push_back({psn, p});
      psn += p.width;
    }
    if (sparse && random() % 3 == 0) psn += random() % 20;
  }
  for (std::size_t at = 0; at < plan.size(); at++) {
    if (at > 6 && random() % 25 == 0) at -= random() % 6;
    id = static_cast<std::uint16_t>(id + 1 + random() % 20);
    sent.push_back(plan[at]);
    sent.back().packet.id = id;
    sent.back().packet.has_id = true;
  }
  return sent;
}

// What the network makes of it.
std::vector<Sent> impair(std::mt19937& random, const std::vector<Sent>& sent) {
  std::vector<Sent> got;
  for (std::size_t i = 0; i < sent.size(); i++) {
    if (i > 8 && random() % 20 == 0) continue;
    got.push_back(sent[i]);
    if (i > 8 && random() % 20 == 0) got.push_back(sent[i]);
    if (i > 12 && random() % 15 == 0) std::swap(got[got.size() - 1], got[got.size() - 2 - random() % 4]);
  }
  return got;
}

TEST(InspectTracker, AgreesWithTheModelOverRandomStreams) {
  int informed = 0;
  for (unsigned seed = 1; seed <= 4000; seed++) {
    std::mt19937 random(seed);
    const bool sparse = seed % 2;
    const PsnTracker tracker(4096, 1'000'000, sparse);
    std::vector<PsnTracker::Entry> ring(4096);
    PsnStream stream;
    IdEvidence evidence;
    Model model;
    model.sparse = sparse;
    Nanos now = 1'000'000'000'000;
    for (Sent& each : impair(random, emit(random, sparse))) {
      each.packet.now = now += 1000;
      model.add(each.psn, each.packet);
      tracker.add(stream, ring.data(), evidence, each.packet);
      ASSERT_EQ(stream.high & kMask, model.high & kMask) << "seed " << seed;
    }
    if (!model.informed) continue;  // fewer than 7/8 of the IDs rose: the other rules apply, see below
    informed++;
    ASSERT_EQ(stream.first & kMask, model.first & kMask) << "seed " << seed;
    ASSERT_EQ(stream.high - stream.first, model.high - model.first) << "seed " << seed;
    ASSERT_EQ(stream.unique_total(), model.seen.size()) << "seed " << seed;
    ASSERT_EQ(tracker.missing(stream), model.missing()) << "seed " << seed;
    ASSERT_EQ(stream.lost(), model.opened - model.late) << "seed " << seed;
    ASSERT_EQ(stream.duplicates, model.duplicates) << "seed " << seed;
    ASSERT_EQ(stream.retransmissions, model.retransmissions) << "seed " << seed;
    ASSERT_EQ(stream.out_of_order, model.out_of_order) << "seed " << seed;
    ASSERT_EQ(stream.degree_max, model.degree_max) << "seed " << seed;
    ASSERT_EQ(stream.messages, model.message_ends.size()) << "seed " << seed;
    ASSERT_EQ(stream.unique_payload, model.payload) << "seed " << seed;
    if (sparse) continue;
    tracker.settle_sizes(stream, ring.data());
    const auto [count, bytes] = model.whole_messages();
    ASSERT_EQ(stream.sizes.count, count) << "seed " << seed;
    ASSERT_EQ(stream.sizes.sum, bytes) << "seed " << seed;
  }
  EXPECT_GT(informed, 3000);
}

}  // namespace
}  // namespace rocebox::inspect
