// SPDX-License-Identifier: BSD-3-Clause
// player CASES.yaml [RECOVERY]: plays each case against a NIC, packet by packet, and prints what it saw as a line of
// JSON. It judges nothing: model.py does.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "nic_model/host/workloads/programs.h"
#include "nic_model/nic.h"
#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/config/text_file.h"
#include "runtime/engine/fabric.h"
#include "runtime/engine/pipeline_device.h"
#include "runtime/process/eal.h"
#include "runtime/roce/build.h"
#include "tests/conformance/step.h"

namespace rocebox::conformance {
namespace {

using nic_model::Host;
using Json = nlohmann::ordered_json;

constexpr PoolSizes kSizes{.small = 8192, .large = 64, .giant = 2};
constexpr std::uint64_t kRegionBytes = 4096, kReceiveBytes = 1 << 16, kRemoteAddress = 0x10000;
constexpr std::uint32_t kPeerQpn = 0x99, kStrangersQpn = 0x98;
// What windows show of the region: the second quarter. What `joined` is made of: its halves, the second one first.
constexpr std::uint64_t kWindowAt = 1024, kWindowBytes = 1024, kHalf = 2048;
const roce::IpAddress kOwn = roce::ipv4(10, 0, 0, 1), kPeer = roce::ipv4(10, 0, 0, 2);

constexpr std::uint32_t kAllRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::unique_ptr<KernelOptions> nic_options(const std::string& recovery) {
  static const Registry registry;
  config::Mistakes mistakes("player");
  const config::Node node = config::parse_yaml(
      "address: 10.0.0.1\nmac: '02:00:00:00:00:01'\nneighbors: [{address: 10.0.0.2, mac: '02:00:00:00:00:02'}]\n"
      "recovery: " +
          recovery,
      mistakes);
  config::FieldsReader reader(&node, mistakes);
  std::unique_ptr<Options> options = registry.find("nic")->options(registry);
  options->fields(reader);
  if (!mistakes.none()) throw std::runtime_error(mistakes.text());
  return std::unique_ptr<KernelOptions>(static_cast<KernelOptions*>(options.release()));
}

// A NIC with one queue pair, whose peer is the case.
class Player final : public nic_model::HostProgram {
 public:
  Player(Pool& pool, const std::string& recovery, const config::Node* qp)
      : pool_(pool),
        options_(nic_options(recovery)),
        fabric_([this](FabricPort, std::span<Packet> packets, Nanos) { leave(packets); }) {
    std::vector<KernelPlan> plans;
    plans.push_back(
        {"nic", "nic", Shape::kOneWay, {{Edge::kOutside, 0}}, [this](Stats& stats) { return options_->make(stats); }});
    device_ = std::make_unique<PipelineDevice>("nic", std::vector<std::string>{"wire"}, std::vector<Edge>{{0, 0}},
                                               std::move(plans), pool, 1);
    device_->set_batch_max(1);
    const unsigned number = fabric_.add(*device_);
    nic_ = static_cast<nic_model::Nic*>(&device_->kernel(0));
    nic_->host().set_waker([this, number] { fabric_.wake(number); });
    program_ = nic_->host().submit(*this);
    in_call([&](Host& host) { prepare(host, qp); });
  }

  void play(const std::string& text) {
    now_ += kMicrosecond;
    const std::size_t space = text.find(' ');
    const std::string verb = text.substr(0, space), rest = text.substr(space + 1);
    if (verb == "wait")
      run_to(now_ + to_nanos(rest));
    else if (verb == "in")
      receive_packets(rest);
    else if (verb == "post")
      in_call([&](Host& host) { post(host, Step(rest)); });
    else if (verb == "remove")
      in_call([&](Host& host) { expect(host.memory().remove(keys_.at(rest)) ? 0 : ENOENT); });
    else if (verb == "receive")
      in_call([&](Host& host) { post_receive(host, Step("RECEIVE " + rest)); });
    else
      throw std::runtime_error("a step begins with in, post, receive, remove or wait, not with " + verb);
    run_to(now_);
  }

