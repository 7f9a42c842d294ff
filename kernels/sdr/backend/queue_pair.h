// SPDX-License-Identifier: BSD-3-Clause
// QueuePair: a queue pair of SDR (3.2 to 3.4): messages in packets over the transport queue pairs of its channels and
// generations, buffers behind root keys, bitmaps, clear-to-send; and a connection beside it for control datagrams.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/sdr/backend/backend.h"
#include "kernels/sdr/backend/control.h"

namespace rocebox::sdr {

/// What a queue pair takes, in bytes: for each message ID, and beside that. Registered memory is the caller's.
struct MemoryOfQueuePair {
  std::size_t device_a_message = 0, device = 0;  ///< of the DPA's heap
  std::size_t host_a_message = 0, host = 0;
};

/// What a call came to, as libsdr's return codes.
enum class Status : std::uint8_t { kSuccess, kError, kRetry };

/// A message that is received: a slot. In the order in which they are posted they match the messages of the peer.
struct Receive {
  std::uint64_t number = 0;
  std::uint64_t address = 0;
  std::uint32_t length = 0, packets = 0, chunks = 0;
  std::uint8_t* bitmap = nullptr;  ///< a byte for each chunk, in place: 1 once all of its packets are here
  bool posted = false;
};

/// A message that is sent. Another thread may ask completed() and `failed`; the rest is the NIC's core's.
struct Send {
  std::uint64_t number = 0;
  std::uint32_t user = 0;
  bool has_user = false;
  std::uint32_t highest = 0;        ///< behind the highest packet that was posted
  std::uint32_t fragments = 0;      ///< of `user` that were posted
  std::atomic<bool> ended{false};   ///< nothing is added to it any more
  std::atomic<bool> failed{false};  ///< some of it cannot be sent: memory or length, or the connection is gone
  std::atomic<std::uint32_t> outstanding{0};  ///< Writes that are posted and have not left
  bool completed() const {
    return ended.load(std::memory_order_acquire) && outstanding.load(std::memory_order_acquire) == 0;
  }

  void begin(std::uint64_t as, const std::uint32_t* with) {
    number = as;
    has_user = with != nullptr;
    user = with ? *with : 0;
    highest = fragments = 0;
    ended = failed = false;
    outstanding = 0;
  }
  /// One core alone writes it.
  void left(std::uint32_t writes) {
    outstanding.store(outstanding.load(std::memory_order_relaxed) - writes, std::memory_order_release);
  }
};

/// Who wants to know what happens to a queue pair. In calls of the NIC.
class QueuePairListener {
 public:
  virtual ~QueuePairListener() = default;
  /// The peer has posted receive buffers.
  virtual void on_clear_to_send(nic_model::Host& /*host*/) {}
  /// Packets have left.
  virtual void on_sent(nic_model::Host& /*host*/) {}
  virtual void on_datagram(nic_model::Host& /*host*/, std::span<const std::uint8_t> /*bytes*/) {}
};

class QueuePair {
  friend class Backend;

 public:
  QueuePair(Backend& backend, const QueuePairOptions& options);
  ~QueuePair();

  const QueuePairOptions& options() const { return options_; }
  Backend& backend() const { return backend_; }
  void set_listener(QueuePairListener* listener) { listener_ = listener; }

  QueuePairInfo info() const;
  /// Empty: it is connected; else why it cannot be.
  std::string connect(nic_model::Host& host, const QueuePairInfo& peer);
  bool connected() const { return connected_; }
  /// A transport or control connection has failed: nothing more is sent.
  bool broken() const { return broken_; }

  /// Posts a buffer for the next message. kRetry: its slot is taken by a message that is not completed.
  Status post_receive(nic_model::Host& host, std::uint64_t address, std::uint32_t length, std::uint32_t key,
                      Receive*& made);
  /// The next messages get no buffer: the peer is told, and does not send them.
  void skip_receives(nic_model::Host& host, std::uint64_t messages);
  /// Whether the peer's NIC has acknowledged what it was told of all receives that were posted or skipped.
  bool peer_has_heard() const { return told_ == next_receive_ && control_.all_acknowledged(); }
  /// The message is complete for its owner, whatever has come of it; what comes later touches nothing.
  Status complete(nic_model::Host& host, Receive& receive);
  /// kRetry: fragments are missing. kError: it is not posted, or the immediate's split has no room.
  Status user_immediate(const Receive& receive, std::uint32_t& value) const;
  /// The packet bitmap of a chunk of up to 64 packets.
  Status packets_of_chunk(const Receive& receive, std::uint32_t chunk, std::uint64_t& bits) const;

