// SPDX-License-Identifier: BSD-3-Clause
// Two NICs with connected queue pairs of all services and work under way, and somebody on the wire between them who
// drops, repeats, holds back, changes and forges packets, while their hosts post, reset, destroy and take memory back.
// Three bytes of the input choose how both are set up; then come steps: what, where, and what that takes. Whatever
// comes, memory changes and is seen only where somebody has the right to, and every work request completes once, in
// order.
#include "tests/fuzz/nic_forger.h"
#include "tests/fuzz/nic_hosts.h"

namespace {

using namespace rocebox;
using namespace rocebox::fuzz::nic_bed;
using fuzz::Input;
using fuzz::require;

constexpr unsigned kStepsMax = 80;
constexpr std::size_t kSeenMax = 8;
constexpr Nanos kRest = 2 * kSecond;  // longer than all retries of one request

NicSetup draw_nic(Input& input) {
  const std::uint8_t drawn = input.take();
  const auto recovery = static_cast<nic_model::Recovery>(drawn & 3);
  // The others count packets in the MSN, and have no credits.
  return {recovery, (drawn & 4) != 0, (drawn & 8) && recovery == nic_model::Recovery::kGoBackN, (drawn & 16) != 0};
}

HostSetup draw_hosts(Input& input) {
  static constexpr std::uint32_t kMtus[] = {256, 1024, 4096, 256}, kPsns[] = {0xFFFFF0, 0, 0x100, 0x7FFFFA};
  static constexpr std::uint8_t kRetries[] = {7, 1, 0, 3}, kRnrRetries[] = {0, 3, 6, 1};
  static constexpr unsigned kAccess[] = {Arena::kAll, Arena::kAll, IBV_ACCESS_REMOTE_READ,
                                         Arena::kAll & ~IBV_ACCESS_REMOTE_READ};
  const std::uint8_t one = input.take(), two = input.take();
  HostSetup setup;
  setup.connect.mtu = kMtus[one & 3];
  setup.connect.psn = kPsns[one >> 2 & 3];
  setup.connect.access = kAccess[one >> 4 & 3];
  setup.connect.rd_atomic = one & 64 ? 2 : 16;
  setup.connect.timeout = 8;
  setup.connect.retry_cnt = kRetries[two & 3];
  setup.connect.rnr_retry = kRnrRetries[two >> 2 & 3];
  setup.cq_entries = two & 16 ? 16 : 256;
  setup.is_lazy = two & 32;
  return setup;
}

class World {
 public:
  World(Input& input, const NicSetup& nic, const HostSetup& hosts)
      : input_(input),
        bed_(nic, [this](unsigned side, Packet packet) { look(side, packet); }),
        near_(bed_, 0, nic, hosts),
        far_(bed_, 1, nic, hosts),
        forger_(input, nic.header_only) {
    for (unsigned side = 0; side < 2; side++)
      for (unsigned pair = 0; pair < kPairs; pair++)
        sides_[side]->call([&](nic_model::Host& host) {
          sides_[side]->connect(host, pair, *sides_[1 - side]);
          for (unsigned i = 0; i < 4; i++)
            sides_[side]->post_receive(host, pair, 2048 * i, 2048, sides_[side]->arena().key(kLocal));
        });
  }

  void step() {
    const unsigned drawn = input_.take();
    const unsigned side = drawn >> 7, pair = input_.below(kPairs);
    switch (drawn & 15) {
      default:
        return inject(side, pair);
      case 4:
        return bend(side);
      case 5:
        return bed_.add_fates(side, static_cast<Bed::Fate>(input_.below(static_cast<unsigned>(Bed::Fate::kCount))),
                              1 + input_.below(8));
      case 6:
        return input_.below(2) ? bed_.release(side) : bed_.cut(side, input_.below(2));
      case 7:
        return bed_.advance(Nanos{100} << input_.below(16));
      case 8:
      case 9:
      case 10:
      case 11:
        return sides_[side]->call([&](nic_model::Host& host) { post_send(host, side, pair); });
      case 12:
        return sides_[side]->call([&](nic_model::Host& host) { post_receive(host, side, pair); });
      case 13:
        return sides_[side]->poll();
      case 14:
        return modify(side, pair);
      case 15:
        return sides_[side]->call([&](nic_model::Host& host) { change_memory(host, side, pair); });
    }
  }
  void check() {
    for (Side* side : sides_) side->require_sound();
    bed_.require_conservation();
  }
  void end() {
    for (unsigned side = 0; side < 2; side++) bed_.release(side), bed_.cut(side, false), bed_.forget_fates(side);
    for (Side* side : sides_) side->poll();
    bed_.advance(kRest);
    for (Side* side : sides_) side->poll(), side->require_progress();
    check();
    const bool fails = input_.below(2);
    for (Side* side : sides_)
      side->call([&](nic_model::Host& host) {
        for (unsigned pair = 0; fails && pair < kPairs; pair++) side->move(host, pair, IBV_QPS_ERR);
      });
    for (Side* side : sides_) side->poll();
    check();
    for (Side* side : sides_)
      side->call([&](nic_model::Host& host) {
        for (unsigned pair = 0; pair < kPairs; pair++) side->destroy(host, pair);
      });
    bed_.advance(kRest);
    check();
    require(bed_.is_quiet(), "without queue pairs no timer is left");
    require(pool->in_use() == 0, "all packets are back");
  }

