// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/check_case.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic_model/host/connect.h"
#include "runtime/roce/multicast.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model::check {
namespace {

constexpr std::uint32_t kDepth = 16;  // messages under way
constexpr std::uint8_t kRdAtomic = 4;
constexpr std::uint8_t kTimeout = 16;  // 268 ms: a virtual machine on a busy host is not always quicker
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint8_t kEmpty = 0xEE;  // where nothing has come
constexpr std::uint32_t kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr ibv_wr_opcode kOpcodes[] = {
    IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

}  // namespace

bool Case::is_possible() const {
  return transport <= Transport::kUd && verb <= Verb::kCompareSwap && exists() && roce::is_path_mtu(mtu) &&
         size >= kBytesMin && size <= kBytesMax && messages >= 1 && messages <= kMessagesMax &&
         std::uint64_t{size} * messages <= kCaseBytesMax && (!is_atomic() || size == 8) &&
         (transport != Transport::kUd || size <= mtu) &&
         (!has_group() || (transport == Transport::kUd && roce::is_multicast(group)));
}

std::uint64_t Side::stride() const { return (std::uint64_t{kHeadBytes} + case_.size + 63) & ~std::uint64_t{63}; }

// Each message begins with its number; no two messages and no two cases have the same bytes.
std::uint8_t Side::expected(std::uint32_t message, std::uint32_t offset) const {
  if (offset < 4) return static_cast<std::uint8_t>(message >> (24 - 8 * offset));
  return static_cast<std::uint8_t>(message * 167 + offset * 31 + (offset >> 8) * 7 + number_ * 59 + 0x5A);
}

Side::Found Side::find(std::uint64_t slot, std::uint32_t message) const {
  const std::uint8_t* bytes = data(slot);
  std::uint32_t right = 0, empty = 0, neither = 0;
  for (std::uint32_t i = 0; i < case_.size; i++) {
    const bool is_right = bytes[i] == expected(message, i), is_empty = bytes[i] == kEmpty;
    right += is_right;
    empty += is_empty;
    neither += !is_right && !is_empty;
  }
  if (right == case_.size) return Found::kWhole;
  if (empty == case_.size) return Found::kMissing;
  return neither ? Found::kWrong : Found::kPartial;
}

bool Side::prepare(Host& host, CompletionQueue& cq, const RecoveryOptions& recovery) {
  memory_.assign(stride() * case_.messages, kEmpty);
  seen_.assign(case_.messages, false);
  const bool has_data = requests_ != (case_.verb == Verb::kRead);
  if (case_.is_atomic()) {
    if (!requests_) std::memset(data(0), 0, 8);
  } else if (has_data) {
    for (std::uint32_t m = 0; m < case_.messages; m++)
      for (std::uint32_t i = 0; i < case_.size; i++) data(m)[i] = expected(m, i);
  }
  const std::uint32_t domain = host.alloc_pd();
  mapping_ = host.memory().map(domain, memory_.data(), memory_.size(), kAccess);
  QpInit init_with;
  constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
  init_with.type = kTypes[static_cast<unsigned>(case_.transport)];
  init_with.domain = domain;
  init_with.send_cq = init_with.receive_cq = &cq;
  init_with.capacity = {kDepth, case_.messages, 1, 1, 0};
  qp_ = mapping_.key ? host.create_qp(init_with) : nullptr;
  if (!qp_) {
    host.memory().remove(mapping_.key);
    return false;
  }
  recovery.apply(host, *qp_);
  if (init(host)) return true;
  release(host);
  return false;
}

// In INIT receive requests can be posted before anything can come.
bool Side::init(Host& host) {
  const bool datagrams = case_.transport == Transport::kUd;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = kAccess;
  a.qkey = kQkey;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (host.modify_qp(*qp_, a, mask | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) != 0) return false;
  if (requests_ || !case_.takes_receive()) return true;
  for (std::uint32_t i = 0; i < case_.messages; i++) {
    const std::uint32_t head = datagrams ? kHeadBytes : 0;
    ibv_sge sge{address(i) - head, case_.size + head, mapping_.key};
    ibv_recv_wr request{i, nullptr, &sge, case_.is_send() ? 1 : 0};
    if (host.post_receive(*qp_, &request, nullptr) != 0) return false;
  }
  return true;
}

void Side::describe(Message& message) const {
  message.qpn = qp_->number();
  message.psn = first_psn();
  message.rkey = mapping_.key;
  message.address = address(0);
}

int Side::connect(Host& host, const roce::IpAddress& remote, const Message& there) {
  there_address_ = there.address;
  there_rkey_ = static_cast<std::uint32_t>(there.rkey);
  if (case_.transport == Transport::kUd) return connect_datagrams(host, remote, there);
  ConnectOptions options;
  options.mtu = case_.mtu;
  options.access = kAccess;
  options.psn = first_psn();
  options.rd_atomic = kRdAtomic;
  options.timeout = kTimeout;
  return nic_model::connect(
      host, *qp_, {remote, static_cast<std::uint32_t>(there.qpn), static_cast<std::uint32_t>(there.psn)}, options);
}

int Side::connect_datagrams(Host& host, const roce::IpAddress& remote, const Message& there) {
  if (const int error = start_datagrams(host, *qp_, kQkey, first_psn())) return error;
  if (!requests_) return case_.has_group() ? host.attach_mcast(*qp_, case_.group) : 0;
  // The control connection has led there already, so the way is known.
  if (case_.has_group()) return host.create_ah(handle_, case_.group, 0, kQkey);
  return host.create_ah(handle_, remote, static_cast<std::uint32_t>(there.qpn), kQkey);
}

void Side::post(Host& host) {
  while (posted_ < case_.messages && posted_ - completed_ < kDepth && status_ == IBV_WC_SUCCESS) {
    const std::uint32_t m = posted_;
    ibv_sge sge{address(m), case_.is_atomic() ? 8u : case_.size, mapping_.key};
    ibv_send_wr request{};
    request.wr_id = m;
    request.opcode = kOpcodes[static_cast<unsigned>(case_.verb)];
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    if (case_.has_imm()) request.imm_data = htobe32(m);
    if (case_.is_atomic()) {
      const bool adds = case_.verb == Verb::kFetchAdd;
      request.wr.atomic.remote_addr = there_address_;
      request.wr.atomic.rkey = there_rkey_;
      request.wr.atomic.compare_add = adds ? 1u : m;
      request.wr.atomic.swap = m + 1;
    } else {
      request.wr.rdma.remote_addr = there_address_ + m * stride();
      request.wr.rdma.rkey = there_rkey_;
    }
    const bool datagrams = case_.transport == Transport::kUd;
    if (host.post_send(*qp_, &request, nullptr, datagrams ? &handle_ : nullptr) != 0) {
      status_ = IBV_WC_GENERAL_ERR;
      return;
    }
    posted_++;
  }
}

void Side::on_wc(Host& host, const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) {
    if (status_ == IBV_WC_SUCCESS) status_ = wc.status;
    return;
  }
  if (!requests_) return on_receive(wc);
  completed_++;
  if (case_.requester_verifies()) on_answer(wc.wr_id);
  post(host);
}

