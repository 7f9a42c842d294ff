// SPDX-License-Identifier: BSD-3-Clause
// The connection manager's messages against bytes of a Linux capture (rdma_cm.pcap; values by
// tshark).
#include "runtime/roce/mad.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/unit/harness.h"

namespace rocebox::roce {
namespace {

// MADs of frames 1 and 2 up to the private data; the rest of the 256 bytes is zero or of no matter
// here.
constexpr std::string_view kReqHex =
    "010702030000000000000002 3cb90ade001000000000 0000de0ab93c00000000000000000106 "
    "1c06505400fffe770002"
    "00000000000000000000230100000001000000a0eb5bcea7ffff37f0ffffffff00000000000000000000ffff0a4d00"
    "02"
    "00000000000000000000ffff0a4d0001";
constexpr std::string_view kRepHex =
    "010702030000000000000002 3cb90ade0013000000000000 8a77c6b2de0ab93c00000000 "
    "0000230000000000a885590001"
    "0178e0505400fffe770001";

std::vector<std::uint8_t> mad_bytes(std::string_view hex) {
  std::vector<std::uint8_t> bytes;
  int high = -1;
  for (const char c : hex) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0)
      high = digit;
    else
      bytes.push_back(static_cast<std::uint8_t>(high << 4 | digit)), high = -1;
  }
  bytes.resize(kMadBytes);
  return bytes;
}

class Mad : public testing::Test {
 protected:
  PacketPtr packet(const std::vector<std::uint8_t>& payload, std::uint32_t qp = kGsiQpn,
                   std::uint8_t opcode = IBV_OPCODE_UD_SEND_ONLY) {
    PacketSpec spec;
    spec.opcode = opcode;
    spec.destination_qp = qp;
    spec.payload = payload;
    PacketPtr result = pool.allocate(built_bytes(spec));
    build(*result, spec);
    return result;
  }
  Pool pool{test::kPoolSizes};
};

TEST_F(Mad, ReadsARealConnectRequest) {
  const PacketPtr p = packet(mad_bytes(kReqHex));
  const MadHeader* header = mad(*p);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->transaction_id, 0x23cb90adeu);
  EXPECT_EQ(cm_attribute_name(cm_attribute(*header)), "ConnectRequest");
  const auto* req = cm_message<CmReq>(*p);
  ASSERT_TRUE(req);
  EXPECT_EQ(req->local_communication_id, 0xde0ab93cu);
  EXPECT_EQ(req->local_qpn, 0x23u);
  EXPECT_EQ(req->starting_psn, 0xeb5bceu);
  EXPECT_EQ(req->path_mtu(), 1024u);
  EXPECT_EQ(req->transport_service(), 0u);
  EXPECT_EQ(req->pkey, 0xffffu);
  EXPECT_EQ(req->local_ca_guid, 0x505400fffe770002u);
  EXPECT_EQ(req->primary_local_gid[15], 2);
  EXPECT_EQ(req->primary_remote_gid[15], 1);
  EXPECT_FALSE(cm_message<CmRep>(*p));
}

TEST_F(Mad, ReadsARealConnectReply) {
  const PacketPtr p = packet(mad_bytes(kRepHex));
  const auto* rep = cm_message<CmRep>(*p);
  ASSERT_TRUE(rep);
  EXPECT_EQ(rep->local_communication_id, 0x8a77c6b2u);
  EXPECT_EQ(rep->remote_communication_id, 0xde0ab93cu);
  EXPECT_EQ(rep->local_qpn, 0x23u);
  EXPECT_EQ(rep->starting_psn, 0xa88559u);
  EXPECT_EQ(rep->local_ca_guid, 0x505400fffe770001u);
  EXPECT_FALSE(cm_message<CmReq>(*p));
}

TEST_F(Mad, BuildsTheSameBytesAsLinux) {
  const std::vector<std::uint8_t> request = mad_bytes(kReqHex), reply = mad_bytes(kRepHex);
  const std::span behind_request = std::span(request).subspan(sizeof(MadHeader) + sizeof(CmReq));
  const PacketPtr p = packet(request), q = packet(reply);
  const std::uint64_t transaction = mad(*p)->transaction_id;
  const auto built = cm_mad(transaction, *cm_message<CmReq>(*p), behind_request);
  EXPECT_TRUE(std::equal(built.begin(), built.end(), request.begin(), request.end()));
  const auto answer = cm_mad(transaction, *cm_message<CmRep>(*q));
  EXPECT_TRUE(std::equal(answer.begin(), answer.begin() + sizeof(MadHeader) + sizeof(CmRep), reply.begin()));
  CmDreq release{};
  release.remote_qpn = 0x123456;
  const auto farewell = cm_mad(7, release);
  const PacketPtr r = packet({farewell.begin(), farewell.end()});
  ASSERT_TRUE(cm_message<CmDreq>(*r));
  EXPECT_EQ(cm_message<CmDreq>(*r)->remote_qpn, 0x123456u);
  EXPECT_FALSE(cm_message<CmReq>(*r));
}

