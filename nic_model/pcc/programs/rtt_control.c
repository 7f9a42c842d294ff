/* SPDX-License-Identifier: BSD-3-Clause */
/* rtt_control: one probe of the round-trip time after the other, and a rate that follows them: it grows by a step below a
 * target, and is cut in proportion to what is above. Notifications and losses make the next cut a full one. Written against
 * DOCA PCC's device side alone: a template for programs of one's own. */
#include "one_algorithm.h"

enum { kTarget, kStep, kGain, kMostCut, kLeastRate, kFirstRate, kPatience, kParameters };
enum { kSent, kMeasured, kNotified, kRefused, kAskedAgain, kCounters };

static const struct parameter parameters[kParameters] = {
    {"target of the round-trip time, in ns", 12000, 100, 1000000000},
    {"additive step, in 1/2^20 of the port's rate", 2048, 1, DOCA_PCC_DEV_MAX_RATE},
    {"share of the excess that a cut takes, in 1/2^16", 52429, 1, 65536},
    {"most that a cut takes, in 1/2^16", 32768, 1, 65535},
    {"least rate, in 1/2^20", 64, 1, DOCA_PCC_DEV_MAX_RATE},
    {"rate of a new flow, in 1/2^20", DOCA_PCC_DEV_MAX_RATE, 1, DOCA_PCC_DEV_MAX_RATE},
    {"time after which a probe is taken for lost, in ns", 300000, 1000, 1000000000},
};
static const char* const counters[kCounters] = {"TX events", "RTT events", "CNP events", "NACK events",
                                                "probes that were asked for again"};

/* What is kept of a flow. */
struct flow {
  uint32_t rate; /* 0: it is new */
  struct probe probe;
  uint32_t rtt; /* the last one */
  uint8_t hurt; /* a notification or a loss since the last cut */
};

static uint32_t next_rate(const struct flow* flow, const uint32_t* param) {
  const uint32_t target = param[kTarget];
  if (flow->rtt <= target && !flow->hurt) return rate_within(flow->rate + param[kStep], param[kLeastRate]);
  uint32_t cut = param[kMostCut];
  if (!flow->hurt) {
    /* (rtt - target) / rtt, which is below 1, by the gain. */
    const uint32_t excess = doca_pcc_dev_fxp_mult(flow->rtt - target, doca_pcc_dev_fxp_recip(flow->rtt));
    const uint32_t wanted = doca_pcc_dev_fxp_mult(excess, param[kGain]);
    if (wanted < cut) cut = wanted;
  }
  return rate_within(flow->rate - doca_pcc_dev_fxp_mult(flow->rate, cut), param[kLeastRate]);
}

static void handle(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter,
                   doca_pcc_dev_results_t* results) {
  const uint32_t now = doca_pcc_dev_get_timestamp(event);
  if (flow->rate == 0) {
    flow->rate = rate_within(param[kFirstRate], param[kLeastRate]);
    flow->probe.patience = param[kPatience];
    ask(&flow->probe, now, results);
  }
  switch (doca_pcc_dev_get_ev_attr(event).ev_type) {
    case DOCA_PCC_DEV_EVNT_ROCE_TX:
      counter[kSent]++;
      counter[kAskedAgain] += (uint32_t)ask_again(&flow->probe, now, results);
      break;
    case DOCA_PCC_DEV_EVNT_RTT:
      counter[kMeasured]++;
      flow->rtt = now - doca_pcc_dev_get_rtt_req_send_timestamp(event);
      flow->rate = next_rate(flow, param);
      flow->hurt = 0;
      flow->probe.patience = param[kPatience];
      ask(&flow->probe, now, results);
      break;
    case DOCA_PCC_DEV_EVNT_ROCE_CNP:
      counter[kNotified]++;
      flow->hurt = 1;
      break;
    case DOCA_PCC_DEV_EVNT_ROCE_NACK:
      counter[kRefused]++;
      if (doca_pcc_dev_get_ev_attr(event).ev_subtype == DOCA_PCC_DEV_NACK_EVNT_OOS) flow->hurt = 1;
      break;
    default:
      break;
  }
  results->rate = flow->rate;
}

_Static_assert(sizeof(struct flow) <= sizeof(doca_pcc_dev_algo_ctxt_t), "what is kept fits into the context");
static const struct algorithm algorithm = {
    .id = 1,
    .text = "a rate that follows the round-trip time",
    .parameters = parameters,
    .parameter_count = kParameters,
    .counters = counters,
    .counter_count = kCounters,
    .unwanted_events = 1u << DOCA_PCC_DEV_EVNT_ROCE_ACK,
};
