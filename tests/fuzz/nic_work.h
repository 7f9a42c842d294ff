// SPDX-License-Identifier: BSD-3-Clause
// What the hosts of nic_fuzz.cc post, and what they do to queue pairs and memory in the midst of it.
#pragma once
#include "tests/fuzz/nic_hosts.h"

namespace rocebox::fuzz::nic_bed {

class Work {
 public:
  Work(Input& input, Side& near, Side& far) : input_(input), sides_{&near, &far} {}

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
    Side& own = *sides_[side];
    const bool is_datagram = own.qp(pair).is(IBV_QPT_UD);
    ibv_send_wr request{};
    const std::uint8_t drawn = input_.take(), flags = input_.take();
    request.opcode = is_datagram && drawn < 0xF0 ? IBV_WR_SEND : kOpcodes[drawn % std::size(kOpcodes)];
    request.send_flags = (flags & 3 ? unsigned{IBV_SEND_SIGNALED} : 0u) | (flags & 4 ? IBV_SEND_SOLICITED : 0u) |
                         ((flags & 0x18) == 0x18 ? IBV_SEND_FENCE : 0u);
    const bool is_atomic = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint32_t mtu = own.setup().connect.mtu, offset = 8u * input_.take();
    const std::uint32_t lengths[] = {2 * mtu + 5, 8, mtu, 3 * mtu, 0, std::min(4000u, 16 * mtu), mtu + 1, 1};
    const std::uint32_t bytes =
        is_atomic ? 8
                  : std::min({lengths[flags >> 5], is_datagram ? mtu : UINT32_MAX, std::uint32_t{kZoneBytes} - 2048});
    set_remote(request, side, pair, input_.take(), flags);
    ibv_sge sge{own.arena().address(kLocal) + offset, bytes, draw_key(side)};
    if ((flags & 0x18) == 8 && bytes <= 64) {  // inline data are where the host has them
      request.send_flags |= IBV_SEND_INLINE;
      sge.addr = reinterpret_cast<std::uintptr_t>(own.arena().bytes(kOpen));
      if (!own.arena().is_registered(kOpen)) return;
    }
    request.sg_list = &sge;
    request.num_sge = bytes ? 1 : 0;
    ibv_mw window{};
    ibv_mr region{};
    if (request.opcode == IBV_WR_BIND_MW) bind(own, pair, request, window, region);
    const bool is_answered = request.opcode == IBV_WR_RDMA_READ || is_atomic;
    if (is_answered && sge.lkey == own.arena().key(kLocal) && own.arena().is_registered(kLocal))
      own.arena().allow(kLocal, offset, bytes);
    nic_model::AddressHandle address;
    if (is_datagram) address = address_for(host, side, pair, drawn);
    own.post_send(host, pair, request, is_datagram ? &address : nullptr);
  }
  /// Another state, another life, or another completion queue.
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
    const bool is_within = kKinds[pair].way == Way::kWithin;
    Side& other = is_within ? side : peer;
    const unsigned other_pair = is_within ? kKinds[pair].peer : pair;
    other.call([&](nic_model::Host& host) {
      other.reset(host, other_pair);
      other.connect(host, other_pair, is_within ? peer : side);
    });
  }
  void change_memory(nic_model::Host& host, unsigned side, unsigned pair) {
    Arena& arena = sides_[side]->arena();
    const unsigned how = input_.take();
    const auto zone = static_cast<Zone>(how % 8 % kZones);
    if (how == 0x7F) {
      arena.compound();
    } else if (how & 0x80) {
      host.memory().invalidate(sides_[side]->window(pair), sides_[side]->qp(pair).accessor());
    } else if (arena.is_registered(zone)) {
      arena.close(zone);
    } else {
      arena.open(zone);
    }
  }
  /// Completion queues, the shared receive queue, groups.
  void change_queues(nic_model::Host& host, unsigned side, unsigned pair) {
    static constexpr std::uint32_t kCounts[] = {0, 3, 16, 0, 2, 200}, kPeriods[] = {0, 5, 0, 100, 65535};
    Side& own = *sides_[side];
    const std::uint8_t drawn = input_.take();
    WatchedCq& cq = own.cq(drawn >> 7);
    nic_model::Qp& qp = own.qp(pair);
    switch (drawn % 8) {
      case 0:
      case 1:
        return cq.moderate(host, input_.one_of(kCounts), input_.one_of(kPeriods));
      case 2:
        return own.shared().set_limit(input_.below(kReceiveRequests + 1));
      case 3:
        return own.setup().is_lazy ? void() : cq.arm(host, input_.below(2));
      case 4:
        require(host.destroy_srq(*own.shared().queue()) == EBUSY, "a shared receive queue that is in use stays");
        own.renew_cq(host, drawn >> 7);
        for (const unsigned one : own.in_use())
          if (cq_of(one) == drawn >> 7) own.connect(host, one, *sides_[1 - side]);
        return;
      case 5:
        return void(host.attach_mcast(qp, group_of(input_.below(kGroups))));
      case 6:
        return void(host.detach_mcast(qp, group_of(input_.below(kGroups))));
      case 7:
        if (!qp.is(IBV_QPT_UC)) return;
        if (drawn & 64) return host.clear_group_window(qp, input_.below(8));
        return own.set_group_windows(host, qp);
    }
  }

 private:
  std::uint32_t draw_key(unsigned side) {
    const std::uint8_t drawn = input_.take();
    return sides_[side]->arena().key(drawn < 0xF0 ? kLocal : static_cast<Zone>(drawn % kZones));
  }
  Side& peer_of(unsigned side, unsigned pair) const {
    return *sides_[kKinds[pair].way == Way::kWithin ? side : 1 - side];
  }
  void set_remote(ibv_send_wr& request, unsigned side, unsigned pair, std::uint8_t drawn, std::uint8_t flags) const {
    Side& peer = peer_of(side, pair);
    const unsigned peer_pair = kKinds[pair].way == Way::kWithin ? kKinds[pair].peer : pair;
    const Zone zone = drawn < 0xC0 ? kOpen : static_cast<Zone>(drawn % kZones);
    request.wr.rdma.remote_addr = peer.arena().address(zone) + (drawn & 1 ? 1024u : 0u);
    request.wr.rdma.rkey = drawn % 8 == 7 ? peer.window(peer_pair) : peer.arena().key(zone);
    if (drawn % 16 == 6) {
      const auto compound = static_cast<Compound>(drawn / 16 % kCompounds);
      request.wr.rdma.remote_addr = peer.arena().address(compound) + drawn / 64 * kPieceBytes;
      request.wr.rdma.rkey = peer.arena().key(compound);
    }
    if (kKinds[pair].way == Way::kGroup) {  // an offset in a window
      request.wr.rdma.remote_addr = drawn & 8 ? 8u * drawn : 0u;
      request.wr.rdma.rkey = drawn < 0xC0 ? 1 : drawn % 8;
    }
    if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      const ibv_send_wr of_write = request;
      request.wr.atomic.remote_addr = of_write.wr.rdma.remote_addr;
      request.wr.atomic.rkey = of_write.wr.rdma.rkey;
      request.wr.atomic.compare_add = flags;
    }
    if (request.opcode == IBV_WR_SEND_WITH_INV) request.invalidate_rkey = peer.window(peer_pair);
    if (request.opcode == IBV_WR_LOCAL_INV) request.invalidate_rkey = sides_[side]->window(pair);
  }
  // Of datagrams: the same one over there, or a group.
  nic_model::AddressHandle address_for(nic_model::Host& host, unsigned side, unsigned pair, std::uint8_t drawn) const {
    nic_model::AddressHandle address;
    if (kKinds[pair].way != Way::kGroup && drawn % 4 != 3)
      return host.create_ah(mac_of(1 - side), address_of(1 - side), sides_[1 - side]->qp(pair).number(), kQkey);
    require(host.create_ah(address, group_of(drawn / 4 % kGroups), 0, kQkey) == 0, "the way to a group is known");
    return address;
  }
  void bind(Side& own, unsigned pair, ibv_send_wr& request, ibv_mw& window, ibv_mr& region) {
    const std::uint8_t drawn = input_.take();
    request.num_sge = 0;
    window.rkey = own.window(pair);
    region.lkey = own.arena().key(drawn < 0xC0 ? kWindowed : static_cast<Zone>(drawn % kZones));
    request.bind_mw.mw = &window;
    request.bind_mw.rkey = ibv_inc_rkey(window.rkey);
    const unsigned access = IBV_ACCESS_REMOTE_WRITE | (drawn & 16 ? unsigned{IBV_ACCESS_ZERO_BASED} : 0u);
    request.bind_mw.bind_info = {&region, own.arena().address(kWindowed) + kWindowAt,
                                 drawn & 8 ? kWindowBytes / 2 : kWindowBytes, access};
    if (window.rkey && own.arena().is_registered(kWindowed) && drawn % 4) {
      own.arena().allow_window();
      own.set_window(pair, request.bind_mw.rkey);
    }
  }

  Input& input_;
  Side* const sides_[2];
};

}  // namespace rocebox::fuzz::nic_bed
