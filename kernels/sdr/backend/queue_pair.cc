// SPDX-License-Identifier: BSD-3-Clause
// A queue pair of SDR as it is built and connected, and what it receives.
#include "kernels/sdr/backend/queue_pair.h"

#include <bit>
#include <cstring>

#include "kernels/sdr/backend/device/sdr_bitmaps.h"
#include "nic_model/host/connect.h"
#include "runtime/roce/psn.h"

namespace rocebox::sdr {

using nic_model::Host;

namespace {

constexpr std::uint32_t kTableAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

}  // namespace

QueuePair::QueuePair(Backend& backend, const QueuePairOptions& options)
    : backend_(backend), options_(options), receives_(options.slots), peer_lengths_(options.slots) {}

QueuePair::~QueuePair() = default;

std::string QueuePair::build(Host& host) {
  std::string error = build_device(host);
  if (error.empty()) error = build_transports(host);
  if (error.empty()) error = control_.build(host, backend_.domain(), backend_.program());
  if (!error.empty()) return error;
  for (std::uint32_t i = 0; i < options_.slots; i++) sends_.push_back(std::make_unique<Send>());
  backend_.listen(*send_cq_, *this);
  backend_.listen(control_.cq(), *this);
  return "";
}

void QueuePair::begin(Host& host, std::uint64_t salt) {
  first_psn_ = static_cast<std::uint32_t>(host.random() ^ salt) & roce::kPsnMask;
  // UC takes any PSN. Other root keys keep the payload out, and with it the completion.
  for (std::uint32_t& root : roots_) {
    host.memory().remove(root);
    root = host.memory().add_table(backend_.domain(), options_.entries(), options_.message_bytes, kTableAccess);
  }
  clear_state();
}

void QueuePair::undo(Host& host) {
  for (Transport& one : transports_) {
    if (!one.at.qp) continue;
    backend_.route(one.at.number) = {};
    host.destroy_qp(*one.at.qp);
  }
  control_.undo(host);
  if (send_cq_) host.destroy_cq(*send_cq_);
  for (const std::uint32_t key : roots_)
    if (key) host.memory().remove(key);
  for (const std::uint32_t key : {window_key_, null_key_})
    if (key) host.memory().remove(key);
}

std::string QueuePair::build_device(Host& host) {
  nic_model::Memory& memory = host.memory();
  const std::uint32_t domain = backend_.domain(), slots = options_.slots, chunks = options_.chunks_max();
  chunk_bytes_ = std::make_unique<nic_model::dpa::GuardedMemory>(std::size_t{slots} * chunks);
  window_key_ = memory.add(domain, chunk_bytes_->data(), chunk_bytes_->size(), IBV_ACCESS_LOCAL_WRITE);
  null_key_ = memory.add_null(domain);
  for (std::uint32_t i = 0; i < options_.root_keys; i++) {
    roots_.push_back(memory.add_table(domain, options_.entries(), options_.message_bytes, kTableAccess));
    if (!roots_.back()) return "the NIC has no more memory keys, or a root key would have too many entries";
  }
  if (!window_key_ || !null_key_) return "the NIC has no more memory keys";
  nic_model::dpa::Process& process = backend_.process();
  window_ = process.create_window(domain);
  const std::uint32_t words = (options_.packets_max() + 63) / 64;
  const bool counts_words = options_.packets_a_chunk > 64;
  const std::size_t sizes[] = {sizeof(sdr_table), slots * sizeof(sdr_slot), std::size_t{slots} * words * 8,
                               counts_words ? std::size_t{slots} * chunks * 4 : 0};
  std::uint64_t at[4] = {};
  for (unsigned i = 0; i < 4; i++)
    if (sizes[i] && !(at[i] = process.alloc(sizes[i])))
      return "the DPA's heap has no room for its bitmaps; raise the NIC's `dpa: {heap: ...}`";
  if (!window_) return "the DPA has no more windows";
  for (const std::size_t size : sizes) device_bytes_ += size;
  table_ = backend_.device<sdr_table>(at[0]);
  table_->slots = at[1], table_->bitmap = at[2], table_->words_left = at[3];
  table_->messages = slots, table_->words = words, table_->chunks = chunks;
  table_->chunk_shift = static_cast<std::uint32_t>(std::countr_zero(options_.packets_a_chunk));
  table_->offset_bits = options_.layout.offset_bits, table_->fragment_bits = options_.layout.fragment_bits;
  table_->window = window_, table_->window_key = window_key_;
  table_->host_area = reinterpret_cast<std::uintptr_t>(chunk_bytes_->data());
  return "";
}

std::string QueuePair::build_transports(Host& host) {
  constexpr std::uint32_t kReceives = 1u << kLogReceives;
  std::uint32_t taken = options_.generations;
  for (const auto* all : {&backend_.queue_pairs_, &backend_.idle_})
    for (const auto& other : *all) taken += other->options_.generations;
  if (taken * kReceives > backend_.workers_[0].cq->entries())
    return "the workers' completion queues have no room for so many generations";
  const std::uint32_t wqes = options_.transports() << kLogSendBlocks;
  send_cq_ = host.create_cq(wqes, backend_.program());
  nic_model::QpInit init;
  init.type = options_.unreliable ? IBV_QPT_UC : IBV_QPT_RC;
  init.send_cq = send_cq_;
  for (std::uint32_t i = 0; i < options_.transports() && send_cq_; i++) {
    init.receive_cq = backend_.workers_[i % options_.channels].cq;
    Transport& made = transports_.emplace_back();
    made.at = backend_.process().create_qp(init, kLogSendBlocks, kLogReceives);
    if (!made.at.qp)
      return "the NIC has no more queue pairs, or the DPA's heap no room for their queues; raise the NIC's "
             "`queue_pairs` "
             "or `dpa: {heap: ...}`";
    made.owners.resize(std::size_t{1} << kLogSendBlocks);
    device_bytes_ += (std::size_t{64} << kLogSendBlocks) + (std::size_t{16} << kLogReceives) + 64;
    const std::uint32_t index = made.at.number - backend_.first_qpn_;
    if (index >= by_qpn_.size()) by_qpn_.resize(index + 1, UINT32_MAX);
    by_qpn_[index] = i;
    backend_.route(made.at.number) = {reinterpret_cast<std::uintptr_t>(table_), made.at.doorbell, i / options_.channels,
                                      0};
  }
  return send_cq_ ? "" : "the NIC has no room for a completion queue of so many requests";
}

MemoryOfQueuePair QueuePair::memory_of(const QueuePairOptions& options) {
  constexpr std::size_t kBlocks = 1u << kLogSendBlocks;
  const std::size_t words = (options.packets_max() + 63) / 64;
  MemoryOfQueuePair of;
  of.device_a_message = sizeof(sdr_slot) + words * 8 + (options.packets_a_chunk > 64 ? options.chunks_max() * 4 : 0);
  of.device = sizeof(sdr_table) +
              options.transports() * (kBlocks * MLX5_SEND_WQE_BB + (sizeof(mlx5_wqe_data_seg) << kLogReceives) + 64);
  const std::size_t entries = std::size_t{options.root_entries} * options.root_keys;
  of.host_a_message = options.chunks_max() + sizeof(Receive) + sizeof(Send) + sizeof(Send*) + sizeof(std::uint32_t) +
                      entries * sizeof(nic_model::IndirectPiece);
  of.host = sizeof(QueuePair) + options.transports() * (sizeof(Transport) + kBlocks * sizeof(Send*));
  return of;
}

// As it is when it was just built.
void QueuePair::clear_state() {
  for (std::uint32_t i = 0; i < options_.slots; i++) sdr_free(table_, i);
  std::ranges::fill(table_->arrivals, 0);
  for (const std::uint32_t root : roots_)
    for (std::uint32_t i = 0; i < options_.entries(); i++)
      backend_.host().memory().set_entry(root, i, {null_key_, 0, options_.message_bytes});
  for (Transport& one : transports_) {
    auto* ring = backend_.device<mlx5_wqe_data_seg>(one.at.receive_ring, std::size_t{1} << kLogReceives);
    // WRITEs take a receive request, and nothing of its memory.
    for (std::uint32_t i = 0; i < 1u << kLogReceives; i++) ring[i] = {0, htobe32(0x100), 0};
    auto* doorbell = backend_.device<__be32>(one.at.doorbell, 2);
    doorbell[0] = htobe32(1u << kLogReceives);
    doorbell[1] = 0;
    one.posted = one.left = 0;
    one.failed = false;
  }
  for (Receive& receive : receives_) receive.posted = false, receive.number = UINT64_MAX;
  free_sends_.clear();
  for (const auto& send : sends_) free_sends_.push_back(send.get());
  waiting_.clear();
  ready_.clear();
  next_receive_ = told_ = next_send_ = clear_ = 0;
  backlog_ = 0;
  connected_ = broken_ = false;
  listener_ = nullptr;
}

void QueuePair::shut(Host& host) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RESET;
  for (Transport& one : transports_)
    if (one.at.qp) host.modify_qp(*one.at.qp, a, IBV_QP_STATE);
  control_.shut(host);
  while (send_cq_ && send_cq_->peek()) send_cq_->advance();
  if (table_) clear_state();
}

