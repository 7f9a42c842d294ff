// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/host/workloads/dpa_program.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "nic_model/dpa/endpoint.h"
#include "nic_model/dpa/library.h"
#include "nic_model/host/workloads/programs.h"
#include "runtime/component/input_file.h"

namespace rocebox::nic_model {
namespace {

constexpr unsigned kUnderWay = 32;  // messages under way
constexpr std::string_view kDpaVerbs[] = {"send", "write_imm"};
enum class DpaVerb : std::uint8_t { kSend, kWriteImm };

struct DpaProgramConfig {
  std::optional<roce::IpAddress> address;
  std::int64_t port = 7176, messages = 1, host_bytes = 0;
  std::uint64_t size = 64;
  std::string program, handler, call, total;
  InputFile file;
  DpaVerb verb = DpaVerb::kSend;
  bool echo = false;
  RecoveryOptions recovery;

  bool has_program() const { return !program.empty() || !file.path.empty(); }

  void fields(Fields& f) {
    f.address("address", address, Presence::kOptional, "server to connect to, as a client; left out: be one");
    f.integer("port", port, {1, 65535}, "port of RDMA CM");
    f.text("program", program, "device program of those that come with rocebox: " + dpa::library_names());
    f.file("file", file, "one of your own, in its place: a shared object compiled against the device API");
    f.text("handler", handler, "its function that events activate; left out: PROGRAM_handler");
    f.text("call", call, "its function that the host calls once the connection stands");
    f.text("total", total, "its function that the host calls at the end, whose result is in the report");
    f.integer("host_bytes", host_bytes, {0, 1 << 30}, "memory of the host that the program has a window to");
    f.choice("verb", verb, kDpaVerbs,
             "what a client without a program sends: messages, or WRITEs with immediates 0, 1, 2, ...");
    f.integer("messages", messages, {1, 1 << 30}, "how many a client sends");
    f.bytes("size", size, {1, 4096}, "bytes of each");
    f.boolean("echo", echo, "the client waits for each message to come back, and compares it");
    recovery.fields(f);
    if (!program.empty() && !file.path.empty()) f.refuse("file", "and `program` are one or the other");
    if (!address && !has_program()) f.refuse("program", "is missing, or `file`: a server runs one");
    if (echo && verb != DpaVerb::kSend) f.refuse("echo", "is of `verb: send`");
    if (!program.empty() && !dpa::library_has(program)) f.refuse("program", "is none of: " + dpa::library_names());
    if (file.is_read) try {
        dpa::Program::check(file.path, file.text);
      } catch (const ConfigError& error) {
        f.refuse("file", error.what());
      }
    if (handler.empty()) handler = (program.empty() ? "program" : program) + "_handler";
  }
};

// What a server tells its client: where WRITEs go.
struct DpaTarget {
  roce::Be64 address;
  roce::Be32 key, bytes;
};

class DpaProgram final : public ClientOrServer {
 public:
  DpaProgram(const WorkloadHost& on, const DpaProgramConfig& config)
      : ClientOrServer(on, {config.address, config.port, 1024, config.recovery, "what programs send is read"}),
        config_(config) {
    if (!config.has_program()) return;
    process_ = config.program.empty() ? &host_.dpa().create_process(config.file.path, config.file.text)
                                      : &host_.dpa().create_process(dpa::library_path(config.program));
    if (config.host_bytes) window_.emplace(static_cast<std::size_t>(config.host_bytes));
    dpa::EndpointOptions with;
    with.handler = config.handler;
    with.buffer_bytes = static_cast<std::uint32_t>(std::max<std::uint64_t>(config.size, 64));
    with.host_domain = host_.alloc_pd();
    if (window_) {
      with.host_address = reinterpret_cast<std::uintptr_t>(window_->data());
      with.host_bytes = static_cast<std::uint64_t>(config.host_bytes);
      with.host_key = host_.memory().add(with.host_domain, window_->data(), with.host_bytes, IBV_ACCESS_LOCAL_WRITE);
    }
    endpoint_.emplace(*process_, with);
    config.recovery.apply(host_, endpoint_->qp());
    endpoint_->shared().role = config.address ? 1 : 0;
    endpoint_->shared().count = static_cast<std::uint32_t>(config.messages);
    endpoint_->shared().buffer_bytes = static_cast<std::uint32_t>(config.size);
  }

