// SPDX-License-Identifier: BSD-3-Clause
// Two LoWAR gateways with options of their own, and between them a link that loses, doubles, delays and corrupts as the
// input says, repeats what a gateway said long ago, and forges what none ever said. What leaves the far one must be
// what a host sent, byte for byte, or what the link changed as it changed it: never more of it than came or can have
// been rebuilt, never another packet, and all that came whole.
// Byte 0 has the IP version, where PSNs begin and how fast they come, and whether the link's actions repeat; then come
// the options of both ends, the number of the host's steps and the steps, of a byte each; the rest is what the link
// does to each packet.
#include "tests/fuzz/lowar_judge.h"

namespace {

using namespace rocebox;
using namespace rocebox::fuzz::lowar_bed;
using fuzz::Input;
using fuzz::require;

constexpr unsigned kStepsMax = 40;
constexpr Nanos kDelay = 10 * kMicrosecond;
constexpr std::size_t kEthernet = 14;

/// What the link does to a packet: the lower half of a byte. The upper half says how far or how much.
enum Action : std::uint8_t {
  kPass,
  kLose = 3,
  kDouble,
  kLate,
  kCorrupt,
  kPause,
  kRepeat,  ///< what a gateway said before comes again, behind this packet; so do the others
  kBend,
  kForgeRepair,
  kProve,
  kForgeNegotiation,
  kBurst,
  kDoubleLate,
  kForgeRequest
};

class Crossings {
 public:
  Crossings(const lowar::Config& near, const lowar::Config& far, Hosts& hosts, Forger& forger, Random& random,
            Input& actions, bool repeat)
      : near_config_(near),
        far_config_(far),
        near_(near),
        far_(far),
        hosts_(hosts),
        forger_(forger),
        random_(random),
        actions_(actions),
        first_action_(actions.at()),
        repeat_(repeat),
        judge_(hosts, near.adapt) {}

  void run(Nanos spacing) {
    Nanos clock = 0;
    auto lowar = hosts_.lowar.begin();
    for (std::size_t i = 0; i < hosts_.sent.size(); i++) {
      advance(clock += spacing);
      now_ = clock;
      for (; lowar != hosts_.lowar.end() && lowar->first == i; ++lowar)
        require(near_.send(now_, kHost, lowar->second).empty(), "LoWAR packets of a host end here");
      near_leaves(near_.send(now_, kHost, hosts_.sent[i]));
    }
    advance(kNever);
    require(near_.end().empty(), "the near gateway keeps nothing back");
    far_leaves(far_.end());
    judge_.judge(got_, far_);
    a_fresh_stream_is_protected();
  }

 private:
  using Kind = Crossing::Kind;

  // What the link does.
  std::uint8_t act() {
    if (actions_.ended() && repeat_) actions_.go_to(first_action_);
    return actions_.take();
  }
  void put(Frame bytes, Nanos late = 0, Kind kind = Kind::kSent) {
    line_ = std::max(line_ + kMicrosecond, now_ + kDelay);
    to_far_.emplace(line_ + late, Crossing{std::move(bytes), kind});
  }
  void forge(Frame bytes, Kind kind = Kind::kForged) {
    judge_.forged = true;
    put(std::move(bytes), 0, kind);
  }
  void cross(const Frame& frame) {
    const View view(frame);
    if (view.is_lowar()) remember(frame, view);
    const std::uint8_t action = burst_ > 0 ? std::uint8_t{kLose} : act();
    burst_ -= burst_ > 0;
    const unsigned what = action % 16, more = action / 16;
    judge_.touched |= what >= kLose && what != kPause;
    judge_.in_order &= view.is_lowar() || (what != kDouble && what != kLate && what != kDoubleLate);
    switch (what) {
      case kLose:
        return;
      case kDouble:
        put(frame);
        return put(frame);
      case kLate:
        return put(frame, (1 + more * more) * kMicrosecond);
      case kCorrupt: {
        const std::size_t where = act() * 256u;
        return put(corrupted(frame, view, where + act()), 0, Kind::kChanged);
      }
      case kPause:
        line_ = std::max(line_, now_ + kDelay) + more * 50 * kMicrosecond;
        return put(frame);
      case kBurst:
        burst_ = more;
        return;
      case kDoubleLate:
        put(frame);
        return put(frame, (1 + more * more) * kMicrosecond);
      default:
        put(frame);
        add(what, more, view);
    }
  }
  // Behind a packet, what was said before, and what never was.
  void add(unsigned what, unsigned more, const View& view) {
    const std::uint32_t qpn = kFirstQpn + (view.qpn - kFirstQpn) % kStreams;
    if (what == kRepeat && !said_.empty()) {
      put(said_[said_.size() - 1 - act() % said_.size()]);
    } else if (what == kBend && !said_.empty()) {
      forge(forger_.bent(said_[said_.size() - 1 - more % said_.size()]), Kind::kSent);
    } else if (what == kForgeRepair) {
      forge(forger_.repair(qpn, view.psn));
    } else if (what == kProve) {
      auto [data, repair] = forger_.proven(qpn, view.psn, 64u << more % 8);
      judge_.may_leave(std::move(data));
      forge(std::move(repair));
    } else if (what == kForgeNegotiation) {
      forge(forger_.negotiation(qpn, view.psn, token_));
    } else if (what == kForgeRequest) {
      forge_request(more, qpn, view.psn);
    }
  }
  // To the near gateway, from somewhere on the link; or from the far host, whose gateway lets none pass.
  void forge_request(unsigned more, std::uint32_t qpn, std::uint32_t psn) {
    const unsigned kind = asked_.empty() ? 0 : more % 4;
    Frame frame = kind == 0 ? forger_.negotiation(qpn, psn, token_) : asked_.back();
    if (kind == 1) frame = forger_.bent(frame);
    if (kind == 2) frame = asked_[random_.below(static_cast<unsigned>(asked_.size()))];
    if (more >= 8) return far_leaves(far_.send(now_, kHost, frame));
    judge_.forged |= kind < 2;
    to_near_.emplace(now_ + kDelay, std::move(frame));
  }
  void remember(const Frame& frame, const View& view) {
    said_.push_back(frame);
    const auto header = lowar::parse_negotiation(lowar_bytes(frame, view));
    if (header && header->token) token_ = header->token;
  }
  // One bit. Ethernet's header has a check of its own; so has IPv4's, whose loss would show in what is rebuilt.
  static Frame corrupted(Frame bytes, const View& view, std::size_t where) {
    const std::size_t from = view.is_lowar() ? view.bth_offset : kEthernet;
    bytes[from + where / 8 % (bytes.size() - from)] ^= static_cast<std::uint8_t>(1u << where % 8);
    return bytes;
  }

