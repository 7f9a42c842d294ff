// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/nic/nic_kit.h"

#include "runtime/roce/headers.h"
#include "runtime/roce/ipv4_checksum.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rocebox::test {

std::unique_ptr<Options> options_from(const std::string& component, const std::string& yaml) {
  static const Registry registry;
  config::Mistakes mistakes("test");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  std::unique_ptr<Options> options = registry.find(component)->options(registry);
  options->fields(reader);
  reader.finish();
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return options;
}

std::unique_ptr<KernelOptions> nic_test_options(const std::string& component, const std::string& yaml) {
  return std::unique_ptr<KernelOptions>(static_cast<KernelOptions*>(options_from(component, yaml).release()));
}

NicBox::NicBox(const std::string& nic, const std::string& link, std::uint64_t seed, const std::string& far,
               const std::string& near)
    : pool({.small = 8192, .large = 2048, .giant = 2}), fabric([](FabricPort, std::span<Packet>, Nanos) {}) {
  for (unsigned side = 0; side < 2; side++) {
    const std::string number = std::to_string(side + 1);
    std::string yaml = "address: 10.0.0." + number + "\n" + nic + "\n" + (side == 1 ? far : near);
    for (std::size_t at; (at = yaml.find('$')) != std::string::npos;) yaml.replace(at, 1, number);
    options.push_back(nic_test_options("nic", yaml));
  }
  options.push_back(nic_test_options("link", link));
  for (unsigned i = 0; i < 3; i++) {
    const bool is_nic = i < 2;
    std::vector<KernelPlan> plans;
    std::vector<Edge> outputs = {{Edge::kOutside, 0}}, inputs = {{0, 0}};
    std::vector<std::string> ports = {"wire"};
    if (!is_nic) outputs.push_back({Edge::kOutside, 1}), inputs.push_back({0, 1}), ports = {"a", "b"};
    plans.push_back({"k", is_nic ? "nic" : "link", is_nic ? Shape::kOneWay : Shape::kTwoSided, outputs,
                     [this, i](Stats& stats) { return options[i]->make(stats); }});
    devices.push_back(
        std::make_unique<PipelineDevice>("d" + std::to_string(i), ports, inputs, std::move(plans), pool, seed));
    devices.back()->set_batch_max(1);
    const unsigned number = fabric.add(*devices.back());
    if (!is_nic) continue;
    nics.push_back(static_cast<nic_model::Nic*>(&devices.back()->kernel(0)));
    nics.back()->host().set_waker([this, number] { fabric.wake(number); });
    hosts.push_back(std::make_unique<TestHost>(*nics.back()));
  }
  fabric.join({0, 0}, {2, 0});
  fabric.join({2, 1}, {1, 0});
}

NicBox::~NicBox() {
  run();
  EXPECT_EQ(fabric.held(), 0u) << "packets stayed";
}

void NicBox::on(unsigned side, std::function<void(nic_model::Host&)> what) {
  hosts[side]->to_do.push_back(std::move(what));
  hosts[side]->host.start_again(hosts[side]->number);
  fabric.run(now);
}

void NicBox::connect(const PairOptions& o) {
  for (unsigned side = 0; side < 2; side++) {
    on(side, [&](nic_model::Host& host) {
      Side& s = sides[side];
      s.host = hosts[side].get();
      s.memory.resize(o.bytes);
      s.pd = host.alloc_pd();
      s.key = o.without_bytes ? host.memory().add_without_bytes(s.pd, s.address(), s.memory.size(), o.access)
                              : host.memory().add(s.pd, s.memory.data(), s.memory.size(), o.access);
      if (!s.cq) s.cq = host.create_cq(4096, s.host->number);
      nic_model::QpInit init;
      init.type = o.type;
      init.domain = s.pd;
      init.send_cq = init.receive_cq = s.cq;
      init.capacity = {o.send_wr, o.receive_wr, 4, 4, 64};
      ibv_srq_init_attr shared{};
      shared.attr = {o.shared_receives, 4, 0};
      s.shared = o.shared_receives ? host.create_srq(shared) : nullptr;
      init.shared_receive_queue = s.shared;
      s.qp = host.create_qp(init);
      if (o.recovery) {
        ASSERT_EQ(0, host.modify_loss_recovery(*s.qp, *o.recovery));
      }
      host.arm(*s.cq, o.solicited_only);
    });
    ASSERT_NE(sides[side].qp, nullptr);
  }
  for (unsigned side = 0; side < 2; side++) make_ready(side, *sides[side].qp, sides[1 - side].qp->number(), o);
}

