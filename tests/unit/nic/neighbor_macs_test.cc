// SPDX-License-Identifier: BSD-3-Clause
// MAC addresses that no neighbour can have: a group's, everybody's, none (RFC 1812, 3.3.2).
#include <gtest/gtest.h>

#include "nic_model/connect/frames.h"
#include "runtime/roce/address.h"
#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::neighbor_macs {
namespace {

// Side 0 asks for side 1, and nothing of its questions arrives.
class Asking : public NicBox {
 public:
  explicit Asking(const std::string& nic = "rate: 100Gbps", const std::string& near = "")
      : NicBox(nic, "loss: 100%", 1, "", near) {
    connect();
  }
  void say(std::uint16_t operation, const roce::Mac& mac) {
    PacketPtr packet = pool.allocate(sizeof(nic_model::ArpFrame));
    nic_model::write_arp(*packet, operation, mac, roce::ipv4(10, 0, 0, 2), {2, 0x72, 10, 0, 0, 1},
                         {2, 0x72, 10, 0, 0, 1}, roce::ipv4(10, 0, 0, 1));
    give(std::move(packet));
  }
  void give(PacketPtr packet) {
    fabric.inject({0, 0}, packet.release());
    fabric.run(now);
  }
  bool knows() const { return sides[0].qp->path_known; }
};

constexpr roce::Mac kNobodys[] = {
    {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, {0x01, 0, 0x5E, 0, 0, 1}, {0x33, 0x33, 0, 0, 0, 1}, {}};

TEST(NeighborMacs, WhatNobodyCanHaveIsNotLearnt) {
  for (const roce::Mac& mac : kNobodys) {
    SCOPED_TRACE(int{mac[0]});
    Asking box;
    for (const std::uint16_t operation : {nic_model::kArpReply, nic_model::kArpRequest}) box.say(operation, mac);
    EXPECT_FALSE(box.knows());
    EXPECT_EQ(box.count(0, "arp_replies_sent"), 0u) << "nor is it answered";
    box.say(nic_model::kArpReply, {2, 0x72, 10, 0, 0, 2});
    EXPECT_TRUE(box.knows());
    box.say(nic_model::kArpReply, mac);
    EXPECT_EQ(box.sides[0].qp->headers.destination_mac(), (roce::Mac{2, 0x72, 10, 0, 0, 2}));
  }
}

// Side 1 by its IPv6 address: who asks, and who answers.
class Discovering : public Asking {
 public:
  explicit Discovering(const std::string& near = "") : Asking("rate: 100Gbps\naddress6: fd77::$", near) {}
  void answer(const roce::Mac& mac) {
    PacketPtr packet = pool.allocate(nic_model::kNdFrameBytes);
    nic_model::write_advertisement(*packet, mac, other, {2, 0x72, 10, 0, 0, 1}, own);
    give(std::move(packet));
  }
  void ask(const roce::Mac& mac, bool has_option) {
    PacketPtr packet = pool.allocate(nic_model::kNdFrameBytes);
    nic_model::write_solicitation(*packet, has_option ? mac : kStations, other, own);
    std::uint8_t* option = packet->data() + sizeof(roce::Ethernet) + sizeof(roce::Ipv6) + 24;
    std::copy(mac.begin(), mac.end(), packet->data() + sizeof(roce::Mac));
    if (!has_option) {  // a nonce (RFC 3971, 5.3.2) in its place, by which the checksum stays what it is
      option[0] += kNonce - kSourceAddress;
      option[2] -= kNonce - kSourceAddress;
    }
    give(std::move(packet));
  }
  bool knows_other() { return way_to(other).has_value(); }
  std::optional<roce::Mac> way_to(const roce::IpAddress& address) {
    int error = 0;
    nic_model::AddressHandle handle;
    on(0, [&](nic_model::Host& host) { error = host.create_ah(handle, address, 0x11, 0x1234); });
    EXPECT_TRUE(error == 0 || error == EAGAIN);
    if (error != 0) return {};
    roce::Mac mac;
    std::copy_n(handle.address.rmac, mac.size(), mac.begin());
    return mac;
  }
  std::uint64_t answers() const { return count(0, "nd_advertisements_sent"); }

  static constexpr roce::Mac kStations = {0x22, 0x72, 10, 0, 0, 2};

  const roce::IpAddress own = *roce::parse_address("fd77::1"), other = *roce::parse_address("fd77::2");

 private:
  static constexpr std::uint8_t kSourceAddress = 1, kNonce = 14;
};

TEST(NeighborMacs, NorByNeighborDiscovery) {
  for (const roce::Mac& mac : kNobodys) {
    SCOPED_TRACE(int{mac[0]});
    Discovering box;
    EXPECT_FALSE(box.knows_other()) << "and it is asked for";
    box.answer(mac);
    for (const bool has_option : {true, false}) box.ask(mac, has_option);
    EXPECT_FALSE(box.knows_other());
    EXPECT_EQ(box.answers(), 0u);
  }
  Discovering box;
  EXPECT_FALSE(box.knows_other());
  box.ask(Discovering::kStations, false);
  EXPECT_EQ(box.answers(), 1u) << "to Ethernet's source";
  EXPECT_FALSE(box.knows_other());
  box.ask(Discovering::kStations, true);
  EXPECT_EQ(box.answers(), 2u);
  EXPECT_TRUE(box.knows_other());
}

// As a permanent neighbour of Linux: whoever says otherwise on the wire is not believed.
TEST(NeighborMacs, WhatIsWrittenStays) {
  const roce::Mac written = {2, 0, 0, 0, 0, 0x77}, said = {2, 0x72, 10, 0, 0, 2};
  const std::string mac = "mac: '02:00:00:00:00:77'";
  Discovering box("neighbors: [{address: 10.0.0.2, " + mac + "}, {address: 'fd77::2', " + mac + "}]");
  ASSERT_TRUE(box.knows());
  for (const std::uint16_t operation : {nic_model::kArpReply, nic_model::kArpRequest}) box.say(operation, said);
  box.answer(said);
  box.ask(said, true);
  EXPECT_EQ(box.way_to(roce::ipv4(10, 0, 0, 2)), written);
  EXPECT_EQ(box.way_to(box.other), written);
  EXPECT_EQ(box.count(0, "drop_no_protocol"), 2u) << "both answers: nothing was learnt";
  EXPECT_EQ(box.count(0, "arp_replies_sent") + box.answers(), 2u) << "who asks is answered";
}

}  // namespace
}  // namespace rocebox::test::neighbor_macs
