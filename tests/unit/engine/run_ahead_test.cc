// SPDX-License-Identifier: BSD-3-Clause
// Devices between lines that delay run ahead of others: each of them meets the same packets and timers at the same
// times as when all take their turns by time.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "runtime/component/registry.h"
#include "runtime/config/document.h"
#include "runtime/config/fields_reader.h"
#include "runtime/kernel/kernel_options.h"
#include "tests/unit/engine/fabric_kit.h"

namespace rocebox {
namespace {

using Log = std::vector<std::string>;

// A box with lines between its devices.
struct LineBox : test::FabricBox {
  unsigned add_line(Nanos delay) {
    static const Registry registry;
    config::Mistakes mistakes("test");
    const config::Node node = config::parse_yaml("delay: " + std::to_string(delay) + "ns", mistakes);
    config::FieldsReader reader(&node, mistakes);
    options.push_back(registry.find("link")->options(registry));
    options.back()->fields(reader);
    const auto* link = static_cast<const KernelOptions*>(options.back().get());
    std::vector<KernelPlan> plans;
    plans.push_back({"link", "link", Shape::kTwoSided, {test::out(0), test::out(1)}, [link](Stats& stats) {
                       return link->make(stats);
                     }});
    devices.push_back(std::make_unique<PipelineDevice>("line", std::vector<std::string>{"a", "b"},
                                                       std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, 1));
    return fabric.add(*devices.back());
  }
  void join(unsigned left, unsigned right, Nanos delay) {
    const unsigned line = add_line(delay);
    fabric.join({left, 1}, {line, 0});
    fabric.join({line, 1}, {right, 0});
  }
  Log run(Nanos until) {
    while (fabric.next_deadline() < until) fabric.run(fabric.next_deadline());
    return take();
  }
  std::deque<std::unique_ptr<Options>> options;
};

// A ring of devices that pass on, drop and send back what comes, at once or later, by what it is and when it comes. Its
// second byte says how many devices it still meets; what a device makes of it meets half of them.
struct Ring : LineBox {
  Ring(unsigned seed, bool ahead) {
    std::mt19937 draw(seed);
    const auto below = [&](unsigned bound) { return static_cast<unsigned>(draw() % bound); };
    const unsigned count = 3 + below(5);
    for (unsigned i = 0; i < count; i++) {
      const Nanos wait = below(40);
      const unsigned lost = 40 + below(100);
      add(
          "d" + std::to_string(i),
          [wait, lost](Context& c, Port in, Batch& b) {
            for (unsigned n = 0; n < b.size(); n++) {
              std::uint8_t* const bytes = b[n].data();
              const auto sum = static_cast<unsigned>(c.now()) + bytes[0];
              if (bytes[1] == 0 || sum % lost == 0) {
                b.drop(n, *never_counted());
              } else if (sum % 3 == 0) {
                b.send(n, in);
              }
              if (bytes[1] == 0) continue;
              bytes[1]--;
              if (sum % 7 == 0) test::arm_once(c, c.now() + wait, tag_of(bytes[0] + 1u, bytes[1] / 2u));
            }
          },
          [](Context& c, std::uint64_t tag) { c.emit(filled(c.allocate(2), tag), static_cast<Port>(tag % 2)); });
    }
    for (unsigned i = 0; i < count; i++) join(i, (i + 1) % count, 5 + below(60));
    fabric.count_late();
    if (ahead) fabric.let_run_ahead(false);
    for (unsigned n = 0; n < 8; n++) {
      const unsigned device = below(count);
      const auto port = static_cast<Port>(below(2));
      fabric.inject({device, port}, filled(pool.allocate(2), tag_of(n, kDevicesMet)).release());
    }
    fabric.run(0);
  }
  static constexpr unsigned kDevicesMet = 40;
  static std::uint64_t tag_of(unsigned number, unsigned devices) { return devices << 8 | (number & 0xFF); }
  static PacketPtr filled(PacketPtr packet, std::uint64_t tag) {
    EXPECT_TRUE(packet);
    packet->data()[0] = static_cast<std::uint8_t>(tag);
    packet->data()[1] = static_cast<std::uint8_t>(tag >> 8);
    return packet;
  }
  static Counter* never_counted() {
    static Counter counter;
    return &counter;
  }
};

// By device: the first word of each line.
std::map<std::string, Log> by_device(const Log& log) {
  std::map<std::string, Log> lines;
  for (const std::string& line : log) lines[line.substr(0, line.find(' '))].push_back(line);
  return lines;
}

TEST(RunAhead, EachDeviceMeetsTheSame) {
  for (unsigned seed = 0; seed < 60; seed++) {
    Ring ahead(seed, true), in_time(seed, false);
    const auto one = by_device(ahead.run(3000)), other = by_device(in_time.run(3000));
    ASSERT_EQ(one, other) << seed;
    EXPECT_EQ(ahead.fabric.held(), in_time.fabric.held()) << seed;
    EXPECT_LE(ahead.fabric.work(), in_time.fabric.work()) << seed;
  }
}

TEST(RunAhead, ByTheShortestDelayAndNotBeyondTheLimit) {
  LineBox box;
  const unsigned x = box.add("x"), y = box.add("y"), z = box.add("z");
  box.join(x, y, 10);
  box.join(y, z, 12);
  box.join(z, x, 14);
  box.fabric.let_run_ahead(false);
  box.inject(x, 0, 1);
  box.inject(z, 0, 2);
  box.fabric.run(0);  // at y at 10, and at x at 14
  EXPECT_EQ(box.take().size(), 2u);
  box.fabric.run(10);
  EXPECT_EQ(by_device(box.take()), by_device({"y in0 1 @10", "x in0 2 @14"}));
  box.fabric.limit_ahead(23);
  box.fabric.run(22);  // at z; the other comes to y at 24
  EXPECT_EQ(box.take(), (Log{"z in0 1 @22"}));
  EXPECT_EQ(box.fabric.next_deadline(), 24);
}

// Four in a row, of which the first gets a packet in the instant 0 and hands it on.
struct Row : LineBox {
  Row() {
    join(x, y, 10);
    join(y, z, 10);
    join(z, w, 10);
  }
  void begin() {
    fabric.let_run_ahead(false);
    inject(x, 0, 1);
    fabric.run(0);
    fabric.run(10);
    EXPECT_EQ(take(), (Log{"x in0 1 @0", "y in0 1 @10"}));
    fabric.run(20);
  }
  const unsigned x = add("x"), y = add("y"), z = add("z"), w = add("w");
};

// In a ring of four every second one runs as far as the others have sent, and then these as far as it has.
TEST(RunAhead, ByTwiceThatWhereTheyCanTakeTurns) {
  Row box;
  box.join(box.w, box.x, 10);
  box.begin();
  EXPECT_EQ(box.take(), (Log{"z in0 1 @20", "w in0 1 @30"}));
  EXPECT_EQ(box.fabric.next_deadline(), 40);
  box.fabric.limit_ahead(50);
  box.fabric.run(40);
  EXPECT_EQ(box.take(), (Log{"x in0 1 @40"}));
  EXPECT_EQ(box.fabric.next_deadline(), 50);
}

// Beside one that is in time they are ahead of it by no more than what it sends takes.
TEST(RunAhead, ByOneDelayBesideOneInTime) {
  Row box;
  const unsigned v = box.add("v");
  box.fabric.join({box.w, 1}, {v, 0});  // without delay: both take their turns by time
  box.join(v, box.x, 10);
  box.begin();
  EXPECT_EQ(box.take(), (Log{"z in0 1 @20"}));
  EXPECT_EQ(box.fabric.next_deadline(), 30);
}

TEST(RunAhead, GoesOnInTimeFromWhereItIs) {
  for (unsigned seed = 100; seed < 130; seed++) {
    Ring turns(seed, true), in_time(seed, false);
    Log log;
    for (Nanos until = 100; until <= 2000; until += 100) {
      for (std::string& line : turns.run(until)) log.push_back(std::move(line));
      until % 200 ? turns.fabric.run_in_time() : turns.fabric.let_run_ahead(false);
    }
    for (std::string& line : turns.run(3000)) log.push_back(std::move(line));
    ASSERT_EQ(by_device(log), by_device(in_time.run(3000))) << seed;
  }
}

// A device with a host: what comes wakes it in the same instant, and it then sends what it makes of that. Hosts say
// what they met, as scripts do.
class Hosted final : public Kernel, private HostSide {
 public:
  using Met = std::function<void(const char* what, unsigned number, Nanos at)>;
  Hosted(Met met, std::function<void()> wake) : met_(std::move(met)), wake_(std::move(wake)) {}
  void post(unsigned number, Port out) {
    posted_.push_back({number, out});
    wake_();
  }
  HostSide* host_side() override { return this; }
  void process(Context& context, Port in, Batch& batch) override {
    for (unsigned i = 0; i < batch.size(); i++) {
      const unsigned number = batch[i].data()[0], left = batch[i].data()[1];
      met_("in", number, context.now());
      if (left > 0)
        post(((number + 1) & 0xFF) + (left - 1) * 256,
             (number + static_cast<unsigned>(context.now())) % 2 ? in : in ^ 1);
      batch.drop(i, dropped_);
    }
  }
  void on_host(Context& context) override {
    for (const auto& [number, out] : std::exchange(posted_, {})) {
      met_("posted", number & 0xFF, context.now());
      PacketPtr packet = context.allocate(2);
      packet->data()[0] = static_cast<std::uint8_t>(number);
      packet->data()[1] = static_cast<std::uint8_t>(number / 256);
      context.emit(std::move(packet), out);
    }
  }

