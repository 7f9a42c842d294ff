// SPDX-License-Identifier: BSD-3-Clause
// Bound: a pair of queue pairs, one of which binds memory windows.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::binding {

// A pair whose side 1 binds windows for side 0.
struct Bound : NicBox {
  explicit Bound(PairOptions with = {}, const std::string& nic = "rate: 100Gbps",
                 const std::string& link = "delay: 1us")
      : NicBox(nic, link) {
    with.access |= IBV_ACCESS_MW_BIND;
    connect(with);
    on(1, [&](nic_model::Host& host) { window.rkey = host.memory().add_window(sides[1].pd); });
    region.lkey = region.rkey = sides[1].key;
  }
  std::uint32_t next_key() const { return ibv_inc_rkey(window.rkey); }
  // One that binds `bytes` from `offset` on; the window has its next key once it has been read.
  ibv_send_wr request(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes, unsigned access) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = &window;
    wr.bind_mw.rkey = next_key();
    wr.bind_mw.bind_info = {&region, sides[1].address() + offset, bytes, access};
    return wr;
  }
  int send(ibv_send_wr wr, unsigned side = 1) {
    int error = -1;
    on(side, [&](nic_model::Host& host) { error = host.post_send(*sides[side].qp, &wr, nullptr); });
    return error;
  }
  int bind(std::uint64_t id, std::uint64_t offset, std::uint64_t bytes, unsigned access = IBV_ACCESS_REMOTE_WRITE) {
    const std::uint32_t key = next_key();
    const int error = send(request(id, offset, bytes, access));
    if (error == 0) window.rkey = key;
    return error;
  }
  int invalidate(std::uint64_t id, unsigned flags = 0) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED | flags;
    wr.invalidate_rkey = window.rkey;
    return send(wr);
  }
  // How a WRITE of side 0 through the window ends.
  ibv_wc_status write(std::uint64_t offset, std::uint32_t bytes) {
    completions(0).clear();
    EXPECT_EQ(0, post(0, 5, IBV_WR_RDMA_WRITE, 0, bytes, offset, IBV_SEND_SIGNALED,
                      [&](ibv_send_wr& wr) { wr.wr.rdma.rkey = window.rkey; }));
    run(10 * kMillisecond);
    return completions(0).empty() ? IBV_WC_GENERAL_ERR : completions(0)[0].status;
  }
  using Statuses = std::vector<std::pair<std::uint64_t, ibv_wc_status>>;
  Statuses statuses() {
    run(10 * kMillisecond);
    Statuses all;
    for (const ibv_wc& wc : completions(1)) all.emplace_back(wc.wr_id, wc.status);
    completions(1).clear();
    return all;
  }
  ibv_mw window{};
  ibv_mr region{};
};

}  // namespace rocebox::test::binding