// Of frame 1 what is behind the GIDs: the primary path, no alternate one, and the IP CM service's header.
TEST_F(Mad, ReadsPathAndIpAddressesOfARealConnectRequest) {
  std::vector<std::uint8_t> bytes = mad_bytes(kReqHex);
  constexpr std::array<std::uint8_t, 8> kPath = {0x4a, 0x4d, 0x30, 0x00, 0x00, 0x40, 0x00, 0x98};
  std::copy(kPath.begin(), kPath.end(), bytes.begin() + 24 + 88);
  constexpr std::array<std::uint8_t, 4> kHead = {0x00, 0x40, 0xa9, 0x93};
  std::copy(kHead.begin(), kHead.end(), bytes.begin() + 24 + 140);
  bytes[24 + 140 + 16] = 10;
  bytes[24 + 140 + 35] = 1;
  bytes[255] = 0xEE;
  const PacketPtr p = packet(bytes);
  const auto* req = cm_message<CmWholeReq>(*p);
  ASSERT_TRUE(req);
  EXPECT_EQ(req->request.service_id, kIpCmService | kIpCmTcp | 7174u);
  EXPECT_EQ(req->primary.label_rate >> 12, 0x4a4d3u);
  EXPECT_EQ(req->primary.hop_limit, 64);
  EXPECT_EQ(req->primary.ack_timeout >> 3, 19);
  const auto data = cm_private_data<CmWholeReq>(*p);
  ASSERT_EQ(data.size(), 92u);
  EXPECT_EQ(data[91], 0xEE);
  const auto& header = *reinterpret_cast<const IpCmHeader*>(data.data());
  EXPECT_EQ(header.ip_version >> 4, 4);
  EXPECT_EQ(header.source_port, 0xa993u);
  EXPECT_EQ(header.source[12], 10);
  EXPECT_EQ(header.destination[15], 1);
  const std::uint32_t cut = p->meta().payload_offset + 255u;
  rte_pktmbuf_trim(p->mbuf(), static_cast<std::uint16_t>(p->size() - cut));
  parse(*p);
  EXPECT_TRUE(cm_message<CmWholeReq>(*p));
  EXPECT_TRUE(cm_private_data<CmWholeReq>(*p).empty()) << "one byte short";
}

TEST_F(Mad, RefusesWhatIsNoMad) {
  const auto bytes = mad_bytes(kReqHex);
  EXPECT_FALSE(mad(*packet(bytes, 2))) << "another QP";
  EXPECT_FALSE(mad(*packet(bytes, 1, IBV_OPCODE_RC_SEND_ONLY))) << "another service";
  EXPECT_FALSE(mad(*packet({bytes.begin(), bytes.end() - 1}))) << "255 bytes";
  auto other = bytes;
  other[0] = 2;
  EXPECT_FALSE(mad(*packet(other))) << "base version";
  other = bytes;
  other[1] = 4;
  EXPECT_FALSE(cm_message<CmReq>(*packet(other))) << "management class";
  other = bytes;
  other[3] = 1;
  EXPECT_FALSE(cm_message<CmReq>(*packet(other))) << "method";
}

TEST_F(Mad, ASnappedMessageIsNotRead) {
  const PacketPtr p = packet(mad_bytes(kReqHex));
  const std::uint32_t end = p->meta().payload_offset + 24u + 87u;
  rte_pktmbuf_trim(p->mbuf(), static_cast<std::uint16_t>(p->size() - end));
  parse(*p);
  EXPECT_TRUE(mad(*p));
  EXPECT_FALSE(cm_message<CmReq>(*p)) << "one byte short";
}

TEST(MadNames, PathMtuCodes) {
  CmReq req{};
  for (unsigned code = 0; code < 16; code++) {
    req.mtu_rdc_rnr = static_cast<std::uint8_t>(code << 4 | 7);
    EXPECT_EQ(req.path_mtu(), code >= 1 && code <= 5 ? 128u << code : 0u);
  }
  EXPECT_EQ(cm_attribute_name(0x18), "ServiceIDResReqResp");
  EXPECT_EQ(cm_attribute_name(0x0f), "unknown");
}

}  // namespace
}  // namespace rocebox::roce
