/* SPDX-License-Identifier: BSD-3-Clause */
/* rtt_control: one probe of the round-trip time after the other, and a rate that follows them: it grows by a step below a
 * target, and is cut in proportion to what is above. Notifications and losses make the next cut a full one. Written against
 * DOCA PCC's device side alone: a template for programs of one's own. */
#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>

enum { kTarget, kStep, kGain, kMostCut, kLeastRate, kFirstRate, kPatience, kParameters };
enum { kSent, kMeasured, kNotified, kRefused, kAskedAgain, kCounters };

static const struct {
  const char* text;
  uint32_t at_first, least, most;
} parameters[kParameters] = {
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
  uint32_t rate;  /* 0: it is new */
  uint32_t asked; /* when the last probe was asked for */
  uint32_t rtt;   /* the last one */
  uint32_t patience;
  uint8_t hurt; /* a notification or a loss since the last cut */
};

static uint32_t within(uint32_t rate, const uint32_t* param) {
  if (rate > DOCA_PCC_DEV_MAX_RATE) return DOCA_PCC_DEV_MAX_RATE;
  return rate < param[kLeastRate] ? param[kLeastRate] : rate;
}

static uint32_t next_rate(const struct flow* flow, const uint32_t* param) {
  const uint32_t target = param[kTarget];
  if (flow->rtt <= target && !flow->hurt) return within(flow->rate + param[kStep], param);
  uint32_t cut = param[kMostCut];
  if (!flow->hurt) {
    /* (rtt - target) / rtt, which is below 1, by the gain. */
    const uint32_t excess = doca_pcc_dev_fxp_mult(flow->rtt - target, doca_pcc_dev_fxp_recip(flow->rtt));
    const uint32_t wanted = doca_pcc_dev_fxp_mult(excess, param[kGain]);
    if (wanted < cut) cut = wanted;
  }
  return within(flow->rate - doca_pcc_dev_fxp_mult(flow->rate, cut), param);
}

static void ask(struct flow* flow, uint32_t now, doca_pcc_dev_results_t* results) {
  flow->asked = now;
  results->rtt_req = 1;
}

static void handle(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter,
                   doca_pcc_dev_results_t* results) {
  const uint32_t now = doca_pcc_dev_get_timestamp(event);
  if (flow->rate == 0) {
    flow->rate = within(param[kFirstRate], param);
    flow->patience = param[kPatience];
    ask(flow, now, results);
  }
  switch (doca_pcc_dev_get_ev_attr(event).ev_type) {
    case DOCA_PCC_DEV_EVNT_ROCE_TX:
      counter[kSent]++;
      if (now - flow->asked <= flow->patience) break;
      counter[kAskedAgain]++;
      if (flow->patience < UINT32_MAX / 4) flow->patience *= 2;
      ask(flow, now, results);
      break;
    case DOCA_PCC_DEV_EVNT_RTT:
      counter[kMeasured]++;
      flow->rtt = now - doca_pcc_dev_get_rtt_req_send_timestamp(event);
      flow->rate = next_rate(flow, param);
      flow->hurt = 0;
      flow->patience = param[kPatience];
      ask(flow, now, results);
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

void doca_pcc_dev_user_algo(doca_pcc_dev_algo_ctxt_t* algo_ctxt, doca_pcc_dev_event_t* event,
                            const doca_pcc_dev_attr_t* attr, doca_pcc_dev_results_t* results) {
  const uint32_t port = doca_pcc_dev_get_ev_attr(event).port_num;
  if (attr->algo_slot != 0) {
    doca_pcc_dev_default_internal_algo(algo_ctxt, event, attr, results);
    return;
  }
  handle((struct flow*)algo_ctxt, event, doca_pcc_dev_get_algo_params(port, 0), doca_pcc_dev_get_counters(port, 0),
         results);
}

void doca_pcc_dev_user_init(uint32_t* disable_event_bitmask) {
  static const char text[] = "a rate that follows the round-trip time";
  const struct doca_pcc_dev_algo_meta_data about = {1, 1, 0, sizeof text, (uint64_t)(uintptr_t)text};
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