  void explain_waiting(Report& report, unsigned) const override {
    report.text("waits_for", config_.address ? "the server" : "clients");
    report.count("messages", static_cast<std::int64_t>(done_));
  }
  void report(Report& report) const override;

  void on_connection_event(Host& host, const ConnectionEvent& event) override;

 private:
  void connect(Host& host) override;
  void on_wc(Host& host, const ibv_wc& wc) override;
  const dpa::Process* device() const override { return process_; }
  void make_queue_pair(Host& host);
  void begin(Host& host);
  void post(Host& host);
  void post_receive(Host& host, std::uint64_t slot);
  Qp& qp() const { return endpoint_ ? endpoint_->qp() : *qp_; }
  std::uint8_t* sent(std::uint64_t message) { return memory_.data() + message % kUnderWay * config_.size; }
  std::uint8_t* received(std::uint64_t slot) { return sent(slot) + kUnderWay * config_.size; }

  const DpaProgramConfig config_;
  dpa::Process* process_ = nullptr;
  std::optional<dpa::GuardedMemory> window_;
  std::optional<dpa::Endpoint> endpoint_;
  Qp* qp_ = nullptr;  // of a client without a program
  std::vector<std::uint8_t> memory_;
  std::uint32_t key_ = 0;
  ConnectionId id_ = 0;
  DpaTarget target_{};
  std::uint64_t posted_ = 0, done_ = 0, mismatches_ = 0, connections_ = 0, called_ = 0;
};

void DpaProgram::connect(Host& host) {
  if (!endpoint_) make_queue_pair(host);
  const int error = !endpoint_ && !qp_ ? ENOMEM
                                       : host.connections().connect(program_, *config_.address, PortSpace::kTcp, port_,
                                                                    &qp(), {}, id_);
  if (error) end(host, "cannot connect: too many queue pairs or connections");
}

void DpaProgram::make_queue_pair(Host& host) {
  const std::uint32_t domain = host.alloc_pd();
  memory_.resize(2 * kUnderWay * config_.size);
  key_ = host.memory().add(domain, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  QpInit init;
  init.domain = domain;
  init.send_cq = init.receive_cq = cq_;
  init.capacity = {kUnderWay, kUnderWay, 1, 1, 0};
  qp_ = host.create_qp(init);
  if (!qp_) return;
  config_.recovery.apply(host, *qp_);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  host.modify_qp(*qp_, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (unsigned i = 0; i < kUnderWay; i++) post_receive(host, i);
}

void DpaProgram::post_receive(Host& host, std::uint64_t slot) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(received(slot)), static_cast<std::uint32_t>(config_.size), key_};
  ibv_recv_wr request{slot, nullptr, &sge, 1};
  host.post_receive(*qp_, &request, nullptr);
}

void DpaProgram::on_connection_event(Host& host, const ConnectionEvent& event) {
  steps_++;
  switch (event.type) {
    case ConnectionEventType::kConnectRequest: {
      // A program has one peer: its queues are one thread's.
      if (id_) return void(host.connections().reject(event.id));
      target_ = {};
      target_.address = endpoint_->buffers().address;
      target_.key = endpoint_->buffers().key;
      target_.bytes = endpoint_->shared().buffer_bytes;
      ConnectionOptions with;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(&target_);
      with.private_data = {bytes, sizeof target_};
      endpoint_->run();
      if (host.connections().accept(event.id, endpoint_->qp(), with) != 0)
        return void(host.connections().reject(event.id));
      id_ = event.id;
      return;
    }
    case ConnectionEventType::kEstablished:
      connections_++;
      if (config_.address) std::memcpy(&target_, event.private_data.data(), sizeof target_);
      return begin(host);
    case ConnectionEventType::kDisconnected:
      if (!config_.total.empty() && process_->call(config_.total, {}, [&](std::uint64_t n) { called_ = n; }) != 0)
        note_error("its function `total` cannot be called");
      return end(host, config_.address && !endpoint_ && done_ < static_cast<std::uint64_t>(config_.messages)
                           ? "the server has disconnected"
                           : "");
    case ConnectionEventType::kTimewaitExit:
      return;
    default:
      if (is_client()) end(host, why(event));
  }
}

void DpaProgram::begin(Host& host) {
  if (!config_.call.empty()) {
    const std::uint64_t argument = endpoint_ ? endpoint_->address() : 0;
    const auto done = [this, &host](std::uint64_t result) {
      called_ = result;
      steps_++;
      if (config_.address) host.connections().disconnect(id_);
    };
    const int error = process_ ? process_->call(config_.call, {&argument, 1}, done) : ENOENT;
    if (error) end(host, "its function `call` cannot be called");
    return;
  }
  if (qp_) post(host);
}

void DpaProgram::post(Host& host) {
  while (posted_ < static_cast<std::uint64_t>(config_.messages) && posted_ - done_ < kUnderWay / 2) {
    std::uint8_t* bytes = sent(posted_);
    for (std::uint64_t i = 0; i < config_.size; i++) bytes[i] = static_cast<std::uint8_t>(posted_ * 167 + i * 31);
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes), static_cast<std::uint32_t>(config_.size), key_};
    ibv_send_wr request{};
    request.wr_id = posted_;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = config_.verb == DpaVerb::kSend ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htobe32(static_cast<std::uint32_t>(posted_));
    request.wr.rdma.remote_addr = target_.address;
    request.wr.rdma.rkey = static_cast<std::uint32_t>(target_.key);
    if (host.post_send(*qp_, &request, nullptr) != 0) return end(host, "a work request cannot be posted");
    posted_++;
  }
}