QueuePairInfo QueuePair::info() const {
  QueuePairInfo info;
  const nic_model::NicConfig& config = backend_.host().config();
  info.address = config.address ? *config.address : config.address6.value_or(roce::IpAddress{});
  info.options = options_;
  info.psn = first_psn_;
  info.control_qpn = control_.control_qpn(), info.datagram_qpn = control_.datagram_qpn();
  info.root_keys = roots_;
  for (const Transport& one : transports_) info.qpns.push_back(one.at.number);
  return info;
}

std::string QueuePair::connect(Host& host, const QueuePairInfo& peer) {
  if (connected_) return "it is connected already";
  if (std::string why = peer.mismatch(options_); !why.empty()) return why;
  peer_ = peer;
  nic_model::ConnectOptions with;
  with.mtu = std::max(options_.mtu, 256u);  // InfiniBand has no smaller one
  with.access = IBV_ACCESS_REMOTE_WRITE;
  with.timeout = options_.ack_timeout;
  with.rnr_retry = options_.rnr_retry ? 7 : 0;
  with.psn = first_psn_;
  bool good = control_.connect(host, peer, first_psn_, options_.ack_timeout, options_.recovery);
  for (std::size_t i = 0; i < transports_.size() && good; i++) {
    nic_model::Qp& qp = *transports_[i].at.qp;
    options_.recovery.apply(host, qp);
    good = nic_model::connect(host, qp, {peer.address, peer.qpns[i], peer.psn}, with) == 0;
    if (!good || options_.rate_limit == 0) continue;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTS;
    a.rate_limit = std::max(options_.rate_limit / options_.channels, 1u);
    good = host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == 0;
  }
  if (!good) return "its queue pairs cannot be connected";
  connected_ = true;
  host.arm(*send_cq_);
  tell_clear(host);
  return "";
}

