/* SPDX-License-Identifier: BSD-3-Clause */
/* load_control: rates by the load of receivers, which load_np tells in its answers to probes: with each new measurement
 * a rate goes half of the way to where the load would be 1, and a step above, so that equal rates are where it ends.
 * Written against DOCA PCC's device side alone. */
#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>

enum { kStep, kLeastRate, kFirstRate, kPatience, kParameters };
enum { kAnswers, kMeasurements, kAskedAgain, kLastLoad, kCounters };

static const struct {
  const char* text;
  uint32_t at_first, least, most;
} parameters[kParameters] = {
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

static uint32_t within(uint64_t rate, const uint32_t* param) {
  if (rate > DOCA_PCC_DEV_MAX_RATE) return DOCA_PCC_DEV_MAX_RATE;
  return rate < param[kLeastRate] ? param[kLeastRate] : (uint32_t)rate;
}

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
  flow->rate = within((flow->rate + wanted) / 2 + param[kStep], param);
}

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  const doca_pcc_dev_event_general_attr_t about = doca_pcc_dev_get_ev_attr(event);
  struct flow* flow = (struct flow*)algo_ctxt;
  if (attr->algo_slot != 0) {
    doca_pcc_dev_default_internal_algo(algo_ctxt, event, attr, results);
    return;
  }
  const uint32_t* param = doca_pcc_dev_get_algo_params(about.port_num, 0);
  uint32_t* counter = doca_pcc_dev_get_counters(about.port_num, 0);
  const uint32_t now = doca_pcc_dev_get_timestamp(event);
  const int is_new = flow->rate == 0;
  if (is_new) flow->rate = within(param[kFirstRate], param);
  const int is_late = !is_new && now - flow->asked > param[kPatience];
  if (about.ev_type == DOCA_PCC_DEV_EVNT_RTT) answer(flow, event, param, counter);
  if (is_late && about.ev_type != DOCA_PCC_DEV_EVNT_RTT) counter[kAskedAgain]++;
  if (is_new || is_late || about.ev_type == DOCA_PCC_DEV_EVNT_RTT) {
    flow->asked = now;
    results->rtt_req = 1;
  }
  results->rate = flow->rate;
}

void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  static const char text[] = "a rate that follows the receiver's load";
  const struct doca_pcc_dev_algo_meta_data about = {2, 1, 0, sizeof text, (uint64_t)(uintptr_t)text};
  _Static_assert(sizeof(struct flow) <= sizeof(doca_pcc_dev_algo_ctxt_t), "what is kept fits into the context");
  doca_pcc_dev_algo_init_metadata(0, &about, kParameters, kCounters);
  for (uint32_t i = 0; i < kParameters; i++)
    doca_pcc_dev_algo_init_param(0, i, parameters[i].at_first, parameters[i].most, parameters[i].least, 1,
                                 (uint32_t)__builtin_strlen(parameters[i].text) + 1,
                                 (uint64_t)(uintptr_t)parameters[i].text);
  for (uint32_t i = 0; i < kCounters; i++)
    doca_pcc_dev_algo_init_counter(0, i, UINT32_MAX, 0, (uint32_t)__builtin_strlen(counters[i]) + 1,
                                   (uint64_t)(uintptr_t)counters[i]);
  for (uint32_t port = 0; port < DOCA_PCC_DEV_MAX_NUM_PORTS; port++) doca_pcc_dev_init_algo_slot(port, 0, 0, 1);
  *disable_event_bitmask = 1u << DOCA_PCC_DEV_EVNT_ROCE_ACK;
}

/* Ranges are checked before. */
doca_pcc_dev_error_t doca_pcc_dev_user_set_algo_params(uint32_t port_num, uint32_t algo_slot, uint32_t param_id_base,
                                                       uint32_t param_num, const uint32_t* new_param_values,
                                                       uint32_t* params) {
  (void)port_num, (void)algo_slot, (void)new_param_values, (void)params;
  return param_id_base + param_num <= kParameters ? DOCA_PCC_DEV_STATUS_OK : DOCA_PCC_DEV_STATUS_FAIL;
}
