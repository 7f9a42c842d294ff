// SPDX-License-Identifier: BSD-3-Clause
// The queue pairs of one side of nic_fuzz.cc with all that they use: one of each kind (nic_kinds.h) that is in use.
#pragma once
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "nic_model/host/connect.h"
#include "tests/fuzz/nic_bed.h"
#include "tests/fuzz/nic_memory.h"
#include "tests/fuzz/nic_queues.h"

namespace rocebox::fuzz::nic_bed {

inline constexpr std::uint32_t kQkey = 0x1234, kSendRequests = 16, kReceiveRequests = 16;
inline constexpr std::uint64_t kGroupWindowAt = 1024;  // of each group window, in its zone

/// What all queue pairs are connected with, and how hosts go on.
struct HostSetup {
  nic_model::ConnectOptions connect;
  std::uint32_t cq_entries[kCqs] = {256, 64};
  bool is_lazy = false;    ///< completions stay where they are until they are asked for
  bool accepts = false;    ///< whatever connection is asked for
  bool destroys = false;   ///< some connection whenever another one has an event
  bool renews_cq = false;  ///< in its own event, when it is overrun
  unsigned ways = 0;       ///< bits, beside kAcross
  bool differs = false;    ///< each reliable pair recovers in another way, the first as the NICs do
  bool lets_write() const {
    return (connect.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) || (ways & bit_of(Way::kByCm));
  }
};

class Pairs {
 public:
  struct Pair {
    nic_model::Qp* qp = nullptr;
    std::optional<Judge> judge;
    std::uint32_t window = 0;  // its key
    std::uint32_t life = 0;
  };

  Pairs(unsigned number, const HostSetup& setup) : number_(number), setup_(setup), in_use_(pairs_of(setup.ways)) {}