void Side::on_answer(std::uint64_t message) {
  bool right = message < case_.messages;
  if (right && case_.is_atomic()) {
    std::uint64_t original = 0;  // it counts up from 0
    std::memcpy(&original, data(message), sizeof original);
    right = original == message;
  } else if (right) {
    right = find(message, static_cast<std::uint32_t>(message)) == Found::kWhole;
  }
  (right ? whole_ : wrong_)++;
}

void Side::on_receive(const ibv_wc& wc) {
  const bool datagrams = case_.transport == Transport::kUd;
  std::uint64_t slot = wc.wr_id;
  std::uint32_t number = UINT32_MAX;
  if (case_.is_send() && slot < case_.messages) {
    std::memcpy(&number, data(slot), sizeof number);
    number = be32toh(number);
  }
  bool right = wc.byte_len == case_.size + (datagrams ? kHeadBytes : 0);
  if (case_.has_imm()) {
    right = right && (wc.wc_flags & IBV_WC_WITH_IMM) && (!case_.is_send() || be32toh(wc.imm_data) == number);
    number = be32toh(wc.imm_data);
  }
  if (!case_.is_send()) slot = number;
  right = right && number < case_.messages && !seen_[number] && find(slot, number) == Found::kWhole;
  // Datagrams may overtake each other; reliable messages come all, one behind the other.
  if (right && !datagrams) right = case_.transport == Transport::kRc ? number == last_ + 1 : number > last_;
  if (right) seen_[number] = true;
  last_ = number;
  (right ? whole_ : wrong_)++;
}

bool Side::is_complete() const {
  if (case_.requester_verifies()) return true;
  if (case_.takes_receive()) return whole_ + wrong_ >= case_.messages;
  return counts().whole == case_.messages;
}

Counts Side::counts() const {
  Counts all{whole_, 0, 0, wrong_};
  if (requests_ == case_.requester_verifies() && (requests_ || case_.takes_receive())) {
    all.missing = case_.messages - std::min(case_.messages, whole_ + wrong_);
  } else if (!requests_ && case_.is_atomic()) {
    std::uint64_t value = 0;
    std::memcpy(&value, data(0), sizeof value);
    (value == case_.messages ? all.whole : all.wrong) = case_.messages;
  } else if (!requests_ && case_.verb == Verb::kWrite) {
    for (std::uint32_t m = 0; m < case_.messages; m++) {
      std::uint32_t* const by[] = {&all.whole, &all.partial, &all.missing, &all.wrong};
      ++*by[static_cast<unsigned>(find(m, m))];
    }
  }
  return all;
}

void Side::release(Host& host) {
  host.destroy_qp(*qp_);
  host.memory().remove(mapping_.key);
}

}  // namespace rocebox::nic_model::check
