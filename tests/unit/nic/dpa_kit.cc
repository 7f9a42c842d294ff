// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/nic/dpa_kit.h"

namespace rocebox::test {

void DpaBox::bring_up(unsigned side, nic_model::Qp& qp, std::uint32_t peer) {
  on(side, [&](nic_model::Host& host) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ASSERT_EQ(0, host.modify_qp(qp, a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_4096;
    a.dest_qp_num = peer;
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 1;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.hop_limit = 64;
    const roce::IpAddress to = roce::ipv4(10, 0, 0, side ? 1 : 2);
    std::copy(to.begin(), to.end(), a.ah_attr.grh.dgid.raw);
    const bool rc = qp.is(IBV_QPT_RC);
    ASSERT_EQ(0, host.modify_qp(qp, a,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 10, a.retry_cnt = 7, a.rnr_retry = 7, a.max_rd_atomic = 4;
    ASSERT_EQ(0, host.modify_qp(
                     qp, a,
                     IBV_QP_STATE | IBV_QP_SQ_PSN |
                         (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
  });
}

dpa::Endpoint& DpaBox::add(dpa::Process& process, unsigned side, const dpa::EndpointOptions& with) {
  on(side, [&](nic_model::Host&) { endpoints.push_back(std::make_unique<dpa::Endpoint>(process, with)); });
  return *endpoints.back();
}

void DpaBox::connect_to(dpa::Process& process, dpa::EndpointOptions with, std::size_t host_bytes) {
  window = std::make_unique<dpa::GuardedMemory>(host_bytes);
  Side& near = sides[0];
  on(1, [&](nic_model::Host& host) {
    with.host_domain = host.alloc_pd();
    with.host_address = reinterpret_cast<std::uintptr_t>(window->data());
    with.host_bytes = host_bytes;
    with.host_key = host.memory().add(with.host_domain, window->data(), host_bytes, IBV_ACCESS_LOCAL_WRITE);
  });
  dpa::Endpoint& far = add(process, 1, with);
  on(0, [&](nic_model::Host& host) {
    near.host = hosts[0].get();
    near.memory.resize(1 << 16);
    near.pd = host.alloc_pd();
    near.key = host.memory().add(near.pd, near.memory.data(), near.memory.size(), IBV_ACCESS_LOCAL_WRITE);
    near.cq = host.create_cq(1024, near.host->number);
    host.arm(*near.cq);
    nic_model::QpInit init;
    init.type = with.type;
    init.domain = near.pd;
    init.send_cq = init.receive_cq = near.cq;
    init.capacity = {256, 256, 1, 1, 0};
    near.qp = host.create_qp(init);
  });
  bring_up(0, *near.qp, far.qp().number());
  bring_up(1, far.qp(), near.qp->number());
  sides[1].key = process.heap_key();
  on(1, [&](nic_model::Host&) { far.run(); });
}

}  // namespace rocebox::test
