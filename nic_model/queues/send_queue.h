// SPDX-License-Identifier: BSD-3-Clause
// SendQueue: WQEs in mlx5's format, in blocks of 64 bytes, as the host writes them and the NIC reads them.
#pragma once
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "nic_model/limits.h"
#include "nic_model/queues/queue_memory.h"
#include "runtime/packet/prefetch.h"

namespace rocebox::nic_model {

class Memory;
struct Accessor;

/// A work request as the NIC has read it, until it is completed: one cache line.
struct alignas(64) SendWork {
  std::uint32_t first_psn = 0, packets = 0;  ///< PSNs that it takes; of a READ those of the responses
  std::uint32_t bytes = 0;
  std::uint32_t rkey = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t swap_add = 0, compare = 0;  ///< of atomics
  __be32 immediate = 0;                     ///< as written; of SEND with invalidate: the rkey
  std::uint32_t first_segment = 0;          ///< of its data, in the ring, counted in 16 bytes
  std::uint16_t wqe_counter = 0;            ///< its first block, as CQEs name it
  std::uint8_t opcode = 0;                  ///< MLX5_OPCODE_...
  std::uint8_t flags = 0;                   ///< MLX5_WQE_CTRL_...
  std::uint8_t segments = 0;                ///< of data
  bool is_inline = false;
  bool done = false;  ///< of a READ or an atomic: all of the response has come; of what sends nothing: it was done
  std::uint8_t error = IBV_WC_SUCCESS;  ///< ibv_wc_status with which it ends when its turn comes
  std::uint32_t responded = 0;          ///< of a READ: packets of the response that have come
  std::uint32_t message = 0;            ///< its number among those that are sent, from 1 on

  bool has(std::uint8_t flag) const { return flags & flag; }
  bool is_read() const { return opcode == MLX5_OPCODE_RDMA_READ; }
  bool is_atomic() const { return opcode == MLX5_OPCODE_ATOMIC_CS || opcode == MLX5_OPCODE_ATOMIC_FA; }
  bool is_read_or_atomic() const { return is_read() || is_atomic(); }
  bool is_write() const { return opcode == MLX5_OPCODE_RDMA_WRITE || opcode == MLX5_OPCODE_RDMA_WRITE_IMM; }
  /// It sends nothing.
  bool is_local() const {
    return opcode == MLX5_OPCODE_LOCAL_INVAL || opcode == MLX5_OPCODE_UMR || opcode == MLX5_OPCODE_NOP;
  }
};
static_assert(sizeof(SendWork) == 64);

/// What a UMR WQE that binds a window says.
struct BindRequest {
  std::uint32_t window = 0;  ///< its key so far
  std::uint8_t variant = 0;  ///< the low 8 bits of its key from now on
  std::uint32_t region = 0;
  std::uint64_t address = 0, bytes = 0;  ///< bytes 0: it is bound to nothing from now on
  std::uint32_t access = 0;              ///< IBV_ACCESS_REMOTE_...
};

class SendQueue {
 public:
  /// Room for `requests` work requests of at most `sges` pieces or `inline_bytes`; `is_datagram`: with an address each.
  SendQueue(std::uint32_t qpn, std::uint32_t requests, std::uint32_t sges, std::uint32_t inline_bytes,
            bool is_datagram);
  /// Blocks of the ring for these.
  static std::uint32_t ring_blocks(std::uint32_t requests, std::uint32_t sges, std::uint32_t inline_bytes);
  /// One whose ring is a device program's, which writes WQEs there by itself.
  SendQueue(std::uint32_t qpn, const QueueMemory& memory, bool is_datagram);

  // The host's side.

  /// Writes a WQE. 0, or ENOMEM: the queue is full; EINVAL: more pieces or inline bytes than it has room for, a piece
  /// of 2 GiB or more, or an opcode that it does not know. IBV_WR_BIND_MW, by which only connected queue pairs bind
  /// windows of type 2, names them by keys alone: `mw->rkey` is the window's so far, `rkey` its next one, of which the
  /// low 8 bits are new, `mr->lkey` the region's; `length` 0 ends a binding. EINVAL: flags beside the remote rights and
  /// IBV_ACCESS_ZERO_BASED.
  int post(const ibv_send_wr& request, const mlx5_wqe_av* address);
  /// The NIC may read what was posted.
  void ring_doorbell() { doorbell_ = htobe32(producer_ & 0xFFFF); }
  /// Device: the same, where it is it that writes the WQEs.
  /// More than the ring holds cannot be: what it has is read.
  void ring_doorbell(std::uint16_t producer) {
    const auto ahead = static_cast<std::uint16_t>(producer - fetched_);
    doorbell_ = htobe32(ahead <= source_mask_ + 1 ? producer : (fetched_ + source_mask_ + 1) & 0xFFFF);
  }
  bool is_devices() const { return source_ != nullptr; }
  /// Of a CQE: the work request's own identifier; its room, and that of those before it, is free again.
  std::uint64_t retire(std::uint16_t wqe_counter);

  // The NIC's side.

