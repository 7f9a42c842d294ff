// SPDX-License-Identifier: BSD-3-Clause
// Queue pairs of one NIC that keep WRITEs posted, for who looks at what leaves when.
#pragma once
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::scheduling {

/// Queue pairs of one NIC to the other's, each with a traffic class.
class Senders {
 public:
  explicit Senders(const std::string& nic, const std::string& link = "delay: 1us") : box(nic, link) { box.connect(); }
  // Its number.
  unsigned add(std::uint8_t traffic_class) {
    const Side near = box.sides[0], far = box.sides[1];
    nic_model::Qp* made[2];
    for (unsigned side = 0; side < 2; side++)
      box.on(side, [&](nic_model::Host& host) {
        const Side& s = side ? far : near;
        nic_model::QpInit init;
        init.domain = s.pd;
        init.send_cq = init.receive_cq = s.cq;
        init.capacity = {64, 1, 1, 1, 0};
        made[side] = host.create_qp(init);
      });
    PairOptions options;
    options.psn = 0;
    options.timeout = 14;
    options.traffic_class = traffic_class;
    for (unsigned side = 0; side < 2; side++) box.make_ready(side, *made[side], made[1 - side]->number(), options);
    qps.push_back(made[0]);
    return static_cast<unsigned>(qps.size() - 1);
  }
  // Keeps `depth` WRITEs of so many bytes posted until the end.
  void write(unsigned number, std::uint32_t bytes, unsigned depth) {
    loads.push_back({number, bytes});
    box.on(0, [&](nic_model::Host& host) {
      for (unsigned i = 0; i < depth; i++) post(host, loads.size() - 1);
    });
  }
  void run(Nanos span) {
    box.hosts[0]->on_wc = [this](nic_model::Host& host, const ibv_wc& wc) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      Load& load = loads[wc.wr_id];
      load.done += load.bytes;
      if (!stopped) post(host, wc.wr_id);
    };
    for (Load& load : loads) load.done = 0;
    box.run(span);
  }
  ~Senders() { stopped = true; }
  double gbps(std::size_t load, Nanos span) const {
    return static_cast<double>(loads[load].done) * 8 / static_cast<double>(span);
  }

  struct Load {
    unsigned number;
    std::uint32_t bytes;
    std::uint64_t done = 0;
  };
  bool stopped = false;
  NicBox box;
  std::vector<nic_model::Qp*> qps;
  std::vector<Load> loads;

 private:
  void post(nic_model::Host& host, std::size_t load) {
    ibv_sge sge{box.sides[0].address(), loads[load].bytes, box.sides[0].key};
    ibv_send_wr wr{};
    wr.wr_id = load;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = box.sides[1].address();
    wr.wr.rdma.rkey = box.sides[1].key;
    const ibv_send_wr* bad = nullptr;
    ASSERT_EQ(0, host.post_send(*qps[loads[load].number], &wr, &bad));
  }
};

inline constexpr Nanos kSpan = 2 * kMillisecond;

/// The end of a run lets what is posted go, and no more.
inline void drain(Senders& senders) {
  senders.stopped = true;
  senders.box.run();
}

}  // namespace rocebox::test::scheduling