 private:
  struct Posted {
    unsigned number;
    Port out;
  };
  bool has_posted() const override { return !posted_.empty(); }
  Met met_;
  std::function<void()> wake_;
  std::vector<Posted> posted_;
  Counter dropped_;
};

// Such devices in a ring, with one that passes on between each two, of which some post at the beginning.
struct Hosts : LineBox {
  explicit Hosts(unsigned seed) {
    std::mt19937 draw(seed);
    const auto delay = [&draw] { return 5 + static_cast<Nanos>(draw() % 60); };
    const unsigned count = 3 + static_cast<unsigned>(draw() % 4);
    for (unsigned i = 0; i < count; i++) {
      add_host("h" + std::to_string(i));
      add("s" + std::to_string(i));
    }
    for (unsigned i = 0; i < 2 * count; i++) join(i, (i + 1) % (2 * count), delay());
    fabric.count_late();
  }
  void begin() {
    for (unsigned i = 0; i < 4 * hosts.size(); i++)
      hosts[i % hosts.size()]->post(i + 40 * 256, static_cast<Port>(i / hosts.size() % 2));
  }
  void add_host(const std::string& name) {
    const auto number = static_cast<unsigned>(devices.size()), place = static_cast<unsigned>(hosts.size());
    std::vector<KernelPlan> plans;
    plans.push_back({"k", "hosted", Shape::kTwoSided, {test::out(0), test::out(1)}, [&, name, number](Stats&) {
                       auto made = std::make_unique<Hosted>(
                           [this, name, place](const char* what, unsigned packet, Nanos at) {
                             log.push_back(name + " " + what + std::to_string(packet) + " @" + std::to_string(at));
                             if (on_met) on_met(place);
                           },
                           [this, number] { fabric.wake(number); });
                       hosts.push_back(made.get());
                       return made;
                     }});
    devices.push_back(std::make_unique<PipelineDevice>(name, std::vector<std::string>{"a", "b"},
                                                       std::vector<Edge>{{0, 0}, {0, 1}}, std::move(plans), pool, 1));
    fabric.add(*devices.back());
  }
  // How many instants there were.
  unsigned run_instants(Nanos until, const std::function<void(unsigned instant)>& behind_each = {}) {
    unsigned instants = 0;
    while (fabric.next_deadline() < until) {
      fabric.run(fabric.next_deadline());
      instants++;
      if (behind_each) behind_each(instants);
    }
    return instants;
  }
  std::vector<Hosted*> hosts;
  std::function<void(unsigned host)> on_met;
};

// Both begin, in the instant 0, which is not in the past of any of their devices.
void begin_both(Hosts& ahead, Hosts& in_time, bool hosts) {
  ahead.fabric.let_run_ahead(hosts);
  ahead.fabric.limit_ahead(3000);
  for (Hosts* box : {&ahead, &in_time}) {
    box->begin();
    box->fabric.run(0);
  }
}

void expect_the_same(Hosts& ahead, Hosts& in_time, unsigned instants, unsigned of_all) {
  const auto one = by_device(ahead.take()), other = by_device(in_time.take());
  ASSERT_EQ(one, other);
  ASSERT_GT(one.size(), 3u);
  EXPECT_LT(instants, of_all) << "they were ahead";
}

TEST(RunAhead, HostsThatActAloneMeetTheSame) {
  for (unsigned seed = 0; seed < 40 && !testing::Test::HasFailure(); seed++) {
    SCOPED_TRACE(seed);
    Hosts ahead(seed), in_time(seed);
    begin_both(ahead, in_time, true);
    const unsigned instants = ahead.run_instants(3000), of_all = in_time.run_instants(3000);
    expect_the_same(ahead, in_time, instants, of_all);
  }
}

// Hosts begin to run ahead when the devices inside are already ahead of them.
TEST(RunAhead, HostsJoinDevicesThatRanAheadOfThem) {
  for (unsigned seed = 0; seed < 40 && !testing::Test::HasFailure(); seed++) {
    SCOPED_TRACE(seed);
    Hosts turns(seed), in_time(seed);
    begin_both(turns, in_time, false);
    const unsigned instants = turns.run_instants(3000, [&turns](unsigned instant) {
      if (instant % 7 != 0) return;
      turns.fabric.run_in_time();
      turns.fabric.let_run_ahead(instant % 2);
    });
    const unsigned of_all = in_time.run_instants(3000);
    expect_the_same(turns, in_time, instants, of_all);
  }
}

TEST(RunAhead, WhatAHostHasPostedIsNotForgottenWhenAllRunInTimeAgain) {
  Hosts box(1);
  box.fabric.let_run_ahead(true);
  box.begin();
  box.fabric.run_in_time();
  box.fabric.run(0);
  EXPECT_EQ(box.take().size(), 4 * box.hosts.size());
}

TEST(RunAheadDeathTest, AHostThatActsOnAnotherOneIsNamed) {
  Hosts box(2);
  box.fabric.let_run_ahead(true);
  box.begin();
  box.on_met = [&box](unsigned host) { box.hosts[host == 0]->post(9, 0); };
  EXPECT_DEATH(
      {
        box.fabric.run(0);
        while (box.fabric.next_deadline() < 3000) box.fabric.run(box.fabric.next_deadline());
      },
      "a host acts on another one");
}

}  // namespace
}  // namespace rocebox