  /// Begins the next message. kRetry: as many as there are slots are under way.
  Status start_send(const std::uint32_t* user, Send*& made);
  /// The next messages are never sent; their buffers at the peer stay as they are.
  void skip_sends(std::uint64_t messages) { next_send_ += messages; }
  /// Whether add() would take these bytes for message `number`; kRetry: not now.
  Status fits(std::uint64_t number, std::uint64_t address, std::uint64_t length, std::uint32_t key,
              std::uint64_t first_chunk) const;
  /// Adds bytes to a message, at `first_chunk` of the peer's buffer. They leave once that is posted.
  Status add(nic_model::Host& host, Send& send, std::uint64_t address, std::uint32_t length, std::uint32_t key,
             std::uint64_t first_chunk);
  void end_send(nic_model::Host& host, Send& send);
  /// A completed one's room is free for others.
  void release(Send& send);
  /// Messages that the peer has posted buffers for: those below can be sent.
  std::uint64_t clear_to_send() const { return clear_; }
  /// False: the peer is done with message `number` below clear_to_send(), for a later one has its slot.
  bool may_have_buffer(std::uint64_t number) const { return number + options_.slots >= clear_; }
  /// Bytes of the peer's buffer for message `number` below clear_to_send(), of the last `slots` of these. 0: the peer
  /// has skipped it.
  std::uint32_t peer_length(std::uint64_t number) const { return peer_lengths_[options_.slot_of(number)]; }
  std::uint64_t next_send() const { return next_send_; }
  /// Messages that start_send() can begin now.
  std::size_t free_sends() const { return free_sends_.size(); }
  /// Whether the next message's slot is free.
  bool can_receive() const { return !receives_[options_.slot_of(next_receive_)].posted; }
  /// Packets that were posted and have not left.
  std::uint32_t backlog() const { return backlog_; }

  /// An unreliable datagram to the peer's listener, of at most kDatagramBytes. False: it was lost here.
  bool send_datagram(nic_model::Host& host, std::span<const std::uint8_t> bytes);

  /// Packets that have come, by what they came to (SDR_PACKET, ...).
  std::span<const std::uint64_t, SDR_ARRIVALS> arrivals() const;
  /// Bytes of the device's memory that it has taken.
  std::size_t device_bytes() const { return device_bytes_; }
  static MemoryOfQueuePair memory_of(const QueuePairOptions& options);

  // For Backend.

  std::string build(nic_model::Host& host);
  /// Before it is connected, the first time or again: what an earlier connection of its queue pairs sent is not taken.
  void begin(nic_model::Host& host, std::uint64_t salt);
  /// Gives back what a build took that has failed; the device's heap and completion queues last as long as the NIC.
  void undo(nic_model::Host& host);
  void shut(nic_model::Host& host);
  void on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq);

 private:
  // A transport queue pair: of one channel and generation.
  struct Transport {
    nic_model::dpa::QpAddresses at;
    std::uint16_t posted = 0, left = 0;  // blocks of its send queue
    std::vector<Send*> owners;           // by block
    bool failed = false;
    std::uint32_t room() const { return (1u << kLogSendBlocks) - static_cast<std::uint16_t>(posted - left); }
  };
  // Writes of one message, `done` of which are posted to transports.
  struct Segment {
    Send* send;
    std::uint64_t address;
    std::uint32_t length, key, first_packet, packets, done;
    std::uint32_t empties;  // bits: fragments that empty Writes carry
  };
  std::string build_device(nic_model::Host& host);
  std::string build_transports(nic_model::Host& host);
  void clear_state();
  void post_slot(const Receive& receive);
  bool queue(nic_model::Host& host, const Segment& segment);
  std::uint32_t missing_fragments(const Send& send, std::uint32_t of) const;
  void pump(nic_model::Host& host);
  bool post_batch(nic_model::Host& host, Segment& segment);
  bool post_empties(nic_model::Host& host, Segment& segment);
  // Writes of one batch, from `packet` on, the last of which tells when they have left. False: there is no room.
  bool post_writes(nic_model::Host& host, Transport& to, const Segment& segment, std::uint32_t packet,
                   std::uint32_t count, std::uint32_t bytes);
  sdr_order order_of(const Transport& to, const Segment& segment, std::uint32_t packet, std::uint32_t count,
                     std::uint32_t bytes) const;
  void write(Transport& to, const Segment& segment, std::uint32_t packet, std::uint32_t bytes, bool last);
  Transport& transport_of(const Send& send, std::uint32_t packet);
  void on_left(nic_model::Host& host);
  void on_clear(nic_model::Host& host, const ClearToSend& clear);
  void tell_clear(nic_model::Host& host);
  void fail(Send& send, std::uint32_t writes);
  void set_entry(std::uint64_t number, const nic_model::IndirectPiece& piece);

  Backend& backend_;
  const QueuePairOptions options_;
  QueuePairInfo peer_;
  QueuePairListener* listener_ = nullptr;
  bool connected_ = false, broken_ = false;
  // Receiving.
  sdr_table* table_ = nullptr;
  std::unique_ptr<nic_model::dpa::GuardedMemory> chunk_bytes_;
  std::uint32_t window_ = 0, window_key_ = 0, null_key_ = 0;
  std::vector<std::uint32_t> roots_;
  std::uint32_t first_psn_ = 0;
  std::vector<Receive> receives_;              // by slot
  std::uint64_t next_receive_ = 0, told_ = 0;  // told_: receives that the peer was told of
  // Sending.
  std::vector<Transport> transports_;  // by generation and channel
  std::vector<std::uint32_t> by_qpn_;  // from the NIC's first queue pair on: place in transports_
  std::vector<std::unique_ptr<Send>> sends_;
  std::vector<Send*> free_sends_;
  std::uint64_t next_send_ = 0, clear_ = 0;
  std::vector<std::uint32_t> peer_lengths_;  // by slot
  std::deque<Segment> waiting_, ready_;      // for the peer's buffer; for room in the transports
  std::uint32_t backlog_ = 0;
  std::vector<std::uint32_t> orders_until_;       // by transmit worker: orders behind which there are none of it
  std::vector<std::uint32_t> completions_until_;  // by receive worker: completions behind which there are none of it
  nic_model::CompletionQueue* send_cq_ = nullptr;
  Control control_;
  std::size_t device_bytes_ = 0;
};

}  // namespace rocebox::sdr
