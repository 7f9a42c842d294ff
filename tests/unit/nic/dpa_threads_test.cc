// SPDX-License-Identifier: BSD-3-Clause
// Threads of the DPA: how they wait, what wakes them, calls of the host, windows, and what they do wrong.
#include <gtest/gtest.h>

#include "tests/unit/nic/dpa_kit.h"

namespace rocebox::test {
namespace {

struct Machine : DpaBox {
  explicit Machine(const std::string& nic = "rate: 100Gbps") : DpaBox(nic) {}
  // A message that comes to the endpoint, and what comes of it, within `span`.
  void send(std::string_view text, Nanos span = kMillisecond) {
    std::copy(text.begin(), text.end(), sides[0].memory.begin());
    ASSERT_EQ(0, post(0, 1, IBV_WR_SEND, 0, static_cast<std::uint32_t>(text.size())));
    run(span);
  }
};

TEST(DpaThreads, CallsHaveArgumentsResultsAndMessages) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  EXPECT_EQ(box.call(process, "add", {1, 20, 300}), 321u);
  box.call(process, "say");
  const std::vector<std::string> expected = {"1 + 20 + 300", "by puts", "by printf: 7", "an error"};
  EXPECT_EQ(process.messages(), expected);
  EXPECT_EQ(box.call(process, "wait_cycles", {100'000}), 1u);
}

TEST(DpaThreads, WindowsAreAsLongAsTheirMemory) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  box.connect_to(process, {.handler = "counts_zeros"}, 4096);
  EXPECT_EQ(box.call(process, "windows", {box.endpoints[0]->address()}), 5u);
  EXPECT_EQ(box.window->data()[8], 0x88);
}

// A thread that waits for what it sees in memory sees it, however it waits; and until then it costs no events.
TEST(DpaThreads, ThatWaitForMemorySeeItChange) {
  for (const char* handler : {"polls_until_flag", "fences_until_flag", "retriggers_until_flag"}) {
    SCOPED_TRACE(handler);
    Machine box;
    dpa::Process& process = box.load_test("threads");
    box.connect_to(process, {.handler = handler});
    box.send("x");
    EXPECT_EQ(box.call(process, "get_turns", {0}), 0u);
    EXPECT_GT(box.endpoints[0]->shared().messages, 0u);
    box.call(process, "set_flag", {1});
    box.run(kMillisecond);
    EXPECT_EQ(box.call(process, "get_turns", {0}), 1u);
    EXPECT_EQ(process.error(), "");
  }
}

TEST(DpaThreads, OnlyOneHasALock) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  for (int i = 0; i < 16; i++) {
    dpa::Endpoint& one = box.add(process, 1, {.handler = i % 4 ? "locks" : "tries_locks", .log_cq_entries = 2});
    box.on(1, [&](nic_model::Host& host) {
      one.run();
      host.publish_nothing(*one.qp().init.send_cq);
    });
  }
  box.run(kSecond);
  EXPECT_EQ(box.call(process, "get_turns", {0}), 12u * 50 + 4 * 20);
  EXPECT_EQ(box.call(process, "get_most_inside", {0}), 1u);
}

TEST(DpaThreads, OneMakesACqeThatActivatesAnother) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  box.connect_to(process, {.handler = "wakes_another"});
  dpa::Endpoint& other = box.add(process, 1, {.handler = "counts_zeros"});
  box.on(1, [&](nic_model::Host&) { other.run(); });
  const std::uint32_t number = other.shared().cq_number;
  for (int i = 0; i < 3; i++) box.send({reinterpret_cast<const char*>(&number), 4});
  EXPECT_EQ(box.call(process, "get_zeros", {0}), 3u);
}

TEST(DpaThreads, AProcessThatHasFinishedIsActivatedNoMore) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  box.connect_to(process, {.handler = "finishes_process"});
  box.send("x");
  box.send("x");
  EXPECT_EQ(box.endpoints[0]->shared().messages, 1u);
  box.on(1, [&](nic_model::Host&) {
    const std::uint64_t argument = 0;
    EXPECT_EQ(ESRCH, process.call("get_zeros", {&argument, 1})) << "nor by its host, who would wait for the result";
  });
}

