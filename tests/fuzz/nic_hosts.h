// SPDX-License-Identifier: BSD-3-Clause
// The two hosts of nic_fuzz.cc: each has one queue pair of each kind, which its peer's is connected to.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "nic_model/host/connect.h"
#include "tests/fuzz/nic_bed.h"
#include "tests/fuzz/nic_judge.h"
#include "tests/fuzz/nic_memory.h"

namespace rocebox::fuzz::nic_bed {

inline constexpr unsigned kPairs = 5;
struct Kind {
  ibv_qp_type type;
  bool shares;  // a receive queue
};
inline constexpr Kind kKinds[kPairs] = {
    {IBV_QPT_RC, false}, {IBV_QPT_RC, true}, {IBV_QPT_UC, false}, {IBV_QPT_UD, false}, {IBV_QPT_UD, true}};
inline constexpr std::uint32_t kQkey = 0x1234, kSendRequests = 16, kReceiveRequests = 16;

/// What all queue pairs are connected with.
struct HostSetup {
  nic_model::ConnectOptions connect;
  std::uint32_t cq_entries = 256;
  bool is_lazy = false;  ///< completions stay where they are until they are asked for
};

/// A side: a host's program, its memory, its queue pairs.
class Side final : public nic_model::HostProgram {
 public:
  struct Pair {
    nic_model::Qp* qp = nullptr;
    std::optional<Judge> judge;
    std::uint32_t window = 0;  // its key
  };

