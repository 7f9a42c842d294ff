// SPDX-License-Identifier: BSD-3-Clause
// Two NICs with queue pairs of all services and work under way, to each other, within one NIC, to multicast groups and
// connected by RDMA CM; and somebody on the wire between them who drops, repeats, holds back, changes and forges
// packets of all kinds, while their hosts post, connect, reset, destroy and take memory back. Five bytes of the input
// choose how both are set up; then come steps: what, where, and what that takes. Whatever comes, memory changes and is
// seen only where somebody has the right to, every work request completes once, in order, and nothing is left in the
// end.
#include "tests/fuzz/nic_forger.h"
#include "tests/fuzz/nic_frames.h"
#include "tests/fuzz/nic_mads.h"
#include "tests/fuzz/nic_work.h"

namespace {

using namespace rocebox;
using namespace rocebox::fuzz::nic_bed;
using fuzz::Input;
using fuzz::require;

constexpr unsigned kStepsMax = 80;
constexpr std::size_t kSeenMax = 8;
constexpr Nanos kRest = 2 * kSecond;            // longer than all retries of one request
constexpr Nanos kLongRest = 20 * 60 * kSecond;  // longer than what others can make RDMA CM wait

HostSetup draw_hosts(Input& input) {
  static constexpr std::uint32_t kMtus[] = {256, 1024, 4096, 256}, kPsns[] = {0xFFFFF0, 0, 0x100, 0x7FFFFA};
  static constexpr std::uint8_t kRetries[] = {7, 1, 0, 3}, kRnrRetries[] = {0, 3, 6, 1};
  static constexpr unsigned kAccess[] = {Arena::kAll, Arena::kAll, IBV_ACCESS_REMOTE_READ,
                                         Arena::kAll & ~IBV_ACCESS_REMOTE_READ};
  const std::uint8_t one = input.take(), two = input.take(), three = input.take();
  HostSetup setup;
  setup.connect.mtu = kMtus[one & 3];
  setup.connect.psn = kPsns[one >> 2 & 3];
  setup.connect.access = kAccess[one >> 4 & 3];
  setup.connect.rd_atomic = one & 64 ? 2 : 16;
  setup.connect.timeout = 8;
  setup.connect.retry_cnt = kRetries[two & 3];
  setup.connect.rnr_retry = kRnrRetries[two >> 2 & 3];
  setup.cq_entries[0] = two & 16 ? 16 : 256;
  setup.is_lazy = two & 32;
  setup.ways = three & 7;
  setup.cq_entries[1] = three & 8 ? 8 : 128;
  setup.accepts = three & 16, setup.destroys = three & 32, setup.renews_cq = three & 64;
  setup.differs = three & 128;
  return setup;
}

class World {
 public:
  World(Input& input, const NicSetup& nic, const HostSetup& hosts)
      : input_(input),
        bed_(nic, pairs_of(hosts.ways).size(), [this](unsigned side, Packet packet) { look(side, packet); }),
        near_(bed_, 0, nic, hosts),
        far_(bed_, 1, nic, hosts),
        forger_(input, nic.header_only),
        mad_forger_(input),
        frame_forger_(input),
        work_(input, near_, far_) {
    for (unsigned side = 0; side < 2; side++)
      sides_[side]->call([&](nic_model::Host& host) {
        for (const unsigned pair : pairs()) {
          sides_[side]->connect(host, pair, *sides_[1 - side]);
          for (unsigned i = 0; i < 4; i++)
            sides_[side]->post_receive(host, pair, 2048 * i, 2048, sides_[side]->arena().key(kLocal));
        }
        if (hosts.ways & bit_of(Way::kByCm)) sides_[side]->listen(host);
      });
  }

  void step() {
    const unsigned drawn = input_.take();
    const unsigned side = drawn >> 7;
    const unsigned pair = pairs()[input_.take() % pairs().size()];
    if (drawn & 64) return step_of_more(drawn, side, pair);
    switch (drawn & 15) {
      default:
        return inject(side, pair);
      case 4:
        return bend(side, seen_[1 - side]);
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
        return sides_[side]->call([&](nic_model::Host& host) { work_.post_send(host, side, pair); });
      case 12:
        return sides_[side]->call([&](nic_model::Host& host) { work_.post_receive(host, side, pair); });
      case 13:
        return sides_[side]->poll();
      case 14:
        return work_.modify(side, pair);
      case 15:
        return sides_[side]->call([&](nic_model::Host& host) { work_.change_memory(host, side, pair); });
    }
  }
  void check() {
    for (Side* side : sides_) side->require_sound();
    bed_.require_conservation();
  }
  void end() {
    for (unsigned side = 0; side < 2; side++) bed_.release(side), bed_.cut(side, false), bed_.forget_fates(side);
    bed_.advance(kRest);
    for (Side* side : sides_) side->require_told(), side->poll();
    bed_.advance(kRest);
    for (Side* side : sides_) side->poll(), side->require_progress();
    check();
    const bool fails = input_.below(2);
    for (Side* side : sides_)
      side->call([&](nic_model::Host& host) {
        for (const unsigned pair : pairs())
          if (fails) side->move(host, pair, IBV_QPS_ERR);
      });
    for (Side* side : sides_) side->poll();
    check();
    for (Side* side : sides_) side->end();
    bed_.advance(kLongRest);
    check();
    for (Side* side : sides_) require(side->connections_held() == 0, "no connection is left");
    require(bed_.is_quiet(), "without queue pairs no timer is left");
    require(pool->in_use() == 0, "all packets are back");
  }

