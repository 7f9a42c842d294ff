/* SPDX-License-Identifier: BSD-3-Clause */
/* swift_control: Swift (Kumar et al., SIGCOMM 2020, 3.1 to 3.3; SCR, A.6) against DOCA PCC's device side, with a rate in place
 * of a window: a window is a rate times a round-trip time. It grows by a step in a round trip below the target delay, and is
 * cut in proportion to what is above, once in a round trip. The target is higher for flows with small windows, by the
 * inverse of their square root: many flows at one queue need a longer one. */
#include <rocebox/fxp16.h>

#include "one_algorithm.h"

enum {
  kBase, kStep, kHops, kPerHop, kRange, kLeastWindow, kMostWindow, kPortBytes, kMtu, kBeta, kMostCut, kLeastRate, kPatience,
  kParameters
};
enum { kProbes, kRises, kCuts, kNacks, kAskedAgain, kCounters };

static const struct parameter parameters[kParameters] = {
    {"target delay without hops and scaling, in ns", 8000, 100, 1000000000},
    {"additive step in a round trip, in 1/2^20 of the port's rate", 2048, 1, DOCA_PCC_DEV_MAX_RATE},
    {"switches on the path", 2, 0, 64},
    {"added to the target for each, in ns", 1000, 0, 10000000},
    {"most that is added by scaling with flows, in ns", 4000, 0, 1000000000},
    {"window at which all of that is added, in 1/256 of a packet", 256, 1, (1 << 24) - 1},
    {"window at which none is, in 1/256 of a packet", 25600, 1, (1 << 24) - 1},
    {"bytes that the port sends in a microsecond", 12500, 1, 1000000},
    {"bytes of a packet", 4096, 256, 9216},
    {"share of the excess that a cut takes, in 1/2^16", 52429, 1, 65536},
    {"most that a cut takes, in 1/2^16", 32768, 1, 65535},
    {"least rate, in 1/2^20", 64, 1, DOCA_PCC_DEV_MAX_RATE},
    {"time after which a probe is taken for lost, in ns", 300000, 1000, 1000000000},
};
static const char* const counters[kCounters] = {"RTT events", "rises", "cuts", "NACK events out of sequence",
                                                "probes that were asked for again"};

/* What is kept of a flow. */
struct flow {
  uint32_t rate; /* 0: it is new */
  struct probe probe;
  uint32_t rtt; /* the last one, its answering included */
  uint32_t cut; /* when */
};

/* rate * rtt in packets. */
static fxp16 window_of(uint32_t rate, uint32_t rtt, const uint32_t* param) {
  const uint64_t bytes = doca_pcc_dev_mult(rate, param[kPortBytes]) / 1000 * rtt >> 20;
  const uint64_t window = (bytes << 16) / param[kMtu];
  return window > FXP16_MAX ? FXP16_MAX : (fxp16)window;
}
static fxp16 inverse_root(fxp16 window) { return fxp16_recip(fxp16_sqrt(window)); }

/* base + hops * h + max(0, min(alpha / sqrt(w) + beta, range)) with alpha = range / (1 / sqrt(w_min) - 1 / sqrt(w_max)) and
 * beta = -alpha / sqrt(w_max): one quotient in place of alpha and beta. */
uint32_t swift_control_target(const uint32_t* param, fxp16 window);
uint32_t swift_control_target(const uint32_t* param, fxp16 window) {
  const uint32_t fixed = param[kBase] + param[kHops] * param[kPerHop];
  const fxp16 least = inverse_root(param[kMostWindow] << 8), most = inverse_root(param[kLeastWindow] << 8);
  const fxp16 here = inverse_root(window);
  if (here <= least || most <= least) return fixed;
  if (here >= most) return fixed + param[kRange];
  return fixed + fxp16_quotient(doca_pcc_dev_mult(param[kRange], here - least), most - least);
}

/* Once in a round trip. */
static void cut(struct flow* flow, uint32_t share, uint32_t now, const uint32_t* param, uint32_t* counter) {
  if (now - flow->cut < flow->rtt) return;
  if (share > param[kMostCut]) share = param[kMostCut];
  flow->rate = rate_within(flow->rate - doca_pcc_dev_fxp_mult(flow->rate, share), param[kLeastRate]);
  flow->cut = now;
  counter[kCuts]++;
}

/* The delay is what the network took: without the time that the peer took to answer. */
static void on_rtt(struct flow* flow, doca_pcc_dev_event_t* event, uint32_t now, const uint32_t* param, uint32_t* counter) {
  const uint32_t answering =
      doca_pcc_dev_get_rtt_resp_send_timestamp(event) - doca_pcc_dev_get_rtt_req_recv_timestamp(event);
  flow->rtt = now - doca_pcc_dev_get_rtt_req_send_timestamp(event);
  const uint32_t delay = answering < flow->rtt ? flow->rtt - answering : flow->rtt;
  const uint32_t target = swift_control_target(param, window_of(flow->rate, delay, param));
  counter[kProbes]++;
  flow->probe.patience = param[kPatience];
  if (delay <= target) {
    counter[kRises]++;
    flow->rate = rate_within(flow->rate + param[kStep], param[kLeastRate]);
  } else {
    /* (delay - target) / delay, which is below 1. */
    const uint32_t excess = (uint32_t)(doca_pcc_dev_mult(delay - target, 65536) / delay);
    cut(flow, doca_pcc_dev_fxp_mult(excess, param[kBeta]), now, param, counter);
  }
}

static void handle(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter,
                   doca_pcc_dev_results_t* results) {
  const uint32_t now = doca_pcc_dev_get_timestamp(event);
  if (flow->rate == 0) {
    flow->rate = DOCA_PCC_DEV_MAX_RATE;
    flow->probe.patience = param[kPatience];
    ask(&flow->probe, now, results);
  }
  switch (doca_pcc_dev_get_ev_attr(event).ev_type) {
    case DOCA_PCC_DEV_EVNT_ROCE_TX:
      counter[kAskedAgain] += (uint32_t)ask_again(&flow->probe, now, results);
      break;
    case DOCA_PCC_DEV_EVNT_RTT:
      on_rtt(flow, event, now, param, counter);
      ask(&flow->probe, now, results);
      break;
    case DOCA_PCC_DEV_EVNT_ROCE_NACK:
      if (doca_pcc_dev_get_ev_attr(event).ev_subtype != DOCA_PCC_DEV_NACK_EVNT_OOS) break;
      counter[kNacks]++;
      cut(flow, param[kMostCut], now, param, counter);
      break;
    default:
      break;
  }
  results->rate = flow->rate;
}

_Static_assert(sizeof(struct flow) <= sizeof(doca_pcc_dev_algo_ctxt_t), "what is kept fits into the context");
static const struct algorithm algorithm = {
    .id = 3,
    .text = "Swift: a rate that follows a delay which many flows may share",
    .parameters = parameters,
    .parameter_count = kParameters,
    .counters = counters,
    .counter_count = kCounters,
    .unwanted_events = 1u << DOCA_PCC_DEV_EVNT_ROCE_ACK | 1u << DOCA_PCC_DEV_EVNT_ROCE_CNP,
};
