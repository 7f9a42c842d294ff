// SPDX-License-Identifier: BSD-3-Clause
// Control: what a queue pair of SDR has beside its data: a reliable connection for clear-to-send (3.2.3) and an
// unreliable one for datagrams of whoever makes it reliable (4.1).
#pragma once
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "kernels/sdr/backend/options.h"
#include "nic_model/host/connect.h"
#include "nic_model/host/host.h"

namespace rocebox::sdr {

/// A receive buffer is posted: 12 bytes, number and length in network byte order. Length 0: this one and those before
/// it that nothing was said of were skipped.
struct ClearToSend {
  std::uint64_t number;
  std::uint32_t length;
};

class Control {
 public:
  /// Empty, or why there is no room for it.
  std::string build(nic_model::Host& host, std::uint32_t domain, std::uint32_t program);
  std::uint32_t control_qpn() const { return control_->number(); }
  std::uint32_t datagram_qpn() const { return datagrams_->number(); }
  nic_model::CompletionQueue& cq() const { return *cq_; }
  /// `psn`: the first that this side sends on either connection.
  bool connect(nic_model::Host& host, const QueuePairInfo& peer, std::uint32_t psn, std::uint8_t ack_timeout,
               const nic_model::RecoveryOptions& recovery);
  void shut(nic_model::Host& host);
  /// Gives back what build() took, all or a part.
  void undo(nic_model::Host& host);

  /// False: there is no room now; on_completion() makes some.
  bool send_clear(nic_model::Host& host, const ClearToSend& clear);
  bool send_datagram(nic_model::Host& host, std::span<const std::uint8_t> bytes);
  bool all_acknowledged() const { return under_way_.empty(); }

  /// Calls on_clear(ClearToSend) and on_datagram(bytes). False: the control connection has failed. One whose peer is
  /// silent for all of a NIC's tries goes on where it was, kControlResumes times; a host may be kept from its work.
  template <class OnClear, class OnDatagram>
  bool on_completion(nic_model::Host& host, OnClear&& on_clear, OnDatagram&& on_datagram) {
    ibv_wc all[16];
    bool good = true, silent = false;
    for (int count; (count = host.poll(*cq_, all)) > 0;)
      for (int i = 0; i < count; i++) {
        const ibv_wc& wc = all[i];
        const bool received = wc.wr_id & kReceived;
        const bool control = wc.qp_num == control_qpn();
        if (!received && !control) sent_--;
        if (wc.status != IBV_WC_SUCCESS) {
          silent = silent || (control && wc.status == IBV_WC_RETRY_EXC_ERR);
          good = good && (!control || wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_WR_FLUSH_ERR);
          continue;
        }
        if (control) (received ? came_ : acknowledged_)++;
        if (!received) {
          if (control) under_way_.pop_front(), resumes_ = 0;
          continue;
        }
        const auto slot = static_cast<std::uint32_t>(wc.wr_id);
        const std::uint8_t* at = buffer(slot);
        if (control)
          on_clear(decode(at));
        else if (is_of_this_connection(at, wc.byte_len))
          on_datagram(std::span(at + kTagBytes, wc.byte_len - kTagBytes));
        post(host, slot);
      }
    return good && (!silent || resume(host));
  }

 private:
  static constexpr std::uint64_t kReceived = std::uint64_t{1} << 32;
  // An unreliable connection takes any PSN, so each datagram begins with its sender's first one, in network byte order:
  // one that an earlier connection of these queue pairs sent is of no interest.
  static constexpr std::uint32_t kTagBytes = 4;
  bool is_of_this_connection(const std::uint8_t* bytes, std::uint32_t length) const;
  static ClearToSend decode(const std::uint8_t* bytes);
  // Buffers: what the control connection receives, what datagrams receive, what datagrams send.
  std::uint8_t* buffer(std::uint32_t slot) { return memory_.data() + std::size_t{slot} * kControlBytes; }
  void post(nic_model::Host& host, std::uint32_t slot);
  bool post_clear(nic_model::Host& host, const ClearToSend& clear);
  bool connect_control(nic_model::Host& host);
  bool resume(nic_model::Host& host);

  nic_model::Qp *control_ = nullptr, *datagrams_ = nullptr;
  nic_model::CompletionQueue* cq_ = nullptr;
  std::vector<std::uint8_t> memory_;
  std::uint32_t key_ = 0, next_ = 0, sent_ = 0;
  // Of the control connection: each message is one packet, so its PSNs are the first ones and what came of each.
  roce::IpAddress peer_address_{};
  std::uint32_t peer_qpn_ = 0, first_psn_ = 0, peers_first_psn_ = 0;
  std::uint8_t ack_timeout_ = 0;
  nic_model::RecoveryOptions recovery_;
  std::uint32_t acknowledged_ = 0, came_ = 0, resumes_ = 0;  // resumes_: since the last acknowledgement
  std::deque<ClearToSend> under_way_;
};

}  // namespace rocebox::sdr
