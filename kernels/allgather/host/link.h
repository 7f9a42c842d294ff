// SPDX-License-Identifier: BSD-3-Clause
// Link: a reliable connection between two ranks of a communicator: messages, and READs from the other's buffer, in
// order.
#pragma once
#include <deque>
#include <functional>

#include "kernels/allgather/host/control_message.h"
#include "nic_model/host/host.h"

namespace rocebox::allgather {

/// What a link of a rank is for: the fetch ring's two, and those of the barrier.
enum class LinkTo : std::uint8_t { kLeft, kRight, kBarrier };
constexpr LinkTo other_end(LinkTo to) {
  return to == LinkTo::kLeft ? LinkTo::kRight : to == LinkTo::kRight ? LinkTo::kLeft : LinkTo::kBarrier;
}

class Link {
 public:
  /// A READ of some bytes of the other's buffer into this rank's.
  struct Read {
    std::uint64_t address = 0, remote_address = 0;
    std::uint32_t bytes = 0, key = 0, remote_key = 0;
    unsigned slot = 0, block = 0;
    std::uint32_t index = 0, count = 0;
  };
  struct Work {
    bool is_read = false;
    ControlMessage message;
    Read read;
  };

  Link(unsigned communicator, LinkTo to, unsigned peer, unsigned depth)
      : communicator_(communicator), to_(to), peer_(peer), depth_(depth) {}

  unsigned communicator() const { return communicator_; }
  LinkTo to() const { return to_; }
  unsigned peer() const { return peer_; }

  nic_model::Qp* qp = nullptr;
  std::uint32_t psn = 0;  ///< the first that this side sends
  Link* other = nullptr;  ///< at the peer, where that is in this process
  // Ranks in processes of their own:
  bool is_asked = false, is_connected = false;     ///< by either side
  bool has_goodbye = false, said_goodbye = false;  ///< the peer needs nothing any more; has been told so
  /// NICs without bytes: messages on their way to this side.
  std::deque<ControlMessage> without_bytes;

  void post(nic_model::Host& host, const Work& work, bool has_bytes) {
    waiting_.push_back(work);
    pump(host, has_bytes);
  }
  /// The oldest work that was posted is complete.
  Work complete(nic_model::Host& host, bool has_bytes) {
    const Work done = posted_.front();
    posted_.pop_front();
    pump(host, has_bytes);
    return done;
  }
  /// Posts what had to wait until it was connected.
  void resume(nic_model::Host& host) { pump(host, true); }
  bool idle() const { return posted_.empty(); }

 private:
  void pump(nic_model::Host& host, bool has_bytes) {
    while (!waiting_.empty() && posted_.size() < depth_) {
      Work& work = waiting_.front();
      ibv_send_wr request{};
      ibv_sge sge{};
      request.sg_list = &sge;
      request.num_sge = 1;
      request.send_flags = IBV_SEND_SIGNALED;
      if (work.is_read) {
        request.opcode = IBV_WR_RDMA_READ;
        sge = {work.read.address, work.read.bytes, work.read.key};
        request.wr.rdma.remote_addr = work.read.remote_address;
        request.wr.rdma.rkey = work.read.remote_key;
      } else {
        request.opcode = IBV_WR_SEND;
        request.send_flags |= IBV_SEND_INLINE;
        sge = {reinterpret_cast<std::uintptr_t>(&work.message), sizeof work.message, 0};
      }
      if (host.post_send(*qp, &request, nullptr) != 0) return;
      if (!work.is_read && !has_bytes) other->without_bytes.push_back(work.message);
      posted_.push_back(work);
      waiting_.pop_front();
    }
  }

  unsigned communicator_;
  LinkTo to_;
  unsigned peer_, depth_;
  std::deque<Work> waiting_, posted_;
};

}  // namespace rocebox::allgather