  bool has_posted() const {
    const auto ahead = static_cast<std::uint16_t>(be32toh(doorbell_) - fetched_);
    // The last WQE of a device program may say that it is longer than what was posted.
    return source_ ? static_cast<std::int16_t>(ahead) > 0 : ahead != 0;
  }
  /// Whether the next WQE can be taken without touching those from the one that begins in block `oldest` on, which are
  /// not completed. Who posts by itself may say that it has posted more than the ring holds.
  bool has_room_behind(std::uint16_t oldest) const {
    return !source_ || static_cast<std::uint16_t>(fetched_ - oldest) + kBlocksMax <= block_mask_ + 1;
  }
  /// Reads the next WQE. Of one that there cannot be, or whose opcode this NIC has not, `work` has its counter, opcode
  /// and error alone.
  void fetch(SendWork& work);
  /// Brings nearer the beginning of each of the pieces that such bytes lie in.
  void prefetch_data(const SendWork& work, const Memory& memory, std::uint64_t offset, std::uint64_t bytes) const;
  /// Copies bytes of the message's data to `to`; `by` may read them (see check()).
  void gather(const SendWork& work, const Memory& memory, std::uint64_t offset, std::uint32_t bytes,
              std::uint8_t* to) const;
  /// Writes bytes of a response to where the work request says; `from` null: only their place is known.
  void scatter(const SendWork& work, Memory& memory, std::uint64_t offset, std::uint32_t bytes,
               const std::uint8_t* from) const;
  /// Whether `by` may do `access` with all of the data.
  bool check(const SendWork& work, const Memory& memory, const Accessor& by, std::uint32_t access) const;
  /// Of a UMR WQE, as `IBV_WR_BIND_MW` is written: one KLM in the WQE. False: it is of another form, which is none of
  /// this NIC's.
  bool read_bind(const SendWork& work, BindRequest& bind) const;
  /// Of a datagram: it lies before the data.
  const mlx5_wqe_av& address(const SendWork& work) const {
    return *reinterpret_cast<const mlx5_wqe_av*>(segment(work.first_segment - kAddressSegments));
  }
  std::uint32_t requests_max() const { return requests_max_; }

  // Hints for the cache, of the WQE behind which `since` others have been read. WQEs are taken to have one block: a
  // wrong guess costs nothing but time.

  /// Of what sending it reads.
  void prefetch_to_send(std::uint32_t since) const {
    prefetch_line(ring_.data() + ((fetched_ - since) & block_mask_) * std::size_t{kBlockBytes});
  }
  /// Of what retire() reads of it, and of the place of the next one that is posted.
  void prefetch_to_complete(std::uint32_t since) const {
    if (source_) return;
    const std::size_t next = producer_ & block_mask_;
    prefetch_line(posted_.data() + ((fetched_ - since) & block_mask_));
    prefetch_line(ring_.data() + next * kBlockBytes);
    prefetch_line(posted_.data() + next);
  }
  void clear();

 private:
  static constexpr std::uint32_t kSegmentBytes = 16, kBlockBytes = MLX5_SEND_WQE_BB;
  static constexpr std::uint32_t kAddressSegments = sizeof(mlx5_wqe_datagram_seg) / kSegmentBytes;
  // Control, remote address, atomic; or control and the address of a datagram.
  static constexpr std::uint32_t kHeadSegments = 1 + kAddressSegments;
  static_assert(kAddressSegments == 3 && kHeadSegments >= 3);
  static constexpr std::uint32_t kBlocksMax = 16;     // of one WQE: 63 segments
  static constexpr std::uint32_t kBindSegments = 12;  // three blocks
  static std::uint32_t blocks_each(std::uint32_t sges, std::uint32_t inline_bytes);
  void take_from_source();
  std::uint8_t* segment(std::uint32_t at) { return ring_.data() + (at & segment_mask_) * kSegmentBytes; }
  const std::uint8_t* segment(std::uint32_t at) const { return ring_.data() + (at & segment_mask_) * kSegmentBytes; }
  bool room_for(const ibv_send_wr& request, std::uint64_t& inline_bytes) const;
  bool has_room(std::uint32_t blocks) const {
    return head_ - tail_ < requests_max_ && producer_ - freed_ + blocks <= block_mask_ + 1;
  }
  int post_bind(const ibv_send_wr& request);
  void put_control(const ibv_send_wr& request, std::uint8_t opcode, std::uint32_t segments, __be32 immediate);
  std::uint32_t put_data(std::uint32_t at, const ibv_send_wr& request, std::uint64_t inline_bytes);
  void put_inline(std::uint32_t at, const ibv_send_wr& request);
  bool read(SendWork& work, std::uint32_t first, std::uint32_t segments);
  void read_data(SendWork& work, std::uint32_t at, std::uint32_t end);
  template <class Each>
  void each_piece(const SendWork& work, std::uint64_t offset, std::uint64_t bytes, Each each) const;

  std::uint32_t qpn_, requests_max_, sges_max_, inline_max_;
  std::uint32_t segment_mask_, block_mask_;
  std::uint32_t producer_ = 0;         // blocks
  std::uint32_t freed_ = 0;            // blocks of what is retired
  std::uint32_t blocks_max_ = 1;       // of a request that is none to bind
  std::uint32_t head_ = 0, tail_ = 0;  // work requests posted, and retired
  __be32 doorbell_ = 0;
  std::uint16_t fetched_ = 0;
  bool is_datagram_;
  const std::uint8_t* source_ = nullptr;  // of a device program's: its ring; `ring_` has copies of what was taken
  std::vector<std::uint8_t> ring_;
  struct Posted {
    std::uint64_t identifier;
    std::uint32_t number;  // of work requests posted up to it
    std::uint32_t end;     // the block behind it
  };
  std::vector<Posted> posted_;     // by block
  std::uint32_t source_mask_ = 0;  // blocks
};

}  // namespace rocebox::nic_model
