// SPDX-License-Identifier: BSD-3-Clause
#include "tests/swarm/fabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "nic_model/rate/congestion_control.h"
#include "runtime/component/registry.h"
#include "tests/swarm/fabric_limits.h"
#include "tests/swarm/fabric_shape.h"
#include "tests/swarm/fabric_text.h"
#include "tests/swarm/workload_options.h"
#include "tests/unit/contracts/random_fields.h"

namespace rocebox::swarm {
namespace {

constexpr int kDraws = 200;
constexpr unsigned kWorkloadsMax = 3, kFaultyLinksMax = 2;

Registry& registry_with_own() {
  static Registry* const registry = [] {
    auto* made = new Registry;
    add_own_components(*made);
    return made;
  }();
  return *registry;
}

class FabricDrawing {
 public:
  explicit FabricDrawing(std::uint64_t seed) : random_(seed), registry_(registry_with_own()) {}

  std::string draw() {
    std::string yaml = fmt::format("seed: {}\nsim: {{watchdog: 3600s}}\n", below(1000));
    nic_ = with_control(options(*registry_.find("nic"), kNic));
    components.emplace_back("nic");
    switch (below(4)) {
      case 0:
        yaml += gateways();
        break;
      case 1:
        yaml += star();
        break;
      default:
        yaml += topology();
    }
    yaml += links() + workloads();
    if (!control_.empty()) components.push_back(control_);
    const bool hasty = says(yaml, {"retransmission_timeout: 100000ns", "retransmission_timeout: 1000000ns",
                                   "retransmission_timeout: 4000000ns", " timeout: 4", " timeout: 8", "cutoff: "}) ||
                       has_short_ack_timeout(yaml) || has_short_queue(yaml);
    if (hasty) promises.patient = false;
    // Direct placement throws away what is no WRITE, and says so once, or when something comes behind it.
    if (!promises.ordered && says(yaml, {"recovery: rnic_sr", "recovery: selective", "recovery: timeout_only"}))
      promises.prompt = false;
    // Each gap that reordering makes costs a try.
    if (!promises.ordered && says(yaml, {"retry_cnt"})) promises.patient = false;
    // verbs_check's queue pairs are of all services in turn: what comes late may meet another's with the same number.
    promises.apart = !says(yaml, {"type: verbs_check"}) && !SharedGroups(yaml).services();
    promises.keyed = !SharedGroups(yaml).qkeys();
    if (says(yaml, {"up: false"})) promises.faultless = promises.patient = false;
    if (says(nic_, {"up: false"})) promises.reliable = false;                 // a NIC that never answers is waited for
    if (says(yaml, {"UC", "inc_reduce_scatter"})) promises.reliable = false;  // sums are of datagrams, each sent once
    if (says(yaml, {"repaired"}) || (says(yaml, {"corrupt"}) && says(yaml, {"icrc: false"}))) promises.genuine = false;
    return yaml;
  }

  FabricPromises promises;
  std::vector<std::string> components;

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  auto drawing() {
    return [this](unsigned n) { return below(n); };
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<unsigned>(all.size()))];
  }

  // The inside of a mapping in flow style; empty when all is left at its default.
  std::string options(const Component& component, const Limits& limits) {
    for (int i = 0; i < 20; i++) {
      test::RandomFields fields(random_(), limits);
      const std::unique_ptr<Options> own = component.options(registry_);
      own->fields(fields);
      if (fields.refused()) continue;
      const std::string text = fields.yaml();
      return text.substr(1, text.size() - 2);
    }
    return "";
  }
  // One network in three has a congestion control, where the drawn options enable none by themselves.
  std::string with_control(const std::string& nic) {
    const std::vector<const Component*> all = registry_.of_kind(nic_model::kCongestionControlKind);
    control_.clear();
    if (says(nic, {"enabled: true"}) || below(3)) return nic;
    control_ = all[below(static_cast<unsigned>(all.size()))]->name;
    return "congestion_control: " + control_ + after_comma(nic);
  }
  static std::string after_comma(const std::string& text) { return text.empty() ? "" : ", " + text; }
  std::string rate() { return draw_rate(drawing()); }
  std::string delay() { return draw_delay(drawing()); }

  // Hosts of one switch are numbered through, and so are the prefixes of switches with hosts.
  void add_hosts(unsigned count, unsigned at_each_switch) {
    for (unsigned i = 0; i < count; i++) {
      hosts_.push_back(fmt::format("h{}", i));
      addresses_.push_back(fmt::format("10.0.{}.{}", i / at_each_switch, i % at_each_switch + 1));
    }
  }

  std::string topology() {
    const NetworkShape shape = draw_shape(drawing());
    add_hosts(shape.hosts, shape.at_each_switch);
    link_names_ = shape.links;
    placed_ = true;
    const std::string device =
        shape.has_switches ? switch_options(shape.has_racks) : "";  // which may change the NICs' options
    return fmt::format("topology:\n  {}\n  hosts: {{nic: {{{}}}}}\n{}", shape.yaml, nic_,
                       shape.has_switches ? fmt::format("  switches: {{switch: {{{}}}}}\n", device) : "");
  }