 private:
  struct Seen {
    std::vector<std::uint8_t> bytes;
    std::uint32_t wire_bytes;
  };
  using SeenOnes = std::vector<Seen>;

  const std::vector<unsigned>& pairs() const { return near_.in_use(); }
  void step_of_more(unsigned drawn, unsigned side, unsigned pair) {
    Side &own = *sides_[side], &peer = *sides_[1 - side];
    switch (drawn & 15) {
      case 0:
      case 1:
      case 2:
      case 3:
        return own.call([&](nic_model::Host& host) { manage(host, side); });
      case 4:
      case 5:
      case 6:
        return put(side, mad_forger_.packet(side, own, peer));
      case 7:
        return bend(side, mads_[1 - side]);
      case 8:
        return put_again(side);
      case 9:
      case 10:
        bed_.settle();
        return bed_.inject(side, frame_forger_.packet(side, pair, own, peer));
      case 11:
        for (unsigned times = 1 + input_.below(4); times > 0; times--) {
          bed_.settle();
          bed_.inject(side, forger_.notification(side, own.qp(pair)));
        }
        return;
      case 12:
      case 13:
        if (Meddler* meddler = bed_.meddler(side))
          meddler->tell({input_.take(), input_.take(), pair % 2 ? own.qp(pair).number() : 0});
        return;
      default:
        return own.call([&](nic_model::Host& host) { work_.change_queues(host, side, pair); });
    }
  }
  void look(unsigned side, Packet packet) {
    require(!holds_secret(packet.data(), packet.size()), "nobody is told what he may not read");
    keep(seen_[side], packet);
    if (packet.meta().status != ParseStatus::kRoce) return;
    if (roce::mad(packet)) return keep(mads_[side], packet);
    require(roce::addresses(packet).destination != address_of(side), "what is for the NIC itself does not leave");
  }
  static void keep(SeenOnes& seen, Packet packet) {
    if (seen.size() >= kSeenMax) seen.erase(seen.begin());
    seen.push_back({{packet.data(), packet.data() + packet.size()}, packet.wire_bytes()});
  }
  void inject(unsigned side, unsigned pair) { put(side, forger_.packet(side, pair, *sides_[side], *sides_[1 - side])); }
  void put(unsigned side, Forged forged) {
    bed_.settle();
    const auto before = sides_[side]->state();
    bed_.inject(side, std::move(forged.packet));
    require(!forged.is_strange || sides_[side]->state() == before, "what is no peer's changes nothing");
  }
  void bend(unsigned side, const SeenOnes& seen) {
    if (seen.empty()) return;
    const Seen one = seen[input_.below(static_cast<unsigned>(seen.size()))];
    bed_.settle();
    bed_.inject(side, forger_.bent(one.bytes, one.wire_bytes));
  }
  // A MAD comes again, as it was.
  void put_again(unsigned side) {
    const SeenOnes& seen = mads_[1 - side];
    if (seen.empty()) return;
    const Seen one = seen[input_.below(static_cast<unsigned>(seen.size()))];
    bed_.settle();
    bed_.inject(side, Forger::of(one.bytes, one.wire_bytes));
  }
  // What a host does with connections.
  void manage(nic_model::Host& host, unsigned side) {
    Side& own = *sides_[side];
    const std::uint8_t drawn = input_.take(), which = input_.take(), value = input_.take();
    if (!(own.setup().ways & bit_of(Way::kByCm))) return;
    const std::vector<std::uint8_t> data(value % 57, value);
    nic_model::ConnectionOptions options;
    options.private_data = data;
    options.responder_resources = value & 7, options.initiator_depth = value >> 3 & 3;
    options.retry_count = value & 7, options.rnr_retry_count = value >> 5;
    options.ack_timeout = value & 1 ? 8 : 0, options.path_mtu = 256u << (value >> 2) % 5;
    options.qkey = kQkey;
    Connections::Connection* one = own.connections().at(which % 16);
    if (drawn % 8 < 3)
      return own.ask(host,
                     drawn < 0xE0 ? address_of(1 - side)
                     : drawn & 1  ? kStranger
                                  : address_of(side),
                     static_cast<std::uint16_t>(1 + which % (kPorts + 1)), drawn, options);
    if (drawn % 8 == 7 && drawn >= 0xC0) return own.listen(host);
    if (!one) return;
    switch (drawn % 8) {
      case 3:
        return own.accept(host, *one, drawn >> 3, options);
      case 4:
        return own.connections().reject(host, *one, data);
      case 5:
      case 6:
        return own.connections().disconnect(host, *one);
      default:
        return own.connections().destroy(host, *one);
    }
  }

  Input& input_;
  SeenOnes seen_[2], mads_[2];
  Bed bed_;
  Side near_, far_;
  Side* const sides_[2] = {&near_, &far_};
  Forger forger_;
  MadForger mad_forger_;
  FrameForger frame_forger_;
  Work work_;
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
  const NicSetup nic = NicSetup::draw(input);
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