 private:
  void look(unsigned side, Packet packet) {
    require(!holds_secret(packet.data(), packet.size()), "nobody is told what he may not read");
    auto& seen = seen_[side];
    if (seen.size() >= kSeenMax) seen.erase(seen.begin());
    seen.push_back({{packet.data(), packet.data() + packet.size()}, packet.wire_bytes()});
  }
  void inject(unsigned side, unsigned pair) {
    Side& victim = *sides_[side];
    Forged forged = forger_.packet(side, pair, victim, *sides_[1 - side]);
    bed_.settle();
    const auto before = victim.state();
    bed_.inject(side, std::move(forged.packet));
    require(!forged.is_strange || victim.state() == before, "what is no peer's changes nothing");
  }
  void bend(unsigned side) {
    const auto& seen = seen_[1 - side];
    if (seen.empty()) return;
    const Seen one = seen[input_.below(static_cast<unsigned>(seen.size()))];
    bed_.settle();
    bed_.inject(side, forger_.bent(one.bytes, one.wire_bytes));
  }
  std::uint32_t draw_key(unsigned side) {
    const std::uint8_t drawn = input_.take();
    return sides_[side]->arena().key(drawn < 0xF0 ? kLocal : static_cast<Zone>(drawn % kZones));
  }
  void post_receive(nic_model::Host& host, unsigned side, unsigned pair) {
    static constexpr std::uint32_t kBytes[] = {2048, 4096, 8, 0, 300, 1100};
    sides_[side]->post_receive(host, pair, 8u * input_.take(), input_.one_of(kBytes), draw_key(side));
  }
  void post_send(nic_model::Host& host, unsigned side, unsigned pair) {
    static constexpr ibv_wr_opcode kOpcodes[] = {IBV_WR_SEND,          IBV_WR_RDMA_WRITE,
                                                 IBV_WR_RDMA_READ,     IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
                                                 IBV_WR_RDMA_READ,     IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                 IBV_WR_SEND_WITH_INV, IBV_WR_BIND_MW,
                                                 IBV_WR_LOCAL_INV,     IBV_WR_SEND};
    Side &own = *sides_[side], &peer = *sides_[1 - side];
    const bool is_datagram = own.qp(pair).is(IBV_QPT_UD);
    ibv_send_wr request{};
    const std::uint8_t drawn = input_.take(), flags = input_.take();
    request.opcode = is_datagram && drawn < 0xF0 ? IBV_WR_SEND : kOpcodes[drawn % std::size(kOpcodes)];
    request.send_flags = (flags & 3 ? unsigned{IBV_SEND_SIGNALED} : 0u) | (flags & 4 ? IBV_SEND_SOLICITED : 0u) |
                         ((flags & 0x18) == 0x18 ? IBV_SEND_FENCE : 0u);
    const bool is_atomic = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint32_t mtu = own.setup().connect.mtu, offset = 8u * input_.take(), zones = input_.take();
    const std::uint32_t lengths[] = {2 * mtu + 5, 8, mtu, 3 * mtu, 0, std::min(4000u, 16 * mtu), mtu + 1, 1};
    const std::uint32_t bytes =
        is_atomic ? 8
                  : std::min({lengths[flags >> 5], is_datagram ? mtu : UINT32_MAX, std::uint32_t{kZoneBytes} - 2048});
    ibv_sge sge{own.arena().address(kLocal) + offset, bytes, draw_key(side)};
    if ((flags & 0x18) == 8 && bytes <= 64) {  // inline data are where the host has them
      request.send_flags |= IBV_SEND_INLINE;
      sge.addr = reinterpret_cast<std::uintptr_t>(own.arena().bytes(kOpen));
      if (!own.arena().is_registered(kOpen)) return;
    }
    request.sg_list = &sge;
    request.num_sge = bytes ? 1 : 0;
    const Zone zone = zones < 0xC0 ? kOpen : static_cast<Zone>(zones % kZones);
    request.wr.rdma.remote_addr = peer.arena().address(zone) + (zones & 1 ? 1024u : 0u);
    request.wr.rdma.rkey = zones % 8 == 7 ? peer.window(pair) : peer.arena().key(zone);
    if (is_atomic) {
      request.wr.atomic.remote_addr = request.wr.rdma.remote_addr;
      request.wr.atomic.rkey = request.wr.rdma.rkey;
      request.wr.atomic.compare_add = flags;
    }
    if (request.opcode == IBV_WR_SEND_WITH_INV) request.invalidate_rkey = peer.window(pair);
    if (request.opcode == IBV_WR_LOCAL_INV) request.invalidate_rkey = own.window(pair);
    ibv_mw window{};
    ibv_mr region{};
    if (request.opcode == IBV_WR_BIND_MW) bind(own, pair, request, window, region);
    const bool is_answered = request.opcode == IBV_WR_RDMA_READ || is_atomic;
    if (is_answered && sge.lkey == own.arena().key(kLocal) && own.arena().is_registered(kLocal))
      own.arena().allow(kLocal, offset, bytes);
    const nic_model::AddressHandle address =
        host.create_ah(mac_of(1 - side), address_of(1 - side), peer.qp(pair).number(), kQkey);
    own.post_send(host, pair, request, is_datagram ? &address : nullptr);
  }
  void bind(Side& own, unsigned pair, ibv_send_wr& request, ibv_mw& window, ibv_mr& region) {
    request.num_sge = 0;
    window.rkey = own.window(pair);
    region.lkey = own.arena().key(kWindowed);
    request.bind_mw.mw = &window;
    request.bind_mw.rkey = ibv_inc_rkey(window.rkey);
    request.bind_mw.bind_info = {&region, own.arena().address(kWindowed) + kWindowAt, kWindowBytes,
                                 IBV_ACCESS_REMOTE_WRITE};
    if (window.rkey && own.arena().is_registered(kWindowed) && input_.below(4)) {
      own.arena().allow_window();
      own.set_window(pair, request.bind_mw.rkey);
    }
  }
  void modify(unsigned number, unsigned pair) {
    Side &side = *sides_[number], &peer = *sides_[1 - number];
    const unsigned how = input_.below(8);
    side.call([&](nic_model::Host& host) {
      if (how == 0) side.move(host, pair, IBV_QPS_ERR);
      if (how == 1) side.move(host, pair, IBV_QPS_SQD);
      if (how == 2) side.move(host, pair, IBV_QPS_RTS);
      if (how >= 5) side.make_anew(host, pair);
      if (how == 3 || how == 4) side.reset(host, pair);
      if (how >= 4) side.connect(host, pair, peer);
    });
    if (how < 6) return;
    peer.call([&](nic_model::Host& host) {
      peer.reset(host, pair);
      peer.connect(host, pair, side);
    });
  }
  void change_memory(nic_model::Host& host, unsigned side, unsigned pair) {
    Arena& arena = sides_[side]->arena();
    const unsigned how = input_.take();
    const auto zone = static_cast<Zone>(how % 8 % kZones);
    if (how & 0x80) {
      host.memory().invalidate(sides_[side]->window(pair), sides_[side]->qp(pair).accessor());
    } else if (arena.is_registered(zone)) {
      arena.close(zone);
    } else {
      arena.open(zone);
    }
  }

  struct Seen {
    std::vector<std::uint8_t> bytes;
    std::uint32_t wire_bytes;
  };
  Input& input_;
  std::vector<Seen> seen_[2];
  Bed bed_;
  Side near_, far_;
  Side* const sides_[2] = {&near_, &far_};
  Forger forger_;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  start_eal(kSizes.mebibytes());
  static Pool the_pool(kSizes);
  pool = &the_pool;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  const NicSetup nic = draw_nic(input);
  const HostSetup hosts = draw_hosts(input);
  {
    World world(input, nic, hosts);
    for (unsigned steps = 0; steps < kStepsMax && !input.ended(); steps++) {
      world.step();
      world.check();
    }
    world.end();
  }
  require(pool->in_use() == 0, "all packets are back");
  return 0;
}