  std::string switch_options(bool racks) {
    components.insert(components.end(), {"switch", "forward"});
    std::string text;
    if (racks && below(3) == 0) {
      components.emplace_back("themis");
      promises.ordered = false;
      Limits limits = kNic;
      limits.kept.insert(limits.kept.end(), {"recovery", "window"});
      nic_ = "recovery: rnic_sr, window: 64" + after_comma(with_control(options(*registry_.find("nic"), limits)));
      text =
          fmt::format("programs: [forward, themis], themis: {{window: 64, ooo_threshold: {}, qps: {}, learning: {}}}",
                      one_of({0, 16, 48}), one_of({4, 256}), below(2) ? "true" : "false");
    } else if (below(2)) {
      const char* balance = one_of({"flow", "flowlet", "random", "least_queue"});
      promises.ordered = std::string_view(balance) == "flow";
      text = fmt::format("forward: {{balance: {}}}", balance);
    }
    if (below(3) == 0)
      text += fmt::format("{}traffic_manager: {{buffer: {}KiB, packets: {}{}}}", text.empty() ? "" : ", ",
                          one_of({32, 256, 16384}), one_of({64, 4096}),
                          below(2) ? ", ecn: {min: 10KB, max: 30KB, probability: 10%}" : "");
    return text;
  }

  std::string star() {
    const unsigned count = 2 + below(4);
    add_hosts(count, count);
    const std::string speed = rate();
    std::string yaml = fmt::format(
        "devices:\n  s: {{switch: {{ports: [p0, p1, p2, p3, p4], traffic_manager: {{rate: {}, "
        "buffer: 16MiB, packets: 16384}}}}}}\n",
        speed);
    components.insert(components.end(), {"switch", "forward"});
    for (unsigned i = 0; i < count; i++) {
      yaml += host(i, speed);
      add_link(fmt::format("w{}", i), hosts_[i] + ".wire", fmt::format("s.p{}", i));
    }
    return yaml;
  }

  std::string gateways() {
    add_hosts(2, 2);
    const std::string speed = rate(), lowar = options(*registry_.find("lowar"), kGateway);
    components.emplace_back("lowar");
    // What was lost and made again comes late, and sooner or later than what was not.
    add_link("haul", "g0.wan", "g1.wan");
    add_link("w0", "h0.wire", "g0.host");
    add_link("w1", "h1.wire", "g1.host");
    std::string yaml = "devices:\n" + host(0, speed) + host(1, speed);
    for (unsigned i = 0; i < 2; i++)
      yaml += fmt::format("  g{}: {{path: host <-> lowar <-> wan, kernels: {{lowar: {{{}}}}}}}\n", i, lowar);
    return yaml;
  }

  std::string host(unsigned number, const std::string& speed) {
    return fmt::format("  {}: {{nic: {{address: {}, rate: {}{}}}}}\n", hosts_[number], addresses_[number], speed,
                       after_comma(nic_));
  }
  void add_link(const std::string& name, const std::string& near, const std::string& far) {
    link_names_.push_back(name);
    ends_.push_back(fmt::format("between: [{}, {}]", near, far));
  }

  // Half of the networks have a link or two with faults.
  std::string links() {
    std::string yaml;
    unsigned faulty = below(2) ? 0 : 1 + below(kFaultyLinksMax);
    for (std::size_t i = 0; i < link_names_.size(); i++) {
      std::string text;
      if (faulty > 0 && (below(2) || i + faulty >= link_names_.size())) {
        faulty--;
        text = options(*registry_.wire(), kLink);
        promises.faultless = promises.faultless && text.empty();
      }
      const std::string fixed = placed_ ? "" : ends_[i];
      if (text.empty() && !placed_) text = "delay: " + delay();
      if (text.empty()) continue;
      yaml += fmt::format("  {}: {{{}{}{}}}\n", link_names_[i], fixed, fixed.empty() ? "" : ", ", text);
    }
    components.emplace_back("link");
    return yaml.empty() ? "" : "links:\n" + yaml;
  }

