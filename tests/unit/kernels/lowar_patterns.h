// SPDX-License-Identifier: BSD-3-Clause
// Patterns of losses between two gateways: which of them LoWAR repairs, by the format alone, and what must come out.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar::kit {

/// What a host sent, and how it crosses the link.
struct Coded {
  std::vector<Frame> sent;
  std::vector<Crossing> crossings;
};

inline bool is_announcement(const Crossing& crossing) { return !crossing.data && !crossing.repair; }

/// Whether the sequence that this announces goes on as well without it, whatever else is lost: it is the stream's
/// first. A retransmission is found only after some packets.
inline bool is_needless(const std::vector<Crossing>& crossings, std::size_t announcement) {
  return std::none_of(crossings.begin(), crossings.begin() + static_cast<std::ptrdiff_t>(announcement),
                      is_announcement);
}

/// Whether LoWAR can repair that: no repair packet covers two of the lost data packets, and of the first packet of a
/// sequence that is lost its announcement tells.
inline bool repairable(const std::vector<Crossing>& crossings, const std::set<std::size_t>& lost) {
  std::map<std::size_t, unsigned> lost_of;  // by repair packet
  for (std::size_t index : lost) {
    if (is_announcement(crossings[index]) && lost.contains(index + 1)) return false;
    if (is_announcement(crossings[index]) && lost.size() > 1 && !is_needless(crossings, index)) return false;
    if (!crossings[index].data) continue;
    // The repair packet that covers it is the first one behind it that says so.
    std::size_t at = index + 1;
    for (; at < crossings.size(); at++) {
      if (!crossings[at].repair) continue;
      const RepairHeader& header = *crossings[at].repair;
      const std::uint32_t place = (crossings[index].psn - header.block.base_psn) & roce::kPsnMask;
      if (place < header.block.packets && place % header.block.coding.c == header.isn) break;
    }
    if (at == crossings.size() || lost.contains(at) || ++lost_of[at] > 1) return false;
  }
  return true;
}

inline void expect_in_order_part(const std::vector<Frame>& got, const std::vector<Frame>& sent,
                                 const std::string& what) {
  std::size_t at = 0;
  for (const Frame& frame : got) {
    while (at < sent.size() && sent[at] != frame) at++;
    ASSERT_LT(at, sent.size()) << what << ": a packet that was not sent, or out of order";
    at++;
  }
}

/// All that came over the link is there, and what was recovered; nothing else.
inline void expect_all_that_came(const std::vector<Frame>& got, const std::vector<Crossing>& came,
                                 std::uint64_t recovered, const std::string& what) {
  std::multiset<Frame> left(got.begin(), got.end());
  for (const Frame& frame : data_frames(came)) {
    const auto found = left.find(frame);
    ASSERT_TRUE(found != left.end()) << what << ": a packet that came is not handed over";
    left.erase(found);
  }
  ASSERT_EQ(left.size(), recovered) << what;
}

/// How often the PSN goes back (IPv4): leaving packets out never makes it more.
inline unsigned descents(const std::vector<Frame>& frames) {
  unsigned count = 0;
  std::uint32_t before = 0;
  for (const Frame& frame : frames) {
    const auto psn = static_cast<std::uint32_t>(reinterpret_cast<const roce::Bth*>(frame.data() + kHeader)->psn);
    count += &frame != &frames.front() && roce::psn_before(psn, before);
    before = psn;
  }
  return count;
}

/// `length` crossings in a row, from `start` on.
inline std::set<std::size_t> burst(std::size_t start, std::size_t length) {
  std::set<std::size_t> lost;
  for (std::size_t index = start; index < start + length; index++) lost.insert(index);
  return lost;
}

/// Two gateways for many patterns. Each crosses on a QP of its own, so that none knows of another: to make gateways
/// anew for each takes longer by far.
class Patterns {
 public:
  explicit Patterns(Config config) : near_(enlarged(config)), far_(enlarged(config)) {}

  /// What `send` has a sender send, on a fresh QP.
  Coded coded(const std::function<std::vector<Frame>(Sender&)>& send, std::uint32_t first_psn = 0xFFFFFA) {
    Sender sender(first_psn, ++qpn_);
    Coded result{send(sender), {}};
    result.crossings = near_.encode(result.sent);
    return result;
  }
  /// What comes out without these crossings: all where that can be repaired (true), else a part in order.
  bool check(const Coded& coded, const std::set<std::size_t>& lost, const std::string& what) {
    const std::uint64_t released = far_.count("decode_released"), failed = far_.count("decode_rebuild_failed");
    const std::uint64_t recovered_before = recovered();
    const std::vector<Crossing> came = without(coded.crossings, lost);
    const std::vector<Frame> got = far_.decode(came);
    const bool whole = repairable(coded.crossings, lost);
    if (whole) {
      EXPECT_EQ(got.size(), coded.sent.size()) << what;
      EXPECT_TRUE(got == coded.sent) << what;
      EXPECT_EQ(far_.count("decode_released"), released) << what;
    } else {
      expect_part(got, coded.sent, what);
      expect_all_that_came(got, came, recovered() - recovered_before, what);
      // Without its announcement a sequence may still be found.
      EXPECT_TRUE(got.size() < coded.sent.size() || repairable(coded.crossings, data_and_repairs(coded, lost))) << what;
    }
    // Of a packet that is sent again the other version may go into an XOR, and the set sum has to tell.
    const bool one_version = whole || descents(coded.sent) == 0;
    EXPECT_TRUE(!one_version || far_.count("decode_rebuild_failed") == failed) << what;
    EXPECT_EQ(far_.count("decode_streams_full") + far_.count("decode_streams_aged"), 0u) << "one QP for each pattern";
    EXPECT_EQ(far_.conservation().held(), 0u) << what;
    return whole;
  }
  std::uint64_t recovered() const { return far_.count("decode_recovered"); }

 private:
  // A packet that is sent again may come in the first one's place, and be right there.
  static void expect_part(const std::vector<Frame>& got, const std::vector<Frame>& sent, const std::string& what) {
    if (descents(sent) == 0) return expect_in_order_part(got, sent, what);
    EXPECT_LE(descents(got), descents(sent)) << what << ": out of order";
    std::multiset<Frame> left(sent.begin(), sent.end());
    for (const Frame& frame : got) {
      const auto found = left.find(frame);
      ASSERT_TRUE(found != left.end()) << what << ": a packet that was not sent, or too often";
      left.erase(found);
    }
  }
  static std::set<std::size_t> data_and_repairs(const Coded& coded, std::set<std::size_t> lost) {
    std::erase_if(lost, [&](std::size_t index) { return is_announcement(coded.crossings[index]); });
    return lost;
  }
  static Config enlarged(Config config) {
    config.streams = 8192;
    return config;
  }
  Gateway near_, far_;
  std::uint32_t qpn_ = 0x10;
};

}  // namespace rocebox::lowar::kit