void DpaProgram::on_wc(Host& host, const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return;
  steps_++;
  if (wc.status != IBV_WC_SUCCESS) {
    note_error("a work request failed");
    return void(host.connections().disconnect(id_));
  }
  const bool counts = (wc.opcode == IBV_WC_RECV) == config_.echo;
  if (wc.opcode == IBV_WC_RECV) {
    // They come back in order.
    if (wc.byte_len != config_.size || !std::equal(sent(done_), sent(done_) + config_.size, received(wc.wr_id)))
      mismatches_++;
    post_receive(host, wc.wr_id);
  }
  if (!counts) return;
  done_++;
  if (done_ == static_cast<std::uint64_t>(config_.messages)) return void(host.connections().disconnect(id_));
  post(host);
}

void DpaProgram::report(Report& report) const {
  report.text("role", config_.address ? "client" : "server");
  report.count("connections", static_cast<std::int64_t>(connections_));
  report.count("messages", static_cast<std::int64_t>(endpoint_ ? endpoint_->shared().messages : done_));
  report.count("mismatches", static_cast<std::int64_t>(mismatches_));
  if (endpoint_) {
    report.count("message_bytes", static_cast<std::int64_t>(endpoint_->shared().bytes));
    report.count("errors", static_cast<std::int64_t>(endpoint_->shared().errors));
  }
  if (!config_.call.empty() || !config_.total.empty()) report.count("result", static_cast<std::int64_t>(called_));
  if (window_) {
    std::int64_t bits = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(config_.host_bytes); i++)
      bits += __builtin_popcount(window_->data()[i]);
    report.count("bits_set", bits);
  }
  report.text("error", process_ && process_->stopped() ? process_->error() : error_);
}

constexpr Example kDpaProgramExamples[] = {
    {"a server whose NIC's DPA sends each message back", "program: echo\n"},
    {"a client of it", "address: 10.0.0.2\nmessages: 100\nsize: 1KiB\necho: true\n"},
    {"one that sets bits in memory of its host", "program: bitmap\nhost_bytes: 512\n"},
    {"a client of that", "address: 10.0.0.2\nverb: write_imm\nmessages: 4096\n"},
    {"a program that counts, asked in the end", "program: counter\ntotal: counter_messages\n"},
    {nullptr, nullptr}};

}  // namespace
}  // namespace rocebox::nic_model

rocebox::Component rocebox::dpa_program_workload() {
  return workload_component<nic_model::OneHostOptions<nic_model::DpaProgram, nic_model::DpaProgramConfig>>(
      "dpa_program",
      "a device program on the DPA of a NIC, connected by RDMA CM, and a host or a program that sends to it",
      nic_model::kDpaProgramExamples);
}