  void open(nic_model::Host& host, std::uint32_t program, bool header_only) {
    program_ = program;
    domain_ = host.alloc_pd();
    arena_.emplace(host.memory(), domain_, host.alloc_pd(), header_only, setup_.lets_write());
    arena_->compound();
    for (unsigned i = 0; i < kCqs; i++) make_cq(host, i);
    shared_.make(host, kReceiveRequests);
    for (const unsigned pair : in_use_) make(host, pair);
  }
  void close(nic_model::Host& host) {
    for (const unsigned pair : in_use_) destroy(host, pair);
    for (const WatchedCq& one : cqs_) loses_ = loses_ || one.cq->overrun();
    if (!loses_) shared_.require_whole(host);
    for (WatchedCq& one : cqs_) require(host.destroy_cq(*std::exchange(one.cq, nullptr)) == 0, "a CQ can go");
    shared_.destroy(host);
    arena_->give_back_compounds();
    for (unsigned zone = 0; zone < kZones; zone++)
      if (arena_->is_registered(static_cast<Zone>(zone))) arena_->close(static_cast<Zone>(zone));
    for (const std::uint32_t window : windows_) give_back(host, window);
    require(host.memory().regions() == 0, "no memory is left registered");
  }
  /// Destroys the queue pair, where it is, and makes another one.
  void make_anew(nic_model::Host& host, unsigned pair) {
    destroy(host, pair);
    make(host, pair);
  }
  void reset(nic_model::Host& host, unsigned pair) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RESET;
    require(host.modify_qp(*pairs_[pair].qp, attributes, IBV_QP_STATE) == 0, "any queue pair can be reset");
    forget(pairs_[pair]);
    live(pair);
  }
  int move(nic_model::Host& host, unsigned pair, ibv_qp_state to) {
    ibv_qp_attr attributes{};
    attributes.qp_state = to;
    return host.modify_qp(*pairs_[pair].qp, attributes, IBV_QP_STATE);
  }
  /// From RESET to RTS, to whom its kind says; `across` is the other side.
  void connect(nic_model::Host& host, unsigned pair, const Pairs& across) {
    nic_model::Qp& qp = *pairs_[pair].qp;
    const Kind& kind = kKinds[pair];
    if (kind.way == Way::kGroup) require(host.attach_mcast(qp, group_of(0)) == 0, "a group takes another one");
    if (qp.is(IBV_QPT_UD)) return require(nic_model::start_datagrams(host, qp, kQkey) == 0, "datagrams can be sent");
    if (kind.way == Way::kByCm) return;
    nic_model::Peer to{address_of(1 - number_), 0, setup_.connect.psn};
    if (kind.way == Way::kAcross) to.qpn = across.qp(pair).number();
    if (kind.way == Way::kWithin) to.address = address_of(number_), to.qpn = this->qp(kind.peer).number();
    if (kind.way == Way::kGroup) to.address = group_of(0), to.qpn = nic_model::kMulticastQpn;
    if (setup_.differs) recover_otherwise(host, qp, kind.way == Way::kWithin ? std::min(pair, kind.peer) : pair);
    require(nic_model::connect(host, qp, to, setup_.connect) == 0, "a queue pair can be connected");
    if (kind.way == Way::kGroup) set_group_windows(host, qp);
    nic_model::MemoryError error;
    pairs_[pair].window = host.memory().bind(windows_[pair], static_cast<std::uint8_t>(++variant_),
                                             arena_->key(kWindowed), arena_->address(kWindowed) + kWindowAt,
                                             kWindowBytes, IBV_ACCESS_REMOTE_WRITE, qp.accessor(), error);
    if (pairs_[pair].window) windows_[pair] = pairs_[pair].window, arena_->allow_window();
  }
  /// Where WRITEs to groups go, by number from 1: those of the first two may change something.
  void set_group_windows(nic_model::Host& host, nic_model::Qp& qp) {
    static constexpr Zone kZonesOf[] = {kOpen, kWriteOnly, kReadOnly, kForeign, kWindowed};
    for (unsigned i = 0; i < std::size(kZonesOf); i++)
      host.set_group_window(qp, {i + 1, arena_->key(kZonesOf[i]), arena_->address(kZonesOf[i]) + kGroupWindowAt});
  }
  void post_receive(nic_model::Host& host, unsigned pair, std::uint32_t offset, std::uint32_t bytes,
                    std::uint32_t key) {
    Pair& to = pairs_[pair];
    ibv_sge sge{arena_->address(kLocal) + offset, bytes, key};
    const bool shares = kKinds[pair].shares;
    ibv_recv_wr request{shares ? shared_.next() : to.judge->next_receive(), nullptr, &sge, 1};
    const bool taken = (shares ? host.post_receive(*shared_.queue(), &request, nullptr)
                               : host.post_receive(*to.qp, &request, nullptr)) == 0;
    if (!taken) return;
    if (arena_->is_registered(kLocal)) arena_->allow(kLocal, offset, bytes);
    if (shares)
      shared_.requests().requests.push_back({bytes});
    else
      to.judge->posted_receive(bytes);
  }
  void post_send(nic_model::Host& host, unsigned pair, ibv_send_wr request, const nic_model::AddressHandle* address) {
    Pair& of = pairs_[pair];
    request.wr_id = of.judge->next_send();
    // An error of an unreliable queue may complete it in this call: what was posted is known before.
    Judge before = *of.judge;
    of.judge->posted_send(request.send_flags & IBV_SEND_SIGNALED);
    if (host.post_send(*of.qp, &request, nullptr, address) != 0) of.judge = before;
  }
  /// A completion queue goes with all its queue pairs, and others come.
  void renew_cq(nic_model::Host& host, unsigned number) {
    loses_ = loses_ || cqs_[number].cq->overrun();
    for (const unsigned pair : in_use_) {
      if (cq_of(pair) != number) continue;
      require(host.destroy_cq(*cqs_[number].cq) == EBUSY, "a completion queue that is in use stays");
      destroy(host, pair);
    }
    require(host.destroy_cq(*cqs_[number].cq) == 0, "a completion queue that nobody uses can go");
    make_cq(host, number);
    for (const unsigned pair : in_use_)
      if (cq_of(pair) == number) make(host, pair);
  }
  void poll_in(nic_model::Host& host, nic_model::CompletionQueue& cq) {
    ibv_wc wc[8];
    for (int count; (count = host.poll(cq, wc)) > 0;)
      for (int i = 0; i < count; i++) {
        completions_++;
        Pair* const of = find(wc[i].qp_num);
        require(of != nullptr, "a completion is of a queue pair that there is");
        require(cqs_[cq_of(static_cast<unsigned>(of - pairs_))].cq == &cq, "it comes to its completion queue");
        of->judge->completed(wc[i]);
      }
  }