  Json seen() const {
    constexpr const char* kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    constexpr std::size_t kGrhBytes = 40;  // before a datagram; of its address family and its own business
    const std::size_t skipped = service_ == 0x60 ? kGrhBytes : 0;
    return {{"out", out_},
            {"completions", completions_},
            {"state", kStates[qp_->attributes.state]},
            {"memory", runs(memory_, 0)},
            {"received", runs(receives_, skipped)}};
  }

  void on_start(Host& host) override { tasks_.run(host); }
  void on_completion(Host& host, nic_model::CompletionQueue& cq) override {
    nic_model::complete_all(host, cq, [&](const ibv_wc& wc) { completed(wc); });
  }

 private:
  // Where bytes are that are not 0: hexadecimal, by their place.
  static Json runs(const std::vector<std::uint8_t>& bytes, std::size_t from) {
    Json found = Json::object();
    for (std::size_t i = from; i < bytes.size(); i++) {
      if (bytes[i] == 0) continue;
      std::string text;
      const std::size_t begin = i;
      for (; i < bytes.size() && bytes[i] != 0; i++) text += fmt::format("{:02x}", bytes[i]);
      found[std::to_string(begin)] = text;
    }
    return found;
  }
  void in_call(std::function<void(Host&)> what) {
    tasks_.add(nic_->host(), program_, std::move(what));
    run_to(now_);
  }
  void run_to(Nanos until) {
    fabric_.advance_to(until);
    fabric_.run(now_ = until);
    while (fabric_.next_deadline() <= until) fabric_.run(until);
  }
  void prepare(Host& host, const config::Node* qp) {
    const auto number = [&](const char* name, std::uint64_t otherwise) {
      const config::Node* node = qp ? qp->find(name) : nullptr;
      return node ? to_number(node->scalar) : otherwise;
    };
    const config::Node* type = qp ? qp->find("type") : nullptr;
    const std::string service = type ? type->scalar : "RC";
    service_ = service == "RC" ? 0x00 : service == "UC" ? 0x20 : 0x60;
    memory_.resize(kRegionBytes);
    receives_.resize(kReceiveBytes);
    const std::uint32_t domain = host.alloc_pd(), other = host.alloc_pd();
    const auto key = [&](std::uint32_t of, std::uint32_t access) {
      return host.memory().add(of, memory_.data(), memory_.size(), access);
    };
    keys_["good"] = key(domain, kAllRights | IBV_ACCESS_MW_BIND);
    keys_["read_only"] = key(domain, IBV_ACCESS_REMOTE_READ);
    keys_["write_only"] = key(domain, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    keys_["other_domain"] = key(other, kAllRights);
    keys_["receive"] = host.memory().add(domain, receives_.data(), receives_.size(), IBV_ACCESS_LOCAL_WRITE);
    keys_["unknown"] = keys_["good"] ^ 0x77;
    keys_["joined"] = host.memory().add_indirect(
        domain, address(), {{keys_["good"], address() + kHalf, kHalf}, {keys_["good"], address(), kHalf}}, kAllRights);
    keys_["null"] = host.memory().add_null(domain);
    nic_model::QpInit init;
    init.type = service == "RC" ? IBV_QPT_RC : service == "UC" ? IBV_QPT_UC : IBV_QPT_UD;
    init.domain = domain;
    init.send_cq = init.receive_cq = host.create_cq(1024, program_);
    init.capacity = {64, 64, 1, 1, 0};
    qp_ = host.create_qp(init);
    host.arm(*init.send_cq);
    const auto window = [&](std::uint32_t rights, std::uint32_t qpn) {
      nic_model::MemoryError error = nic_model::MemoryError::kNone;
      const std::uint32_t bound = host.memory().bind(host.memory().add_window(domain), 0x5A, keys_["good"],
                                                     address() + kWindowAt, kWindowBytes, rights, {domain, qpn}, error);
      expect(error == nic_model::MemoryError::kNone ? 0 : EINVAL);
      return bound;
    };
    keys_["window"] = window(kAllRights, qp_->number());
    keys_["read_window"] = window(IBV_ACCESS_REMOTE_READ, qp_->number());
    keys_["strangers_window"] = window(kAllRights, kStrangersQpn);
    keys_["unbound_window"] = host.memory().add_window(domain);
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = access(qp ? qp->find("access") : nullptr);
    a.qkey = 0x1234;
    const bool rc = init.type == IBV_QPT_RC, ud = init.type == IBV_QPT_UD;
    expect(host.modify_qp(*qp_, a,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_256;
    a.dest_qp_num = kPeerQpn;
    a.rq_psn = a.sq_psn = static_cast<std::uint32_t>(number("psn", 0));
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(number("max_dest_rd_atomic", 16));
    a.min_rnr_timer = static_cast<std::uint8_t>(number("min_rnr_timer", 1));
    a.ah_attr.is_global = 1;
    std::copy(kPeer.begin(), kPeer.end(), a.ah_attr.grh.dgid.raw);
    const int to_rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    expect(host.modify_qp(
        *qp_, a, IBV_QP_STATE | (ud ? 0 : to_rtr) | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    a.qp_state = IBV_QPS_RTS;
    a.timeout = static_cast<std::uint8_t>(number("timeout", 8));
    a.retry_cnt = static_cast<std::uint8_t>(number("retry_cnt", 2));
    a.rnr_retry = static_cast<std::uint8_t>(number("rnr_retry", 2));
    a.max_rd_atomic = static_cast<std::uint8_t>(number("max_rd_atomic", 16));
    const int to_rts = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    expect(host.modify_qp(*qp_, a, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? to_rts : 0)));
  }
  static void expect(int error) {
    if (error) throw std::runtime_error("the queue pair cannot be made");
  }
  static unsigned access(const config::Node* list) {
    if (!list) return kAllRights;
    unsigned flags = 0;
    for (const config::Node& item : list->items) flags |= right_of(item.scalar);
    return flags;
  }

  // Packets of one instant stand behind each other with `;`.
  void receive_packets(const std::string& text) {
    std::vector<Packet> packets;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find("; ", at), text.size());
      const Step step(text.substr(at, end - at));
      for (std::uint64_t i = 0; i < step.number("times", 1); i++) packets.push_back(packet(step).release());
      at = end + 2;
    }
    fabric_.advance_to(now_);
    fabric_.inject({0, 0}, packets);
    fabric_.run(now_);
  }

  PacketPtr packet(const Step& step) {
    roce::PacketSpec spec;
    spec.underlay.source_mac = {2, 0, 0, 0, 0, 2};
    spec.underlay.destination_mac = {2, 0, 0, 0, 0, 1};
    spec.underlay.addresses = {step.text("source") == "stranger" ? roce::ipv4(10, 0, 0, 9) : kPeer, kOwn};
    spec.opcode = opcode_of(step.name, step.text("service") == "UC" ? 0x20 : service_, spec.syndrome);
    spec.ack_req = step.has("ack");
    spec.pkey = static_cast<std::uint16_t>(step.number("pkey", 0xFFFF));
    spec.destination_qp = qp_->number() + (step.text("qpn") == "unknown" ? 7 : 0);
    spec.psn = step.psn;
    spec.virtual_address = address() + step.number("at", 0);
    spec.rkey = keys_.at(step.text("rkey").empty() ? "good" : step.text("rkey"));
    std::vector<std::uint8_t> payload(step.number("bytes", 0));
    for (std::size_t i = 0; i < payload.size(); i++)
      payload[i] = step.values.contains("fill") ? static_cast<std::uint8_t>(step.number("fill", 0))
                                                : static_cast<std::uint8_t>(1 + (step.psn + i) % 255);
    spec.payload = payload;
    spec.dma_length = static_cast<std::uint32_t>(step.number("length", payload.size()));
    spec.swap_add = step.number("add", step.number("swap", 0));
    spec.compare = step.number("compare", 0);
    spec.original = step.number("original", 0);
    spec.immediate = static_cast<std::uint32_t>(step.number("imm", 0));
    spec.msn = static_cast<std::uint32_t>(step.number("msn", 0));
    spec.qkey = static_cast<std::uint32_t>(step.number("qkey", 0));
    spec.source_qp = kPeerQpn;
    spec.syndrome = static_cast<std::uint8_t>(step.number("syndrome", spec.syndrome) | step.number("timer", 0));
    PacketPtr made = pool_.allocate(roce::built_bytes(spec));
    roce::build(*made, spec);
    if (step.text("icrc") == "wrong") made->data()[made->size() - 1] ^= 1;
    return made;
  }

  void post(Host& host, const Step& step) {
    const bool is_atomic = step.name == "FETCH_ADD";
    const auto bytes = static_cast<std::uint32_t>(is_atomic ? 8 : step.number("bytes", 0));
    ibv_sge sge{address() + step.number("at", 0), bytes,
                keys_.at(step.text("lkey").empty() ? "good" : step.text("lkey"))};
    ibv_send_wr request{};
    request.wr_id = posted_++;
    request.opcode = step.name == "SEND"    ? IBV_WR_SEND
                     : step.name == "WRITE" ? IBV_WR_RDMA_WRITE
                     : step.name == "READ"  ? IBV_WR_RDMA_READ
                     : is_atomic            ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                            : IBV_WR_LOCAL_INV;
    request.invalidate_rkey = keys_.at(step.text("rkey").empty() ? "window" : step.text("rkey"));
    request.sg_list = &sge;
    request.num_sge = bytes > 0;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = kRemoteAddress;
    request.wr.rdma.rkey = 1;
    if (is_atomic) {
      request.wr.atomic.remote_addr = kRemoteAddress;
      request.wr.atomic.compare_add = 1;
      request.wr.atomic.rkey = 1;
    }
    expect(host.post_send(*qp_, &request, nullptr));
  }
  void post_receive(Host& host, const Step& step) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(receives_.data()), step.psn,
                keys_.at(step.text("lkey").empty() ? "receive" : step.text("lkey"))};
    ibv_recv_wr request{receives_posted_++, nullptr, &sge, step.psn > 0};
    expect(host.post_receive(*qp_, &request, nullptr));
  }

