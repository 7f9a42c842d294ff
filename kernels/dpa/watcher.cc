// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/dpa/watcher.h"

#include <algorithm>
#include <cerrno>

#include "nic_model/dpa/library.h"
#include "runtime/roce/icrc.h"

namespace rocebox::dpa_observer {
namespace {

constexpr std::uint32_t kGsiQpn = 1;  // management datagrams: no program has its queue pair

}  // namespace

Watcher::Watcher(const Config& config, Stats& stats)
    : config_(config),
      counters_(stats),
      messages_(static_cast<std::uint32_t>(config.flows), static_cast<std::uint32_t>(config.threads), counters_),
      around_(counters_),
      engine_(std::make_unique<nic_model::dpa::Engine>(around_, config.engine)),
      results_(std::make_unique<std::vector<Result>>()) {
  process_ = config.file.path.empty() ? &engine_->create_process(nic_model::dpa::library_path(config.program))
                                      : &engine_->create_process(config.file.path, config.file.text);
  StationOptions with;
  with.handler = config.handler.empty() ? config.program + "_handler" : config.handler;
  with.cq_entries = static_cast<std::uint32_t>(config.cq_entries);
  with.buffer_bytes = static_cast<std::uint32_t>(config.buffer);
  with.count = static_cast<std::uint32_t>(config.count);
  if (config.host_bytes) {
    window_.emplace(static_cast<std::size_t>(config.host_bytes));
    const std::uint32_t domain = around_.alloc_pd();
    with.host_address = reinterpret_cast<std::uintptr_t>(window_->data());
    with.host_bytes = static_cast<std::uint64_t>(config.host_bytes);
    with.host_key = around_.memory().add(domain, window_->data(), with.host_bytes, IBV_ACCESS_LOCAL_WRITE);
    with.window = process_->create_window(domain);
  }
  stations_.reserve(static_cast<std::size_t>(config.threads));
  for (std::int64_t i = 0; i < config.threads; i++) stations_.emplace_back(*process_, with);
  for (const std::string& function : config.results) results_->push_back({function});
}

void Watcher::process(Context& context, Port in, Batch& batch) {
  around_.enter(context);
  // Threads run for each packet, not for each batch: how packets are cut into batches would be seen by a program.
  for (unsigned i = 0; i < batch.size(); i++)
    if (is_wanted(batch[i], in)) watch(batch[i]);
  around_.leave();
}

void Watcher::on_timer(Context& context, Timer& timer) {
  around_.enter(context);
  engine_->on_timer(timer);
  run_threads();
  around_.leave();
}

bool Watcher::is_wanted(Packet packet, Port in) const {
  if (!roce::is_roce(packet)) return false;
  if (config_.from != From::kBoth && (config_.from == From::kLeft) != (in == 0)) return false;
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (!info.has(roce::kIsRequest)) return false;
  const bool service = info.service == roce::Service::kRc   ? config_.rc
                       : info.service == roce::Service::kUc ? config_.uc
                       : info.service == roce::Service::kUd ? config_.ud
                                                            : false;
  const std::uint32_t qpn = roce::qpn_and_psn(packet).destination_qp;
  if (!service || qpn <= kGsiQpn) return false;
  if (config_.qps.empty()) return true;
  const roce::IpAddress to = roce::addresses(packet).destination;
  return std::ranges::any_of(
      config_.qps, [&](const WatchedQp& one) { return one.qpn == qpn && (!one.address || *one.address == to); });
}

void Watcher::watch(Packet packet) {
  if (config_.check_icrc && roce::icrc_check(packet) == roce::IcrcStatus::kBad)
    return counters_.rx_icrc_encapsulated.add();
  Flow* flow = messages_.find(packet);
  if (!flow) return counters_.flows_full.add();
  if (!messages_.takes(*flow, packet)) return;
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const PacketMeta& meta = packet.meta();
  Station& station = stations_[flow->thread];
  const bool is_datagram = info.service == roce::Service::kUd;
  const bool wanted = info.has(roce::kIsSend) ? config_.sends : config_.write_imm && info.has(roce::kHasImmDt);
  if (info.has(roce::kStartsMessage)) {
    flow->bytes = is_datagram ? kGrhBytes : 0;
    // A WRITE takes its receive when its last packet comes with the immediate.
    if (info.has(roce::kIsSend) && wanted) flow->buffer = station.take_receive();
  }
  if (info.has(roce::kIsSend) && wanted) {
    const std::uint32_t held = std::min<std::uint32_t>(meta.payload_bytes, packet.size() - meta.payload_offset);
    station.place(flow->buffer, flow->bytes, {packet.data() + meta.payload_offset, held});
  }
  flow->bytes += meta.payload_bytes;
  if (!info.has(roce::kEndsMessage)) return;
  flow->is_open = false;
  if (!wanted) return;
  if (info.has(roce::kIsWrite)) flow->buffer = station.take_receive();
  complete(packet, *flow, station, flow->bytes);
}

void Watcher::complete(Packet packet, const Flow& flow, Station& station, std::uint32_t bytes) {
  if (process_->stopped() || process_->is_finished()) return counters_.cqes_stopped.add();
  nic_model::CompletionQueue& cq = station.cq();
  if (cq.unconsumed() >= cq.entries()) return counters_.cqes_lost.add();
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  mlx5_cqe64* cqe = cq.next();
  std::uint8_t opcode = info.has(roce::kIsWrite) ? MLX5_CQE_RESP_WR_IMM : MLX5_CQE_RESP_SEND;
  if (const roce::ImmDt* immediate = roce::immdt(packet)) {
    cqe->imm_inval_pkey = htobe32(static_cast<std::uint32_t>(immediate->data));
    if (!info.has(roce::kIsWrite)) opcode = MLX5_CQE_RESP_SEND_IMM;
  } else if (const roce::Ieth* ieth = roce::ieth(packet)) {
    cqe->imm_inval_pkey = htobe32(static_cast<std::uint32_t>(ieth->rkey));
    opcode = MLX5_CQE_RESP_SEND_INV;
  }
  const roce::Deth* deth = roce::deth(packet);
  cqe->byte_cnt = htobe32(bytes);
  cqe->flags_rqpn = htobe32(deth ? 1u << 28 | static_cast<std::uint32_t>(deth->source_qp) : 0);
  cqe->sop_drop_qpn = htobe32(roce::qpn_and_psn(packet).destination_qp);
  cqe->wqe_counter = htobe16(flow.buffer);
  cqe->timestamp = htobe64(static_cast<std::uint64_t>(around_.now()));
  cq.publish(cqe, opcode, roce::bth(packet).solicited_event());
  counters_.cqes.add();
  engine_->on_call();
  engine_->on_published(cq, cq.take_event());
  run_threads();
}

// What is left of long ones goes on when their timer comes, in the same instant.
void Watcher::run_threads() {
  engine_->run();
  while (around_.take_zero_cqes()) {
    for (const auto& cq : around_.cqs()) engine_->on_published(*cq, cq->take_event());
    engine_->run();
  }
}

// The host asks, when nothing else goes on. What waits, has no result.
void Watcher::ask(Result& result) const {
  result.is_known = false;
  result.error = process_->call(result.function, {}, [&result](std::uint64_t value) {
    result.value = value;
    result.is_known = true;
  });
}

void Watcher::report(Report& report) const {
  for (Result& result : *results_) ask(result);
  report.text("program", process_->name());
  report.text("error", process_->error());
  report.table("results", results_->size(), [&](Report& r, std::size_t i) {
    const Result& one = (*results_)[i];
    r.text("function", one.function);
    if (one.is_known) r.count("value", static_cast<std::int64_t>(one.value));
    r.text("why_not", one.is_known              ? ""
                      : one.error == ENOENT     ? "the program has no such function"
                      : process_->stopped()     ? "the program has stopped"
                      : process_->is_finished() ? "the program has finished"
                                                : "it waits");
  });
  report_stations(report);
  if (window_) {
    std::int64_t bits = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(config_.host_bytes); i++)
      bits += __builtin_popcount(window_->data()[i]);
    report.count("bits_set", bits);
  }
  engine_->report(report);
  const std::vector<std::string>& messages = process_->messages();
  report.table("messages", messages.size(), [&](Report& r, std::size_t i) { r.text("message", messages[i]); });
}

// What the programs that come with rocebox count in their endpoint.
void Watcher::report_stations(Report& report) const {
  report.table("endpoints", stations_.size(), [&](Report& r, std::size_t i) {
    const ::endpoint& e = stations_[i].shared();
    r.count("thread_number", static_cast<std::int64_t>(i));
    r.count("cqes_written", stations_[i].cq().produced());
    r.count("messages", static_cast<std::int64_t>(e.messages));
    r.count("message_bytes", static_cast<std::int64_t>(e.bytes));
    r.count("errors", static_cast<std::int64_t>(e.errors));
  });
}

}  // namespace rocebox::dpa_observer