  unsigned number() const { return number_; }
  const std::vector<unsigned>& in_use() const { return in_use_; }
  nic_model::Qp& qp(unsigned pair) const { return *pairs_[pair].qp; }
  std::uint32_t life(unsigned pair) const { return pairs_[pair].life; }
  std::uint32_t window(unsigned pair) const { return pairs_[pair].window; }
  void set_window(unsigned pair, std::uint32_t key) { windows_[pair] = pairs_[pair].window = key; }
  Arena& arena() { return *arena_; }
  const HostSetup& setup() const { return setup_; }
  WatchedCq& cq(unsigned number) { return cqs_[number]; }
  SharedQueue& shared() { return shared_; }

 protected:
  Pair* find(std::uint32_t qpn) {
    const auto found = std::ranges::find_if(pairs_, [&](const Pair& one) { return one.qp && one.qp->number() == qpn; });
    return found == std::end(pairs_) ? nullptr : found;
  }

  const unsigned number_;
  const HostSetup setup_;
  const std::vector<unsigned> in_use_;
  std::uint32_t program_ = 0, domain_ = 0;
  std::optional<Arena> arena_;
  WatchedCq cqs_[kCqs];
  SharedQueue shared_;
  Pair pairs_[kPairs];
  std::uint64_t completions_ = 0;

 private:
  // Both ends by the same number.
  static void recover_otherwise(nic_model::Host& host, nic_model::Qp& qp, unsigned number) {
    nic_model::LossRecovery recovery = host.config().loss_recovery();
    recovery.how = static_cast<nic_model::Recovery>((static_cast<unsigned>(recovery.how) + number) & 3);
    if (number != 0) recovery.window = 5, recovery.retransmission_timeout = 700 * kMicrosecond;
    const bool goes = qp.is(IBV_QPT_RC) && !(host.config().credits && recovery.places_directly());
    require(host.modify_loss_recovery(qp, recovery) == (goes ? 0 : EINVAL),
            "a reliable queue pair recovers as it is told");
  }
  // Whether it was bound anew is the NIC's to know: the low 8 bits of its key may be others.
  static void give_back(nic_model::Host& host, std::uint32_t window) {
    if (!window) return;
    bool is_gone = false;
    for (unsigned variant = 0; variant < 256 && !is_gone; variant++)
      is_gone = host.memory().remove((window & ~0xFFu) | variant);
    require(is_gone, "a window can be given back");
  }
  void make_cq(nic_model::Host& host, unsigned number) {
    cqs_[number] = {};
    cqs_[number].cq = host.create_cq(setup_.cq_entries[number], program_);
    require(cqs_[number].cq != nullptr, "a completion queue can be made");
    if (!setup_.is_lazy) cqs_[number].arm(host, false);
  }
  void make(nic_model::Host& host, unsigned pair) {
    nic_model::QpInit init;
    init.type = kKinds[pair].type;
    init.domain = domain_;
    init.send_cq = init.receive_cq = cqs_[cq_of(pair)].cq;
    init.capacity = {kSendRequests, kReceiveRequests, 2, 2, 64};
    if (kKinds[pair].shares) init.shared_receive_queue = shared_.queue();
    pairs_[pair].qp = host.create_qp(init);
    require(pairs_[pair].qp != nullptr, "a queue pair can be made");
    if (!windows_[pair]) windows_[pair] = host.memory().add_window(domain_);
    live(pair);
  }
  void destroy(nic_model::Host& host, unsigned pair) {
    host.destroy_qp(*pairs_[pair].qp);
    forget(pairs_[pair]);
    pairs_[pair].qp = nullptr;
  }
  void live(unsigned pair) {
    pairs_[pair].life = ++lives_;
    pairs_[pair].judge.emplace(kKinds[pair].type, lives_, kKinds[pair].shares ? &shared_.requests() : nullptr);
  }
  // What others had of its window ends with it.
  void forget(Pair& pair) {
    pair.window = 0;
    if (std::ranges::none_of(pairs_, [](const Pair& one) { return one.window != 0; })) arena_->keep(kWindowed);
  }

  std::uint32_t windows_[kPairs] = {};
  std::uint32_t lives_ = 0, variant_ = 0;
  bool loses_ = false;  // completions found no room
};

}  // namespace rocebox::fuzz::nic_bed
