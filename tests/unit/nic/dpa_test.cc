// SPDX-License-Identifier: BSD-3-Clause
// Device programs, compiled from C against the device API alone, on the DPA of a NIC.
#include <gtest/gtest.h>

#include "runtime/kernel/progress.h"
#include "tests/unit/nic/dpa_kit.h"

namespace rocebox::test {
namespace {

constexpr std::uint32_t kBits = 4096;

TEST(Dpa, AHandlerThatACqeActivatesSetsBitsThatTheHostReads) {
  DpaBox box;
  dpa::Process& process = box.load("bitmap");
  box.connect_to(process, {.type = IBV_QPT_UC, .handler = "bitmap_handler"});
  const dpa::Endpoint& far = *box.endpoints[0];
  std::vector<std::uint8_t> expected(kBits / 8);
  for (std::uint32_t bit = 3; bit < kBits; bit += 37) {
    expected[bit / 8] |= static_cast<std::uint8_t>(1u << (bit % 8));
    ASSERT_EQ(0, box.post(0, bit, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, 0, IBV_SEND_SIGNALED, [&](ibv_send_wr& wr) {
      wr.imm_data = htobe32(bit);
      wr.wr.rdma.remote_addr = far.shared().buffers;
      wr.wr.rdma.rkey = far.shared().key;
    }));
    box.run();
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), box.window->data()));
  EXPECT_EQ(far.shared().messages, (kBits - 3 + 36) / 37);
  EXPECT_EQ(far.shared().errors, 0u);
  EXPECT_EQ(process.error(), "");
}

// A message of one byte, or of what `text` has.
void send(DpaBox& box, std::string_view text) {
  std::copy(text.begin(), text.end(), box.sides[0].memory.begin());
  ASSERT_EQ(0, box.post(0, 1, IBV_WR_SEND, 0, static_cast<std::uint32_t>(text.size())));
  box.run();
}

TEST(Dpa, EchoSendsBackWhatItGets) {
  DpaBox box;
  dpa::Process& process = box.load("echo");
  box.connect_to(process, {.handler = "echo_handler"});
  for (unsigned i = 0; i < 300; i++) {
    const std::uint32_t bytes = 1 + i * 13 % 4096;
    for (std::uint32_t k = 0; k < bytes; k++) box.sides[0].memory[k] = static_cast<std::uint8_t>(i * 7 + k);
    ASSERT_EQ(0, box.post_receive(0, 1000 + i, 8192, 4096));
    ASSERT_EQ(0, box.post(0, i, IBV_WR_SEND, 0, bytes));
    box.run();
    const ibv_wc& back = box.completions(0).back();
    ASSERT_EQ(back.opcode, IBV_WC_RECV);
    ASSERT_EQ(back.byte_len, bytes);
    ASSERT_TRUE(std::equal(box.sides[0].memory.begin(), box.sides[0].memory.begin() + bytes,
                           box.sides[0].memory.begin() + 8192));
  }
  EXPECT_EQ(box.endpoints[0]->shared().messages, 300u);
  EXPECT_EQ(box.endpoints[0]->shared().errors, 0u);
}

TEST(Dpa, EachProcessOfAProgramHasDataOfItsOwn) {
  DpaBox box;
  dpa::Process& one = box.load("counter");
  dpa::Process& other = box.load("counter");
  box.connect_to(one, {.handler = "counter_handler"});
  for (int i = 0; i < 5; i++) send(box, "seven B");
  std::uint64_t messages = 0, bytes = 0, others = 99;
  box.on(1, [&](nic_model::Host&) {
    EXPECT_EQ(0, one.call("counter_messages", {}, [&](std::uint64_t n) { messages = n; }));
    EXPECT_EQ(0, one.call("counter_bytes", {}, [&](std::uint64_t n) { bytes = n; }));
    EXPECT_EQ(0, other.call("counter_messages", {}, [&](std::uint64_t n) { others = n; }));
    EXPECT_EQ(ENOENT, other.call("no_such_function", {}));
  });
  EXPECT_EQ(messages, 5u);
  EXPECT_EQ(bytes, 35u);
  EXPECT_EQ(others, 0u);
}

TEST(Dpa, TwoThreadsThatSpinPlayPingPong) {
  DpaBox box;
  dpa::Process& here = box.load("ping_pong", 0);
  dpa::Process& there = box.load("ping_pong", 1);
  dpa::Endpoint& ping = box.add(here, 0, {.handler = "ping_pong_handler", .buffer_bytes = 256});
  dpa::Endpoint& pong = box.add(there, 1, {.handler = "ping_pong_handler", .buffer_bytes = 256});
  ping.shared().role = 1;
  ping.shared().count = pong.shared().count = 500;
  box.bring_up(0, ping.qp(), pong.qp().number());
  box.bring_up(1, pong.qp(), ping.qp().number());
  std::uint64_t played = 0;
  box.on(1, [&](nic_model::Host&) { pong.run(); });
  box.on(0, [&](nic_model::Host&) {
    const std::uint64_t argument = ping.address();
    EXPECT_EQ(0, here.call("ping_pong_begin", {&argument, 1}, [&](std::uint64_t n) { played = n; }));
    EXPECT_EQ(EBUSY, here.call("ping_pong_begin", {&argument, 1}));
  });
  box.run();
  EXPECT_EQ(played, 500u);
  EXPECT_EQ(pong.shared().messages, 500u);
  EXPECT_EQ(pong.shared().bytes, 500u * 256);
  ASSERT_EQ(there.messages().size(), 1u);
  EXPECT_EQ(there.messages()[0], "played 500");
}

TEST(Dpa, PacketsOfAProgramAreTheProgressOfWhoLoadedIt) {
  DpaBox box;
  dpa::Process& here = box.load("ping_pong", 0);
  dpa::Process& there = box.load("ping_pong", 1);
  dpa::Process& other = box.load("counter", 0);
  dpa::Endpoint& ping = box.add(here, 0, {.handler = "ping_pong_handler", .buffer_bytes = 256});
  dpa::Endpoint& pong = box.add(there, 1, {.handler = "ping_pong_handler", .buffer_bytes = 256});
  ping.shared().role = 1;
  ping.shared().count = pong.shared().count = 5;
  box.bring_up(0, ping.qp(), pong.qp().number());
  box.bring_up(1, pong.qp(), ping.qp().number());
  const TestHost& host = *box.hosts[0];
  const auto steps = [&](const dpa::Process* device) { return host.host.progress(host.number, device).steps; };
  const std::uint64_t whose = steps(&here), others = steps(&other), nobodys = steps(nullptr);
  box.on(1, [&](nic_model::Host&) { pong.run(); });
  box.on(0, [&](nic_model::Host&) {
    const std::uint64_t argument = ping.address();
    EXPECT_EQ(0, here.call("ping_pong_begin", {&argument, 1}));
  });
  box.run();
  EXPECT_EQ(pong.shared().messages, 5u);
  EXPECT_NE(steps(&here), whose);
  EXPECT_EQ(steps(&other), others);
  EXPECT_EQ(steps(nullptr), nobodys);
}

}  // namespace
}  // namespace rocebox::test
