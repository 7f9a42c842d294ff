// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/backend/control.h"

#include <endian.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/roce/psn.h"

namespace rocebox::sdr {

using nic_model::Host;

namespace {

nic_model::ConnectOptions options_of(const Host& host) {
  nic_model::ConnectOptions options;
  options.mtu = std::min(options.mtu, host.config().path_mtu_max());
  return options;
}

}  // namespace

std::string Control::build(Host& host, std::uint32_t domain, std::uint32_t program) {
  memory_.resize(std::size_t{3} * kControlBuffers * kControlBytes);
  key_ = host.memory().add(domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  cq_ = host.create_cq(4 * kControlBuffers, program);
  nic_model::QpInit init;
  init.domain = domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {kControlBuffers, kControlBuffers, 1, 1, 32};
  init.signal_all = true;
  control_ = cq_ && key_ ? host.create_qp(init) : nullptr;
  init.type = IBV_QPT_UC;
  datagrams_ = control_ ? host.create_qp(init) : nullptr;
  return datagrams_ ? "" : "the NIC has no more queue pairs; raise its `queue_pairs`";
}

bool Control::connect(Host& host, const QueuePairInfo& peer, std::uint32_t psn, std::uint8_t ack_timeout,
                      const nic_model::RecoveryOptions& recovery) {
  peer_address_ = peer.address, peer_qpn_ = peer.control_qpn;
  first_psn_ = psn, peers_first_psn_ = peer.psn;
  ack_timeout_ = ack_timeout;
  recovery_ = recovery;
  nic_model::ConnectOptions with = options_of(host);
  with.psn = psn;
  if (!connect_control(host) ||
      nic_model::connect(host, *datagrams_, {peer.address, peer.datagram_qpn, peer.psn}, with) != 0)
    return false;
  for (std::uint32_t slot = kControlBuffers; slot < 2 * kControlBuffers; slot++) post(host, slot);
  host.arm(*cq_);
  return true;
}

// From the PSNs on that both ends have come to.
bool Control::connect_control(Host& host) {
  nic_model::ConnectOptions with = options_of(host);
  with.timeout = ack_timeout_;
  with.psn = roce::psn_add(first_psn_, acknowledged_);
  const nic_model::Peer peer{peer_address_, peer_qpn_, roce::psn_add(peers_first_psn_, came_)};
  recovery_.apply(host, *control_);
  if (nic_model::connect(host, *control_, peer, with) != 0) return false;
  for (std::uint32_t slot = 0; slot < kControlBuffers; slot++) post(host, slot);
  return true;
}

// What the peer has acknowledged it has; of the rest it passes over what it had already.
bool Control::resume(Host& host) {
  if (resumes_++ >= kControlResumes) return false;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  if (host.modify_qp(*control_, a, IBV_QP_STATE) != 0 || !connect_control(host)) return false;
  return std::ranges::all_of(under_way_, [&](const ClearToSend& clear) { return post_clear(host, clear); });
}

void Control::shut(Host& host) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  for (nic_model::Qp* qp : {control_, datagrams_})
    if (qp) host.modify_qp(*qp, a, IBV_QP_STATE);
  // What they have completed is of no interest any more.
  while (cq_ && cq_->peek()) cq_->advance();
  next_ = sent_ = acknowledged_ = came_ = resumes_ = 0;
  under_way_.clear();
}

void Control::undo(Host& host) {
  for (nic_model::Qp** qp : {&control_, &datagrams_})
    if (*qp) host.destroy_qp(*std::exchange(*qp, nullptr));
  if (cq_) host.destroy_cq(*std::exchange(cq_, nullptr));
  if (key_) host.memory().remove(std::exchange(key_, 0));
}

void Control::post(Host& host, std::uint32_t slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(buffer(slot)), kControlBytes, key_};
  ibv_recv_wr request{kReceived | slot, nullptr, &sge, 1};
  host.post_receive(slot < kControlBuffers ? *control_ : *datagrams_, &request, nullptr);
}

bool Control::is_of_this_connection(const std::uint8_t* bytes, std::uint32_t length) const {
  std::uint32_t tag;
  if (length < kTagBytes) return false;
  std::memcpy(&tag, bytes, kTagBytes);
  return be32toh(tag) == peers_first_psn_;
}

ClearToSend Control::decode(const std::uint8_t* bytes) {
  std::uint64_t number;
  std::uint32_t length;
  std::memcpy(&number, bytes, 8);
  std::memcpy(&length, bytes + 8, 4);
  return {be64toh(number), be32toh(length)};
}

bool Control::send_clear(Host& host, const ClearToSend& clear) {
  if (under_way_.size() >= kControlBuffers || !post_clear(host, clear)) return false;
  under_way_.push_back(clear);
  return true;
}

bool Control::post_clear(Host& host, const ClearToSend& clear) {
  std::uint8_t bytes[12];
  const std::uint64_t number = htobe64(clear.number);
  const std::uint32_t length = htobe32(clear.length);
  std::memcpy(bytes, &number, 8);
  std::memcpy(bytes + 8, &length, 4);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes), sizeof bytes, 0};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  return host.post_send(*control_, &request, nullptr) == 0;
}

bool Control::send_datagram(Host& host, std::span<const std::uint8_t> bytes) {
  if (sent_ >= kControlBuffers || bytes.size() > kDatagramBytes) return false;
  std::uint8_t* to = buffer(2 * kControlBuffers + next_);
  const std::uint32_t tag = htobe32(first_psn_);
  std::memcpy(to, &tag, kTagBytes);
  std::copy(bytes.begin(), bytes.end(), to + kTagBytes);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(to), static_cast<std::uint32_t>(kTagBytes + bytes.size()), key_};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  if (host.post_send(*datagrams_, &request, nullptr) != 0) return false;
  next_ = (next_ + 1) % kControlBuffers;
  sent_++;
  return true;
}

}  // namespace rocebox::sdr