void QueuePair::set_entry(std::uint64_t number, const nic_model::IndirectPiece& piece) {
  backend_.host().memory().set_entry(roots_[options_.root_of(number)], options_.entry_of(number), piece);
}

Status QueuePair::post_receive(Host& host, std::uint64_t address, std::uint32_t length, std::uint32_t key,
                               Receive*& made) {
  Receive& receive = receives_[options_.slot_of(next_receive_)];
  if (broken_ || length == 0 || length > options_.message_bytes || !backend_.has_memory(key, address, length, true))
    return Status::kError;
  if (receive.posted || next_receive_ - told_ >= options_.slots) return Status::kRetry;
  receive.number = next_receive_++;
  receive.address = address;
  receive.length = length;
  receive.packets = (length + options_.mtu - 1) / options_.mtu;
  receive.chunks = (receive.packets + options_.packets_a_chunk - 1) / options_.packets_a_chunk;
  receive.bitmap = chunk_bytes_->data() + std::size_t{options_.slot_of(receive.number)} * options_.chunks_max();
  receive.posted = true;
  post_slot(receive);
  set_entry(receive.number, {key, address, length});
  made = &receive;
  if (connected_) tell_clear(host);
  return Status::kSuccess;
}

void QueuePair::skip_receives(Host& host, std::uint64_t messages) {
  next_receive_ += messages;
  tell_clear(host);
}

void QueuePair::post_slot(const Receive& receive) {
  std::memset(receive.bitmap, 0, receive.chunks);
  sdr_post(table_, options_.slot_of(receive.number), options_.generation_of(receive.number), receive.packets,
           reinterpret_cast<std::uintptr_t>(receive.bitmap));
}

Status QueuePair::complete(Host& host, Receive& receive) {
  if (!receive.posted) return Status::kError;
  sdr_free(table_, options_.slot_of(receive.number));
  set_entry(receive.number, {null_key_, 0, options_.message_bytes});
  receive.posted = false;
  if (connected_) tell_clear(host);
  return Status::kSuccess;
}

Status QueuePair::user_immediate(const Receive& receive, std::uint32_t& value) const {
  if (!receive.posted || options_.layout.fragments() == 0) return Status::kError;
  return sdr_user_immediate(table_, options_.slot_of(receive.number), &value) ? Status::kSuccess : Status::kRetry;
}

Status QueuePair::packets_of_chunk(const Receive& receive, std::uint32_t chunk, std::uint64_t& bits) const {
  const std::uint32_t size = options_.packets_a_chunk;
  if (!receive.posted || chunk >= receive.chunks || size > 64) return Status::kError;
  const std::uint32_t first = chunk * size;
  const std::uint64_t* words = sdr_words_of(table_, options_.slot_of(receive.number));
  const std::uint32_t count = std::min(size, receive.packets - first);
  bits =
      __atomic_load_n(&words[first / 64], __ATOMIC_ACQUIRE) >> first % 64 & (count == 64 ? ~0ull : (1ull << count) - 1);
  return Status::kSuccess;
}

std::span<const std::uint64_t, SDR_ARRIVALS> QueuePair::arrivals() const {
  return std::span<const std::uint64_t, SDR_ARRIVALS>(table_->arrivals);
}

}  // namespace rocebox::sdr