TEST(DpaThreads, WhatIsWrongStopsTheProcessAndIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"n", "Segmentation fault (SEGV) at address 0x0, in crash"},
      {"h", "right behind or before the heap, in crash"},
      {"w", "Segmentation fault (SEGV)"},
      {"s", "its stack is full, in deeper"},
      {"i", "(ILL)"},
      {"d", "(FPE)"},
      {"p", "(SEGV) at address 0x8"},
#ifndef __SANITIZE_THREAD__
      // ThreadSanitizer delivers a timer's signal only in calls of libc.
      {"f", "ran too long without giving way, in crash"}
#endif
  };
  for (const auto& [how, why] : cases) {
    SCOPED_TRACE(how);
    Machine box("rate: 100Gbps\ndpa: {watchdog: 50ms, heap: 1MiB}");
    dpa::Process& bad = box.load_test("bad");
    dpa::Process& good = box.load("counter");
    box.connect_to(bad, {.handler = "bad_handler"});
    dpa::Endpoint& next = box.add(good, 1, {.handler = "counter_handler"});
    box.send(how);
    EXPECT_TRUE(bad.stopped());
    EXPECT_TRUE(bad.error().starts_with("thread 0 (`bad_handler` of bad.so): ")) << bad.error();
    EXPECT_NE(bad.error().find(why), std::string::npos) << bad.error();
    // The NIC goes on, and so does another process of its DPA; the messages that still come are received.
    EXPECT_EQ(box.completions(0).size(), 1u);
    box.send(how);
    EXPECT_EQ(box.endpoints[0]->shared().messages, 1u);
    EXPECT_EQ(box.completions(0).size(), 2u);
    box.on(1, [&](nic_model::Host& host) {
      next.run();
      host.publish_nothing(*next.qp().init.send_cq);
      EXPECT_EQ(ESRCH, bad.call("bad_handler", {}));
    });
    box.run(kMillisecond);
    EXPECT_EQ(next.shared().errors, 1u);  // a CQE of nothing is no message
  }
}

TEST(DpaThreads, NonsenseInQueuesIsAnErrorOfTheQueuePairAlone) {
  Machine box;
  dpa::Process& process = box.load_test("threads");
  box.connect_to(process, {.handler = "rings_nonsense"});
  box.send("x", kSecond);
  box.send("x", kSecond);
  EXPECT_GT(box.endpoints[0]->shared().messages, 0u);
  EXPECT_EQ(process.error(), "");
  EXPECT_EQ(box.endpoints[0]->qp().attributes.state, IBV_QPS_ERR);
}

TEST(DpaThreads, ProgramsThatCannotBeAreRefused) {
  const auto why = [](const std::string& bytes) {
    try {
      dpa::Program::check("x.so", bytes);
      return std::string("taken");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  std::string good = dpa::Program::read(dpa_program("echo"));
  EXPECT_EQ(why(good), "taken");
  EXPECT_EQ(why(""), "`x.so` is no shared object");
  EXPECT_EQ(why("#!/bin/sh\n" + std::string(100, ' ')), "`x.so` is no shared object");
  std::string riscv = good;
  riscv[18] = static_cast<char>(243);
  EXPECT_NE(why(riscv).find("RISC-V"), std::string::npos);
  // As a symbol of libc that takes memory: the name stands in the table of texts.
  std::string needs = good;
  const std::size_t at = needs.find("flexio_dev_get_thread_ctx");
  ASSERT_NE(at, std::string::npos);
  needs.replace(at, 7, "malloc\\0", 7);
  needs[at + 6] = 0;
  EXPECT_NE(why(needs).find("needs `malloc`, which a DPA has not"), std::string::npos) << why(needs);
  // Cut anywhere it is refused, or taken as what it still is.
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 61) why(good.substr(0, bytes));
  EXPECT_THROW(dpa::Program::read("/nonexistent.so"), ConfigError);
}

}  // namespace
}  // namespace rocebox::test