  std::string workloads() {
    std::string yaml = "workloads:\n";
    const unsigned wanted = 1 + below(kWorkloadsMax);
    for (unsigned number = 0; number < wanted;) number += workload(number, yaml);
    return yaml;
  }
  std::vector<std::string> some_hosts(std::size_t count) {
    std::vector<std::string> some = hosts_;
    std::shuffle(some.begin(), some.end(), random_);
    some.resize(count);
    return some;
  }
  std::string when(unsigned number) {
    std::string text;
    if (below(3) == 0) text += fmt::format(", start: {}ns", below(100'000));
    if (number > 0 && below(4) == 0) text += fmt::format(", after: [w{}]", below(number));
    return text;
  }

  // Rows that were written.
  unsigned workload(unsigned number, std::string& yaml) {
    const std::vector<const Component*> kinds = registry_.of_kind(kWorkloadKind);
    const Component& kind = *kinds[below(static_cast<unsigned>(kinds.size()))];
    if (const std::string words = pair_options(kind.name, drawing()); !words.empty())
      return pair(kind.name, words, number, yaml);
    if (std::string_view(kind.name) == "poisson") return poisson(number, yaml);
    if (std::string_view(kind.name) == "sdr_messages") {
      yaml += fmt::format("  w{}: {{type: sdr_messages, hosts: [{}], {}}}\n", number, fmt::join(some_hosts(2), ", "),
                          sdr_messages_options(drawing()));
      components.emplace_back(kind.name);
      return 1;
    }
    // Themis takes its window and RNIC-SR for granted, and credits go with go-back-N alone.
    Limits limits = kWorkload;
    const bool is_themis = std::ranges::find(components, "themis") != components.end();
    if (is_themis) limits.kept.emplace_back("window");
    if (is_themis || says(nic_, {"credits: true"})) limits.kept.emplace_back("recovery");
    test::RandomFields fields(random_(), limits);
    const std::unique_ptr<Options> drawn = kind.options(registry_);
    drawn->fields(fields);
    // Alone a host would be one end that waits for another.
    Range<std::int64_t> range = static_cast<const WorkloadOptions&>(*drawn).hosts();
    range.low = std::max<std::int64_t>(range.low, 2);
    const auto most = static_cast<std::int64_t>(hosts_.size());
    if (fields.refused() || range.low > most) return 0;
    const auto span = static_cast<unsigned>(std::min(range.high, most) - range.low + 1);
    const auto count = static_cast<std::size_t>(range.low) + below(span);
    const std::string text = fields.yaml();
    yaml += fmt::format("  w{}: {{type: {}, hosts: [{}]{}{}}}\n", number, kind.name, fmt::join(some_hosts(count), ", "),
                        when(number), after_comma(text.substr(1, text.size() - 2)));
    components.emplace_back(kind.name);
    return 1;
  }

  // Its sizes are a file's, and of its time not much is simulated.
  unsigned poisson(unsigned number, std::string& yaml) {
    const unsigned load = below(90), duration = below(60), mtu = below(5);
    yaml += fmt::format(
        "  w{}: {{type: poisson, hosts: [{}], sizes: {}, load: {}%, rate: 10Gbps, duration: {}us, mtu: {}}}\n", number,
        fmt::join(some_hosts(2 + below(static_cast<unsigned>(hosts_.size()) - 1)), ", "), ROCEBOX_SWARM_SIZES, 1 + load,
        1 + duration, 256 << mtu);
    components.emplace_back("poisson");
    return 1;
  }

  // A server and its client, which must know it.
  unsigned pair(std::string_view kind, const std::string& words, unsigned number, std::string& yaml) {
    const std::vector<std::string> ends = some_hosts(2);
    const auto server = static_cast<std::size_t>(std::ranges::find(hosts_, ends[0]) - hosts_.begin());
    std::string of_server, of_client;
    if (kind == "rping") of_client = fmt::format(", count: {}", 1 + below(20));
    if (kind == "dpa_program") {
      const unsigned program = below(3);
      constexpr const char* kPrograms[] = {"echo.so, handler: echo_handler",
                                           "bitmap.so, handler: bitmap_handler, host_bytes: 512",
                                           "counter.so, handler: counter_handler, total: counter_messages"};
      constexpr const char* kClients[] = {"echo: true", "verb: write_imm", "verb: send"};
      of_server = fmt::format(", file: {}/{}", ROCEBOX_DPA_PROGRAMS, kPrograms[program]);
      of_client = fmt::format(", {}", kClients[program]);
    }
    yaml += fmt::format("  w{}: {{type: {}, hosts: [{}], {}, port: {}{}}}\n", number, kind, ends[0], words,
                        7000 + number, of_server);
    yaml += fmt::format("  w{}: {{type: {}, hosts: [{}], {}, port: {}, address: {}{}, start: 1ns}}\n", number + 1, kind,
                        ends[1], words, 7000 + number, addresses_[server], of_client);
    components.emplace_back(kind);
    return 2;
  }

  std::mt19937_64 random_;
  Registry& registry_;
  std::string nic_, control_;
  std::vector<std::string> hosts_, addresses_, link_names_, ends_;
  bool placed_ = false;  // by a topology
};

}  // namespace

std::unique_ptr<FabricScenario> make_fabric(std::uint64_t seed, unsigned attempt) {
  std::string why;
  for (int i = 0; i < kDraws; i++) {
    FabricDrawing drawing((seed * kDraws + static_cast<std::uint64_t>(i)) * 1'000'003 + attempt);
    auto scenario = std::make_unique<FabricScenario>();
    scenario->yaml = drawing.draw();
    config::Mistakes mistakes("swarm");
    scenario->config = config::load_text(scenario->yaml, "swarm.yaml", registry_with_own(), mistakes, true);
    why = mistakes.text() + scenario->yaml;
    if (!mistakes.none()) continue;
    scenario->promises = drawing.promises;
    scenario->components = drawing.components;
    return scenario;
  }
  throw std::logic_error("no network that loads; the last one: " + why);
}

}  // namespace rocebox::swarm