void NicBox::make_ready(unsigned side, nic_model::Qp& qp, std::uint32_t peer, const PairOptions& o) {
  on(side, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = o.access;
    a.qkey = 0x1234;
    const bool ud = o.type == IBV_QPT_UD, rc = o.type == IBV_QPT_RC;
    ASSERT_EQ(0, host.modify_qp(
                     qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = o.mtu;
    a.dest_qp_num = peer;
    a.rq_psn = o.psn;
    a.max_dest_rd_atomic = o.rd_atomic;
    a.min_rnr_timer = o.min_rnr_timer;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.traffic_class = o.traffic_class;
    const roce::IpAddress far = roce::ipv4(10, 0, 0, static_cast<std::uint8_t>(2 - side));
    std::copy(far.begin(), far.end(), a.ah_attr.grh.dgid.raw);
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    ASSERT_EQ(0, host.modify_qp(qp, a,
                                IBV_QP_STATE | (ud ? 0 : connected) |
                                    (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    if (o.far_stays_in_rtr && side == 1) return;
    a.qp_state = IBV_QPS_RTS;
    a.sq_psn = o.psn;
    a.timeout = o.timeout;
    a.retry_cnt = o.retry_cnt;
    a.rnr_retry = o.rnr_retry;
    a.max_rd_atomic = o.rd_atomic;
    ASSERT_EQ(0, host.modify_qp(
                     qp, a,
                     IBV_QP_STATE | IBV_QP_SQ_PSN |
                         (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
  });
}

void NicBox::disconnect() {
  for (unsigned side = 0; side < 2; side++) on(side, [&](nic_model::Host& host) { disconnect(host, side); });
}

void NicBox::disconnect(nic_model::Host& host, unsigned side) {
  Side& s = sides[side];
  host.destroy_qp(*std::exchange(s.qp, nullptr));
  if (s.shared) {
    EXPECT_EQ(0, host.destroy_srq(*std::exchange(s.shared, nullptr)));
  }
  EXPECT_TRUE(host.memory().remove(s.key));
}

int NicBox::post(unsigned side, std::uint64_t id, ibv_wr_opcode opcode, std::uint64_t offset, std::uint32_t bytes,
                 std::uint64_t remote_offset, int flags, std::function<void(ibv_send_wr&)> more) {
  int result = -1;
  on(side, [&](nic_model::Host& host) {
    ibv_sge sge{sides[side].address() + offset, bytes, sides[side].key};
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = bytes ? 1 : 0;
    wr.send_flags = static_cast<unsigned>(flags);
    wr.wr.rdma.remote_addr = sides[1 - side].address() + remote_offset;
    wr.wr.rdma.rkey = sides[1 - side].key;
    if (more) more(wr);
    const ibv_send_wr* bad = nullptr;
    result = host.post_send(*sides[side].qp, &wr, &bad);
  });
  return result;
}

int NicBox::post_receive(unsigned side, std::uint64_t id, std::uint64_t offset, std::uint32_t bytes) {
  int result = -1;
  on(side, [&](nic_model::Host& host) {
    ibv_sge sge{sides[side].address() + offset, bytes, sides[side].key};
    ibv_recv_wr wr{id, nullptr, &sge, 1};
    const ibv_recv_wr* bad = nullptr;
    result = host.post_receive(*sides[side].qp, &wr, &bad);
  });
  return result;
}

void NicBox::run(Nanos span) {
  const Nanos end = now + span;
  while (fabric.next_deadline() <= end) fabric.run(now = std::max(now, fabric.next_deadline()));
  now = end;
}

std::uint64_t NicBox::count(unsigned side, std::string_view name) const {
  std::uint64_t value = UINT64_MAX;
  devices[side]->books().for_each_counter([&](const CounterView& view) {
    if (view.name == name) value = view.value;
  });
  return value;
}

std::string NicBox::state() const {
  std::string text;
  for (unsigned side = 0; side < 2; side++) {
    const nic_model::Qp& qp = *sides[side].qp;
    text += "\nqp " + std::to_string(side) + ": state " + std::to_string(qp.attributes.state) + " una " +
            std::to_string(qp.requester.unacknowledged_psn()) + " next " + std::to_string(qp.requester.next_psn()) +
            " epsn " + std::to_string(qp.responder.expected_psn());
    for (const ibv_wc& wc : hosts[side]->completions)
      if (wc.status != IBV_WC_SUCCESS) text += " wr " + std::to_string(wc.wr_id) + ": " + std::to_string(wc.status);
    devices[side]->books().for_each_counter([&](const CounterView& view) {
      if (view.value) text += "\n  " + std::string(view.name) + " " + std::to_string(view.value);
    });
  }
  return text;
}

int post_datagram(nic_model::Host& host, Side& from, const nic_model::AddressHandle& to, std::uint32_t bytes) {
  ibv_sge sge{from.address(), bytes, from.key};
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  return host.post_send(*from.qp, &request, nullptr, &to);
}

void put_number(std::uint8_t* at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) at[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
}

void NicBox::inject(unsigned side, const ForgedDatagram& of) {
  const std::size_t bytes = of.payload.size();
  std::vector<std::uint8_t> b(42 + bytes);
  put_number(&b[0], 0x02720A000000 | of.destination, 6);
  put_number(&b[6], 0x02720A000000 | of.source, 6);
  put_number(&b[12], 0x0800, 2);
  put_number(&b[14], 0x4500, 2);
  put_number(&b[16], 28 + bytes, 2);
  put_number(&b[22], 64u << 8 | 17, 2);
  put_number(&b[26], 0x0A000000u | of.source, 4);
  put_number(&b[30], 0x0A000000u | of.destination, 4);
  roce::store_ipv4_checksum(*reinterpret_cast<roce::Ipv4*>(&b[14]));
  put_number(&b[34], of.source_port, 2);
  put_number(&b[36], of.destination_port, 2);
  put_number(&b[38], 8 + bytes, 2);
  std::copy(of.payload.begin(), of.payload.end(), b.begin() + 42);
  std::uint32_t sum = 17 + 8 + static_cast<std::uint32_t>(bytes);  // RFC 768
  for (std::size_t i = 26; i < b.size(); i += 2)
    sum += static_cast<std::uint32_t>(b[i] << 8 | (i + 1 < b.size() ? b[i + 1] : 0));
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  put_number(&b[40], ~sum ^ of.checksum_off, 2);
  PacketPtr packet = pool.allocate(static_cast<std::uint32_t>(b.size()));
  std::memcpy(packet->data(), b.data(), b.size());
  std::vector<Packet> one = {packet.release()};
  fabric.inject({side, 0}, one);
  fabric.run(now);
}

}  // namespace rocebox::test