  // Everything up to a time, in its order.
  void advance(Nanos until) {
    for (;;) {
      const Nanos far_at = to_far_.empty() ? kNever : to_far_.begin()->first;
      const Nanos near_at = to_near_.empty() ? kNever : to_near_.begin()->first;
      const Nanos at = std::min(far_at, near_at);
      if (at == kNever || at > until) return;
      now_ = at;
      if (at == far_at) {
        const Crossing crossing = std::move(to_far_.extract(to_far_.begin()).mapped());
        judge_.arrived(crossing);
        far_leaves(far_.send(now_, kLink, crossing.bytes));
      } else {
        near_leaves(near_.send(now_, kLink, to_near_.extract(to_near_.begin()).mapped()));
      }
    }
  }
  void near_leaves(std::vector<Left> packets) {
    for (const Left& left : packets) {
      require(left.port == kLink, "no data comes from the far host");
      cross(left.bytes);
    }
  }
  void far_leaves(std::vector<Left> packets) {
    for (Left& left : packets) {
      if (left.port == kHost) {
        got_.push_back(std::move(left.bytes));
        continue;
      }
      require(judge_.forged || (near_config_.adapt && far_config_.adapt), "nobody asks who does not adapt");
      asked_.push_back(left.bytes);
      const unsigned what = act() % 16;
      if (what != kLose) to_near_.emplace(now_ + kDelay, left.bytes);
      if (what == kDouble) to_near_.emplace(now_ + kDelay, left.bytes);
    }
  }

  // However the others ended: nothing of them is left that could be in its way. Not where a forger has left streams.
  void a_fresh_stream_is_protected() {
    const std::int64_t c_max =
        near_config_.adapt ? std::min<std::int64_t>(near_config_.units, lowar::kInterleavingMax) : near_config_.c;
    const std::int64_t units = (kStreams + 1) * c_max;
    if (judge_.forged || far_config_.units < units) return;
    const std::uint64_t without_unit = near_.count("encode_unprotected_units");
    now_ += 10 * kSecond;
    const std::vector<Frame> frames = hosts_.fresh_message();
    std::vector<Frame> got;
    for (const Frame& frame : frames)
      for (const Left& left : near_.send(now_ += kMicrosecond, kHost, frame))
        if (left.bytes != frames[1])
          for (Left& out : far_.send(now_, kLink, left.bytes))
            if (out.port == kHost) got.push_back(std::move(out.bytes));
    for (Left& out : far_.end()) got.push_back(std::move(out.bytes));
    if (near_config_.units < units && near_.count("encode_unprotected_units") != without_unit) return;
    require(got == frames, "a fresh stream is protected");
  }

  const lowar::Config &near_config_, &far_config_;
  Gateway near_, far_;
  Hosts& hosts_;
  Forger& forger_;
  Random& random_;
  Input& actions_;
  const std::size_t first_action_;
  const bool repeat_;
  Judge judge_;
  unsigned burst_ = 0;
  Nanos now_ = 0, line_ = 0;
  std::multimap<Nanos, Crossing> to_far_;
  std::multimap<Nanos, Frame> to_near_;
  std::vector<Frame> said_, asked_, got_;
  std::uint32_t token_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kSizes.mebibytes() + 64);
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  const std::uint8_t first = input.take();
  const lowar::Config near = draw_config(input), far = draw_config(input);
  Random random;
  Forger forger(first & 1 ? 6 : 4, random);
  Hosts hosts(forger, random, first & 2 ? 0xFFFFF8 : 100);
  for (unsigned steps = input.below(kStepsMax + 1); steps > 0; steps--) hosts.step(input.take());
  Crossings(near, far, hosts, forger, random, input, (first & 4) != 0)
      .run(first & 8 ? 20 * kMicrosecond : kMicrosecond);
  require(pool->in_use() == 0, "all packets are back");
  return 0;
}