  void completed(const ibv_wc& wc) {
    const bool received = wc.opcode & IBV_WC_RECV;
    std::string line = fmt::format("{} {} {}", received ? "receive" : "send", wc.wr_id, status_name(wc.status));
    if (received && wc.status == IBV_WC_SUCCESS) {
      line += fmt::format(" bytes={}", wc.byte_len);
      if (wc.wc_flags & IBV_WC_WITH_IMM) line += fmt::format(" imm={}", be32toh(wc.imm_data));
    }
    completions_.push_back(line);
  }
  void leave(std::span<Packet> packets) {
    for (const Packet packet : packets) {
      out_.push_back(text_of(packet, kRemoteAddress));
      rte_pktmbuf_free(packet.mbuf());
    }
  }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }

  Pool& pool_;
  std::unique_ptr<KernelOptions> options_;
  std::unique_ptr<PipelineDevice> device_;
  Fabric fabric_;
  nic_model::Nic* nic_ = nullptr;
  nic_model::Qp* qp_ = nullptr;
  std::uint32_t program_ = 0;
  std::uint8_t service_ = 0;
  std::uint64_t posted_ = 0, receives_posted_ = 0;
  Nanos now_ = 0;
  std::vector<std::uint8_t> memory_, receives_;
  std::map<std::string, std::uint32_t> keys_;
  nic_model::HostTasks tasks_;
  std::vector<std::string> out_, completions_;
};

int play_all(const char* file, const std::string& recovery) {
  config::Mistakes mistakes(file);
  const config::Node root = config::parse_yaml(config::read_text_file(file), mistakes);
  if (!mistakes.none()) throw std::runtime_error(mistakes.text());
  Pool pool(kSizes);
  for (const config::Node& row : root.items) {
    Json line = {{"name", row.find("name")->scalar}};
    {
      Player player(pool, recovery, row.find("qp"));
      for (const config::Node& step : row.find("do")->items) player.play(step.scalar);
      line.update(player.seen());
    }
    line["packets_left"] = pool.in_use();
    fmt::print("{}\n", line.dump());
  }
  return 0;
}

}  // namespace
}  // namespace rocebox::conformance

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: player CASES.yaml [RECOVERY]\n", stderr);
    return 2;
  }
  try {
    rocebox::start_eal(rocebox::conformance::kSizes.mebibytes());
    return rocebox::conformance::play_all(argv[1], argc == 3 ? argv[2] : "go_back_n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "player: {}\n", error.what());
    return 1;
  }
}
