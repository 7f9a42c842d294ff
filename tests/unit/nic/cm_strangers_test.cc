// SPDX-License-Identifier: BSD-3-Clause
// RDMA CM and datagrams; MADs of those who do not keep to the rules.
#include <random>

#include "nic_model/host/connect.h"
#include "tests/unit/nic/cm_kit.h"

namespace rocebox::test {
namespace {

using Type = ConnectionEventType;

// Whose host sends whatever it likes to the other side's QP1, from a queue pair of datagrams.
class Stranger : public CmBox {
 public:
  // Who may have QP1's Q_Key as its own; a work request cannot bring it (10.2.5).
  explicit Stranger(const std::string& link = "delay: 1us") : CmBox(link, "rate: 100Gbps\ncm_response_timeout: 10") {
    datagrams = make_qp(0, IBV_QPT_UD);
    on(0, [&](Host& host) { EXPECT_EQ(0, nic_model::start_datagrams(host, *datagrams, roce::kGsiQkey)); });
  }
  template <class Bytes>
  void send(const Bytes& bytes, std::uint32_t qkey = roce::kGsiQkey) {
    on(0, [&](Host& host) {
      std::copy(bytes.begin(), bytes.end(), sides[0].memory.begin());
      ibv_sge sge{sides[0].address(), static_cast<std::uint32_t>(bytes.size()), sides[0].key};
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.send_flags = IBV_SEND_SIGNALED;
      const auto to = host.create_ah({2, 0x72, 10, 0, 0, 2}, roce::ipv4(10, 0, 0, 2), roce::kGsiQpn, qkey);
      EXPECT_EQ(0, host.post_send(*datagrams, &wr, nullptr, &to));
    });
    run(kMicrosecond * 10);
  }
  Qp* datagrams;
};

roce::CmWholeReq a_request(std::uint32_t id = 0x1234, std::uint32_t qpn = 0x99) {
  roce::CmWholeReq whole{};
  whole.request.local_communication_id = id;
  whole.request.service_id = roce::kIpCmService | roce::kIpCmTcp | kCmPort;
  whole.request.local_qpn = qpn;
  whole.request.timeout_retries = 10 << 3;
  whole.request.mtu_rdc_rnr = 3 << 4;
  whole.request.retries_srq_type = 2 << 4;
  return whole;
}
constexpr std::array<std::uint8_t, 36> kIpv4Header = {0, 0x40};

TEST(CmStrangers, EachIsAnsweredOrIgnoredByName) {
  Stranger box;
  ASSERT_EQ(0, box.listen(1));
  const auto rejects = [&](const roce::CmWholeReq& whole, std::span<const std::uint8_t> data) {
    const std::uint64_t before = box.count(1, "cm_rejects_sent");
    box.send(roce::cm_mad(5, whole, data));
    return box.count(1, "cm_rejects_sent") - before;
  };
  roce::CmWholeReq whole = a_request();
  whole.request.service_id = 0x1234;
  EXPECT_EQ(rejects(whole, kIpv4Header), 1u) << "no IP CM service";
  whole = a_request();
  whole.request.timeout_service_flow = 1 << 1;
  EXPECT_EQ(rejects(whole, kIpv4Header), 1u) << "an unreliable connection";
  whole = a_request();
  whole.request.mtu_rdc_rnr = 6 << 4;
  EXPECT_EQ(rejects(whole, kIpv4Header), 1u) << "a path MTU that there is not";
  EXPECT_EQ(rejects(a_request(), {}), 1u) << "no IP version";
  EXPECT_EQ(box.held(1), 0u);
  roce::CmRep rep{};
  rep.local_communication_id = 1, rep.remote_communication_id = 2;
  box.send(roce::cm_mad(5, rep));
  EXPECT_EQ(box.count(1, "cm_rejects_sent"), 5u) << "a REP for no REQ";
  EXPECT_EQ(box.count(1, "drop_cm_refused"), 5u);
  EXPECT_EQ(box.count(0, "drop_cm_unknown"), 5u) << "a REJ is never answered";

  roce::CmDreq dreq{};
  dreq.local_communication_id = 1, dreq.remote_communication_id = 2;
  box.send(roce::cm_mad(5, dreq));
  EXPECT_EQ(box.count(1, "tx_mads"), 6u) << "who asks to end what is long forgotten is told that it has";
  roce::CmRtu rtu{};
  box.send(roce::cm_mad(5, rtu));
  box.send(roce::cm_mad(5, roce::CmDrep{}));
  box.send(roce::cm_mad(5, roce::CmMra{}));
  box.send(roce::cm_mad(5, roce::CmWholeSidrRep{}));
  EXPECT_EQ(box.count(1, "drop_cm_unknown"), 5u);
  EXPECT_EQ(box.count(1, "tx_mads"), 6u);

  auto bytes = roce::cm_mad(5, rtu);
  box.send(std::span(bytes).first(255));
  bytes[1] = 4;
  box.send(bytes);  // performance management
  EXPECT_EQ(box.count(1, "drop_mad"), 2u);
  box.send(roce::cm_mad(5, a_request(), kIpv4Header), 0x1234);
  EXPECT_EQ(box.count(1, "drop_bad_qkey"), 1u);
  EXPECT_EQ(box.held(1), 0u);
  EXPECT_TRUE(box.events(1).empty());
}

// As rdma_cm has it: a program that listens for connections is not asked about datagrams, nor the other way round.
TEST(CmStrangers, AMessageForAServiceOfTheOtherKindIsRefused) {
  Stranger box;
  ASSERT_EQ(0, box.listen(1, PortSpace::kTcp));
  ASSERT_EQ(0, box.listen(1, PortSpace::kUdp));
  roce::CmSidrReq sidr{};
  sidr.request_id = 7;
  sidr.service_id = roce::kIpCmService | roce::kIpCmTcp | kCmPort;
  box.send(roce::cm_mad(5, sidr, kIpv4Header));
  roce::CmWholeReq whole = a_request();
  whole.request.service_id = roce::kIpCmService | roce::kIpCmUdp | kCmPort;
  box.send(roce::cm_mad(5, whole, kIpv4Header));
  sidr.service_id = roce::kIpCmService | roce::kIpCmUdp | kCmPort;
  box.send(roce::cm_mad(5, sidr));  // of no IP version
  EXPECT_TRUE(box.events(1).empty()) << "no program is asked";
  EXPECT_EQ(box.held(1), 0u);
  EXPECT_EQ(box.count(1, "drop_cm_refused"), 3u);
  EXPECT_EQ(box.count(1, "cm_rejects_sent"), 1u) << "the others are told by a SIDR_REP";
  EXPECT_EQ(box.count(1, "tx_mads"), 3u);
  box.send(roce::cm_mad(5, sidr, kIpv4Header));
  EXPECT_EQ(box.events(1), Types{Type::kConnectRequest});
}

// Whoever ends it: its packets may still be under way, and its queue pair's number is not free.
TEST(CmStrangers, ARejectOfAConnectionThatIsEstablishedLeadsToTimewait) {
  Stranger box;
  ASSERT_EQ(0, box.listen(1));
  Qp* const qp = box.make_qp(1);
  box.spare[1].push_back(qp);
  box.accept_all(1);
  const ConnectionId id = box.connect(0, box.make_qp(0));
  box.run(kMillisecond);
  ASSERT_EQ(box.last(1).type, Type::kEstablished);
  roce::CmWholeRej rej{};
  rej.reject.remote_communication_id = box.last(1).id;
  rej.reject.local_communication_id = id;
  rej.reject.message = 2 << 6;
  box.send(roce::cm_mad(5, rej));
  EXPECT_EQ(box.last(1).type, Type::kDisconnected);
  EXPECT_EQ(qp->attributes.state, IBV_QPS_ERR);
  EXPECT_EQ(box.held(1), 1u);
  box.run();
  EXPECT_EQ(box.last(1).type, Type::kTimewaitExit);
  EXPECT_EQ(box.held(1), 0u);
}

// Who is not the other side does not end a connection, even from the other side's address.
TEST(CmStrangers, ForgedEndsNeedAllNumbersRight) {
  Stranger box;
  ASSERT_EQ(0, box.listen(1));
  Qp* const qp = box.make_qp(1);
  box.spare[1].push_back(qp);
  box.accept_all(1);
  Qp* const near = box.make_qp(0);
  const ConnectionId id = box.connect(0, near);
  box.run(kMillisecond);
  ASSERT_EQ(box.last(1).type, Type::kEstablished);
  roce::CmDreq dreq{};
  dreq.remote_communication_id = box.last(1).id;
  dreq.local_communication_id = id;
  dreq.remote_qpn = qp->number() + 1;
  box.send(roce::cm_mad(5, dreq));
  dreq.local_communication_id = id + 1;
  dreq.remote_qpn = qp->number();
  box.send(roce::cm_mad(5, dreq));
  roce::CmWholeRej rej{};
  rej.reject.remote_communication_id = box.last(1).id;
  rej.reject.local_communication_id = id + 1;
  rej.reject.message = 2 << 6;
  box.send(roce::cm_mad(5, rej));
  EXPECT_EQ(box.count(1, "drop_cm_unknown"), 3u);
  rej.reject.local_communication_id = id;
  rej.reject.message = 0;
  box.send(roce::cm_mad(5, rej));
  EXPECT_EQ(box.count(1, "drop_cm_state"), 1u) << "its own REQ it has never sent";
  EXPECT_EQ(qp->attributes.state, IBV_QPS_RTS);
  dreq.local_communication_id = id;
  box.send(roce::cm_mad(5, dreq));
  EXPECT_EQ(box.last(1).type, Type::kDisconnected) << "all of them right";
}

// Whatever comes: no crash, a bounded table, every packet counted once, and the service still serves.
TEST(CmStrangers, AnyBytesAreSurvived) {
  // The NIC at side 0 is not to hear of what is said in its name: it would object.
  Stranger box("delay: 1us\nreverse: {match: {kind: roce}, loss: 100%}");
  ASSERT_EQ(0, box.listen(1, PortSpace::kTcp, 64));
  box.on(1, [&](Host& host) {
    ASSERT_EQ(0, host.connections().listen(box.hosts[1]->number, PortSpace::kUdp, kCmPort + 1, 64));
  });
  std::mt19937 random(7);
  const auto draw = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random()) % below; };
  Qp* const resolved = box.make_qp(1, IBV_QPT_UD);
  struct Known {
    ConnectionId id;
    std::uint32_t remote_id;
  };
  std::vector<Known> known;
  box.hosts[1]->on_connection = [&](Host& host, const ConnectionEvent& event) {
    known.push_back({event.id, event.remote_qpn});
    if (event.type != Type::kConnectRequest) return;
    EXPECT_EQ(event.port, kCmPort + (event.space == PortSpace::kUdp)) << "each kind for a service of its own";
    if (draw(40) == 0) return;
    if (event.space == PortSpace::kUdp) {
      EXPECT_EQ(0, host.connections().accept(event.id, *resolved));
    } else if (draw(2) == 0) {
      EXPECT_EQ(0, host.connections().reject(event.id));
    } else {
      nic_model::QpInit init = box.sides[1].qp->init;
      init.type = IBV_QPT_RC;
      Qp* const qp = host.create_qp(init);
      if (qp && host.connections().accept(event.id, *qp) != 0) host.destroy_qp(*qp);
    }
  };
  constexpr unsigned kMads = 4000;
  for (unsigned i = 0; i < kMads; i++) {
    const std::uint32_t number = 2 + draw(200);  // of the queue pair, and the communication ID: so that some fit
    auto bytes = roce::cm_mad(draw(100), a_request(number, number), kIpv4Header);
    bytes[17] = static_cast<std::uint8_t>(0x10 + draw(11));
    // Mostly each kind asks for a service of its own, and says which IP it is of.
    if ((bytes[17] == 0x17) != (draw(8) == 0)) bytes[32 + 4 + 1] = 0x11, bytes[32 + 7]++;
    if (bytes[17] == 0x17 && draw(8)) bytes[32 + 8 + 1] = 0x40;
    const auto put = [&](unsigned at, std::uint32_t value) {
      for (unsigned j = 0; j < 4; j++) bytes[at + j] = static_cast<std::uint8_t>(value >> (24 - 8 * j));
    };
    const auto all = static_cast<std::uint32_t>(known.size());
    if (bytes[17] != 0x10 && bytes[17] != 0x17 && all) {
      const Known& one = known[all - 1 - draw(std::min(all, 4u))];
      put(24, one.remote_id);
      put(28, one.id);
    }
    for (unsigned flips = draw(4); flips > 0; flips--) bytes[4 + draw(160)] ^= static_cast<std::uint8_t>(1u << draw(8));
    box.send(bytes);
    if (all && draw(50) == 0) box.destroy(1, known[draw(all)].id);
  }
  EXPECT_GT(box.count(1, "rx_mads"), kMads / 2);
  EXPECT_GT(box.count(1, "cm_connections"), 0u) << "some got through to the end";
  box.run(3000 * kSecond);
  // What nobody has decided on is let go; then all is as before.
  for (const Known& one : known) box.destroy(1, one.id);
  box.run(3000 * kSecond);
  EXPECT_EQ(box.held(1), 0u);
  box.hosts[1]->connection_events.clear();
  box.hosts[1]->on_connection = {};
  box.send(roce::cm_mad(5, a_request(), kIpv4Header));
  EXPECT_EQ(box.last(1).type, Type::kConnectRequest) << "it still serves";
}

