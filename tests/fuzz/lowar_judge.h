// SPDX-License-Identifier: BSD-3-Clause
// What must come of what crosses the link in lowar_fuzz.cc.
#pragma once
#include <map>
#include <set>

#include "tests/fuzz/lowar_hosts.h"

namespace rocebox::fuzz::lowar_bed {

/// A packet as it arrives at the far gateway.
struct Crossing {
  Frame bytes;
  enum class Kind : std::uint8_t {
    kSent,     ///< by the near gateway; or its LoWAR packet with other bytes, which may say the truth nevertheless
    kChanged,  ///< by the link
    kForged,
  } kind = Kind::kSent;
};

class Judge {
 public:
  Judge(const Hosts& hosts, bool adapts) : hosts_(hosts), adapts_(adapts) {}

  // What has happened on the link: data that came in its order and once, something forged, anything but pauses.
  bool in_order = true, forged = false, touched = false;

  /// A packet that no host sent may leave, once.
  void may_leave(Frame bytes) { others_[std::move(bytes)]++; }

  void arrived(const Crossing& crossing) {
    const Frame& bytes = crossing.bytes;
    const View view(bytes);
    const bool is_lowar = view.is_lowar();
    not_lowar_ += !is_lowar;
    if (crossing.kind == Crossing::Kind::kChanged && !must_be_dropped(bytes, view)) may_leave(bytes);
    if (crossing.kind != Crossing::Kind::kSent) return;
    if (!is_lowar) came_[bytes]++;
    if (view.is_data()) begun_.insert(view.qpn);
    if (!is_lowar) return;
    if (begun_.contains(view.qpn)) coded_.insert(view.qpn);
    if (const auto header = lowar::parse_repair(lowar_bytes(bytes, view))) {
      const lowar::Block& block = header->block;
      for (unsigned place = header->isn; place < block.packets; place += block.coding.c)
        repairs_[{header->qpn, roce::psn_add(block.base_psn, place)}]++;
    } else if (const auto said = lowar::parse_negotiation(lowar_bytes(bytes, view))) {
      if (said->kind == lowar::NegotiationKind::kAnnounce) announced(bytes, *said);
    }
  }

  /// `all` has left the far gateway.
  void judge(const std::vector<Frame>& all, const Gateway& far) const {
    require(touched || all == hosts_.sent, "nothing was lost");
    const ByFrame<unsigned> got = counted(all), sent = counted(hosts_.sent);
    const bool is_strict = in_order && !forged && !looks_restarted_;
    for (const auto& [frame, times] : got) {
      const unsigned others = count(others_, frame);
      require(sent.contains(frame) || others > 0, "what leaves was sent");
      require(times <= count(came_, frame) + others + repairs_of(frame), "no more leaves than came and was rebuilt");
      require(!is_strict || times <= count(sent, frame) + others, "no more leaves than was sent");
    }
    for (const auto& [frame, times] : came_)
      require(got.contains(frame) && count(got, frame) + repairs_of(frame) >= times, "what came whole leaves");
    const std::uint64_t dropped = far.count("drop_icrc") + far.count("drop_late");
    require(all.size() + dropped == not_lowar_ + far.count("decode_recovered"), "what does not leave is counted");
    if (!is_strict) return;
    for (unsigned stream = 0; stream < kStreams; stream++)
      judge_order(of_stream(all, stream), of_stream(hosts_.sent, stream), hosts_.went_back[stream]);
  }

 private:
  // What the ICRC covers and what does not say where the packet belongs, once the far gateway knows that the stream is
  // coded: when it has seen a packet of it, and one of LoWAR's.
  bool must_be_dropped(const Frame& bytes, const View& view) const {
    if (!view.is_data() || !coded_.contains(view.qpn) || forged || adapts_) return false;
    // The bit that was changed lies behind the extended headers where what lies ahead is of a packet that was sent.
    const auto ending = bytes.end() - view.payload_bytes - roce::kIcrcBytes;
    return std::any_of(hosts_.sent.begin(), hosts_.sent.end(), [&](const Frame& sent) {
      return sent.size() == bytes.size() && std::equal(bytes.begin(), ending, sent.begin());
    });
  }
  // A stream's first announcement behind another one is what a restarted encoder says.
  void announced(const Frame& bytes, const lowar::NegotiationHeader& header) {
    Frame& last = announced_[{header.qpn, header.responses}];
    looks_restarted_ |= header.sent == 0 && !last.empty() && last != bytes;
    last = bytes;
  }
  // As they were sent; of a packet that is sent again the second one may come in the first one's place.
  static void judge_order(const std::vector<Frame>& got, const std::vector<Frame>& sent, bool went_back) {
    if (went_back) return require(descents(got) <= descents(sent), "in order, but for what is sent again");
    auto at = sent.begin();
    for (const Frame& frame : got) {
      at = std::find(at, sent.end(), frame);
      require(at != sent.end(), "in order");
    }
  }
  // How often the PSN goes back: leaving packets out never makes it more.
  static unsigned descents(const std::vector<Frame>& frames) {
    unsigned descents = 0;
    for (std::size_t i = 1; i < frames.size(); i++)
      descents += roce::psn_before(View(frames[i]).psn, View(frames[i - 1]).psn);
    return descents;
  }
  std::vector<Frame> of_stream(const std::vector<Frame>& frames, unsigned stream) const {
    std::vector<Frame> its;
    for (const Frame& frame : frames)
      if (const auto found = hosts_.stream_of.find(frame); found != hosts_.stream_of.end() && found->second == stream)
        its.push_back(frame);
    return its;
  }
  unsigned repairs_of(const Frame& frame) const {
    const View view(frame);
    const auto found = repairs_.find({view.qpn, view.psn});
    return found == repairs_.end() ? 0 : found->second;
  }
  static ByFrame<unsigned> counted(const std::vector<Frame>& frames) {
    ByFrame<unsigned> counts;
    for (const Frame& frame : frames) counts[frame]++;
    return counts;
  }
  static unsigned count(const ByFrame<unsigned>& counts, const Frame& frame) {
    const auto found = counts.find(frame);
    return found == counts.end() ? 0 : found->second;
  }

  const Hosts& hosts_;
  const bool adapts_;
  bool looks_restarted_ = false;
  ByFrame<unsigned> came_, others_;  // others_: that no host sent, and that may leave
  std::uint64_t not_lowar_ = 0;      // of all that arrived
  std::map<std::pair<std::uint32_t, std::uint32_t>, unsigned> repairs_;  // by QPN and PSN: repair packets that cover it
  std::map<std::pair<std::uint32_t, bool>, Frame> announced_;            // by QPN and responses: the last announcement
  std::set<std::uint32_t> begun_, coded_;                                // QPNs
};

}  // namespace rocebox::fuzz::lowar_bed