  Side(Bed& bed, unsigned number, const NicSetup& nic, const HostSetup& setup)
      : bed_(bed), number_(number), setup_(setup), host_(bed.host(number)), program_(host_.submit(*this)) {
    call([&](nic_model::Host& host) {
      domain_ = host.alloc_pd();
      arena_.emplace(host.memory(), domain_, host.alloc_pd(), nic.header_only,
                     (setup.connect.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0);
      cq_ = host.create_cq(setup.cq_entries, program_);
      ibv_srq_init_attr attributes{};
      attributes.attr = {kReceiveRequests, 2, 0};
      shared_ = host.create_srq(attributes);
      for (unsigned i = 0; i < kPairs; i++) make(host, i);
      if (!setup.is_lazy) host.arm(*cq_);
    });
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void on_start(nic_model::Host& host) override {
    if (what_) std::exchange(what_, {})(host);
  }
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) override {
    require(&cq == cq_ && !setup_.is_lazy, "an event of a queue that was armed");
    poll_in(host);
    host.arm(cq);
  }

  /// Runs `what` in a call of the NIC.
  void call(std::function<void(nic_model::Host&)> what) {
    what_ = std::move(what);
    host_.start_again(program_);
    bed_.settle();
    require(!what_, "a program is called");
  }
  void poll() {
    call([this](nic_model::Host& host) { poll_in(host); });
  }
  /// Destroys the queue pair, where it is, and makes another one.
  void make_anew(nic_model::Host& host, unsigned pair) {
    destroy(host, pair);
    make(host, pair);
  }
  void destroy(nic_model::Host& host, unsigned pair) {
    host.destroy_qp(*pairs_[pair].qp);
    forget(pairs_[pair]);
    pairs_[pair].qp = nullptr;
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
  /// From RESET to RTS, towards the same pair of `peer`.
  void connect(nic_model::Host& host, unsigned pair, const Side& peer) {
    nic_model::Qp& qp = *pairs_[pair].qp;
    if (qp.is(IBV_QPT_UD)) {
      require(nic_model::start_datagrams(host, qp, kQkey) == 0, "datagrams can be sent");
      return;
    }
    const nic_model::Peer to{address_of(1 - number_), peer.pairs_[pair].qp->number(), setup_.connect.psn};
    require(nic_model::connect(host, qp, to, setup_.connect) == 0, "a queue pair can be connected");
    nic_model::MemoryError error;
    pairs_[pair].window = host.memory().bind(windows_[pair], static_cast<std::uint8_t>(++variant_),
                                             arena_->key(kWindowed), arena_->address(kWindowed) + kWindowAt,
                                             kWindowBytes, IBV_ACCESS_REMOTE_WRITE, qp.accessor(), error);
    if (pairs_[pair].window) windows_[pair] = pairs_[pair].window, arena_->allow_window();
  }
  void post_receive(nic_model::Host& host, unsigned pair, std::uint32_t offset, std::uint32_t bytes,
                    std::uint32_t key) {
    Pair& to = pairs_[pair];
    ibv_sge sge{arena_->address(kLocal) + offset, bytes, key};
    const bool shares = kKinds[pair].shares;
    ibv_recv_wr request{
        shares ? identifier(Posted::kShared, 0, shared_requests_.requests.size()) : to.judge->next_receive(), nullptr,
        &sge, 1};
    const bool taken =
        (shares ? host.post_receive(*shared_, &request, nullptr) : host.post_receive(*to.qp, &request, nullptr)) == 0;
    if (!taken) return;
    if (arena_->is_registered(kLocal)) arena_->allow(kLocal, offset, bytes);
    if (shares)
      shared_requests_.requests.push_back({bytes});
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

  /// What must hold whenever nothing goes on.
  void require_sound() {
    require(cq_->unconsumed() <= cq_->entries(), "a completion queue holds no more than it has room for");
    arena_->require_untouched();
    if (cq_->overrun() || cq_->unconsumed() > 0) return;
    for (Pair& pair : pairs_) {
      if (!pair.qp || !pair.qp->flushes_requests()) continue;
      require(pair.qp->requester.incomplete() == 0, "a queue that failed has nothing left to complete");
      pair.judge->require_sends_done();
      if (pair.qp->attributes.state == IBV_QPS_ERR) pair.judge->require_receives_done();
    }
  }
  /// Of queue pairs with work none waits for what will never come.
  void require_progress() {
    for (Pair& pair : pairs_)
      require(
          !pair.qp->can_send() || pair.qp->attributes.state == IBV_QPS_SQD || !pair.qp->requester.waits_for_nothing(),
          "what is posted goes on");
  }

  /// All that a packet could change of queue pairs.
  std::vector<std::uint64_t> state() const {
    std::vector<std::uint64_t> all{completions_, cq_->produced()};
    for (const Pair& pair : pairs_)
      all.insert(all.end(), {std::uint64_t{pair.qp->attributes.state}, pair.qp->responder.expected_psn(),
                             pair.qp->requester.unacknowledged_psn(), pair.qp->requester.next_psn()});
    return all;
  }
  nic_model::Qp& qp(unsigned pair) const { return *pairs_[pair].qp; }
  std::uint32_t window(unsigned pair) const { return pairs_[pair].window; }
  void set_window(unsigned pair, std::uint32_t key) { windows_[pair] = pairs_[pair].window = key; }
  Arena& arena() { return *arena_; }
  const HostSetup& setup() const { return setup_; }

 private:
  void live(unsigned pair) {
    pairs_[pair].judge.emplace(kKinds[pair].type, ++lives_, kKinds[pair].shares ? &shared_requests_ : nullptr);
  }
  void make(nic_model::Host& host, unsigned pair) {
    nic_model::QpInit init;
    init.type = kKinds[pair].type;
    init.domain = domain_;
    init.send_cq = init.receive_cq = cq_;
    init.capacity = {kSendRequests, kReceiveRequests, 2, 2, 64};
    if (kKinds[pair].shares) init.shared_receive_queue = shared_;
    pairs_[pair].qp = host.create_qp(init);
    require(pairs_[pair].qp != nullptr, "a queue pair can be made");
    if (!windows_[pair]) windows_[pair] = host.memory().add_window(domain_);
    live(pair);
  }
  // What others had of its window ends with it.
  void forget(Pair& pair) {
    pair.window = 0;
    if (std::ranges::none_of(pairs_, [](const Pair& one) { return one.window != 0; })) arena_->keep(kWindowed);
  }
  void poll_in(nic_model::Host& host) {
    ibv_wc wc[8];
    for (int count; (count = host.poll(*cq_, wc)) > 0;)
      for (int i = 0; i < count; i++) {
        completions_++;
        Pair* const of =
            std::ranges::find_if(pairs_, [&](const Pair& one) { return one.qp && one.qp->number() == wc[i].qp_num; });
        require(of != std::end(pairs_), "a completion is of a queue pair that there is");
        of->judge->completed(wc[i]);
      }
  }

  Bed& bed_;
  unsigned number_;
  HostSetup setup_;
  nic_model::Host& host_;
  std::uint32_t program_, domain_ = 0;
  std::function<void(nic_model::Host&)> what_;
  std::optional<Arena> arena_;
  nic_model::CompletionQueue* cq_ = nullptr;
  nic_model::ReceiveQueue* shared_ = nullptr;
  SharedRequests shared_requests_;
  Pair pairs_[kPairs];
  std::uint32_t windows_[kPairs] = {};
  std::uint32_t lives_ = 0, variant_ = 0;
  std::uint64_t completions_ = 0;
};

}  // namespace rocebox::fuzz::nic_bed
