/* SPDX-License-Identifier: BSD-3-Clause */
/* load_control: rates by the load of receivers, which load_np tells in its answers to probes: with each new measurement
 * a rate goes half of the way to where the load would be 1, and a step above, so that equal rates are where it ends.
 * Written against DOCA PCC's device side alone. */
#include "one_algorithm.h"

enum { kStep, kLeastRate, kFirstRate, kPatience, kParameters };
enum { kAnswers, kMeasurements, kAskedAgain, kLastLoad, kCounters };

static const struct parameter parameters[kParameters] = {
    {"step, in 1/2^20 of the port's rate", 1024, 1, DOCA_PCC_DEV_MAX_RATE},
    {"least rate, in 1/2^20", 64, 1, DOCA_PCC_DEV_MAX_RATE},
    {"rate of a new flow, in 1/2^20", DOCA_PCC_DEV_MAX_RATE / 8, 1, DOCA_PCC_DEV_MAX_RATE},
    {"time after which a probe is taken for lost, in ns", 300000, 1000, 1000000000},
};
static const char* const counters[kCounters] = {"answers to probes", "answers with a new measurement",
                                                "probes that were asked for again", "load that was told last"};

/* What is kept of a flow. */
struct flow {
  uint32_t rate; /* 0: it is new */
  uint32_t asked;
  uint32_t measured; /* the last measurement that it has heard of */
};

static void answer(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter) {
  uint32_t words[3];
  __builtin_memcpy(words, doca_pcc_dev_get_rtt_raw_data(event), sizeof words);
  counter[kAnswers]++;
  counter[kLastLoad] = words[1];
  if (words[2] == flow->measured) return;
  flow->measured = words[2];
  counter[kMeasurements]++;
  /* Below an eighth of the load there is no telling: at most twice the rate at once. */
  const uint32_t load = words[1] < 1u << 13 ? 1u << 13 : words[1];
  uint64_t wanted = doca_pcc_dev_mult(flow->rate, doca_pcc_dev_fxp_recip(load)) >> 16;
  if (wanted > 2 * (uint64_t)flow->rate) wanted = 2 * (uint64_t)flow->rate;
  flow->rate = rate_within((flow->rate + wanted) / 2 + param[kStep], param[kLeastRate]);
}

static void handle(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter,
                   doca_pcc_dev_results_t* results) {
  const uint32_t now = doca_pcc_dev_get_timestamp(event), kind = doca_pcc_dev_get_ev_attr(event).ev_type;
  const int is_new = flow->rate == 0;
  if (is_new) flow->rate = rate_within(param[kFirstRate], param[kLeastRate]);
  const int is_late = !is_new && now - flow->asked > param[kPatience];
  if (kind == DOCA_PCC_DEV_EVNT_RTT) answer(flow, event, param, counter);
  if (is_late && kind != DOCA_PCC_DEV_EVNT_RTT) counter[kAskedAgain]++;
  if (is_new || is_late || kind == DOCA_PCC_DEV_EVNT_RTT) {
    flow->asked = now;
    results->rtt_req = 1;
  }
  results->rate = flow->rate;
}

_Static_assert(sizeof(struct flow) <= sizeof(doca_pcc_dev_algo_ctxt_t), "what is kept fits into the context");
static const struct algorithm algorithm = {
    .id = 2,
    .text = "a rate that follows the receiver's load",
    .parameters = parameters,
    .parameter_count = kParameters,
    .counters = counters,
    .counter_count = kCounters,
    .unwanted_events = 1u << DOCA_PCC_DEV_EVNT_ROCE_ACK,
};