TEST(Cm, DatagramServicesAreResolved) {
  for (const char* direction : {"", "forward", "reverse"}) {
    SCOPED_TRACE(direction);
    CmBox box(*direction ? at_mad(direction, 0) : "delay: 1us");
    ASSERT_EQ(0, box.listen(1, PortSpace::kUdp));
    Qp* const qp = box.make_qp(1, IBV_QPT_UD);
    box.spare[1].push_back(qp);
    box.accept_all(1, {.private_data = bytes_of("here"), .qkey = 0x77});
    box.connect(0, nullptr, {.private_data = bytes_of("where?")}, PortSpace::kUdp);
    box.run();
    ASSERT_EQ(box.events(1), Types{Type::kConnectRequest}) << "a request that comes again is not told again";
    EXPECT_EQ(text_of(box.last(1), 6), "where?");
    EXPECT_EQ(box.last(1).space, PortSpace::kUdp);
    ASSERT_EQ(box.events(0), Types{Type::kEstablished});
    EXPECT_EQ(box.last(0).remote_qpn, qp->number());
    EXPECT_EQ(box.last(0).qkey, 0x77u);
    EXPECT_EQ(text_of(box.last(0), 4), "here");
    box.run(1000 * kSecond);
    EXPECT_EQ(box.held(0) + box.held(1), 0u);
  }
  CmBox box;
  box.connect(0, nullptr, {}, PortSpace::kUdp);
  box.run();
  EXPECT_EQ(box.last(0).type, Type::kRejected);
  EXPECT_EQ(box.last(0).status, static_cast<int>(roce::CmSidrStatus::kUnsupported));
}

TEST(CmStrangers, RepliesThatAreKeptAreBounded) {
  Stranger box("delay: 1us\nreverse: {match: {kind: roce}, loss: 100%}");
  ASSERT_EQ(0, box.listen(1, PortSpace::kUdp));
  Qp* const qp = box.make_qp(1, IBV_QPT_UD);
  box.hosts[1]->on_connection = [&](Host& host, const ConnectionEvent& event) {
    EXPECT_EQ(0, host.connections().accept(event.id, *qp));
  };
  roce::CmSidrReq req{};
  req.service_id = roce::kIpCmService | roce::kIpCmUdp | kCmPort;
  for (std::uint32_t i = 0; i < nic_model::kResolutionsKept + 10; i++) {
    req.request_id = i;
    box.send(roce::cm_mad(5, req, kIpv4Header));
  }
  EXPECT_EQ(box.held(1), nic_model::kResolutionsKept);
  EXPECT_EQ(box.events(1).size(), nic_model::kResolutionsKept + 10);
}

}  // namespace
}  // namespace rocebox::test
