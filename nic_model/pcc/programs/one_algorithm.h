/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program has beside its algorithm, where it has one, in slot 0 of each port: its entry points, its tables of
 * parameters and counters, probes one after the other. The program defines `struct flow`, `algorithm` and `handle`. */
#ifndef ROCEBOX_PCC_ONE_ALGORITHM_H
#define ROCEBOX_PCC_ONE_ALGORITHM_H

#include <doca_pcc_dev.h>
#include <doca_pcc_dev_algo_access.h>
#include <doca_pcc_dev_event.h>

struct parameter {
  const char* text;
  uint32_t at_first, least, most;
};

static const struct algorithm {
  uint32_t id;
  const char* text;
  const struct parameter* parameters;
  uint32_t parameter_count;
  const char* const* counters;
  uint32_t counter_count;
  uint32_t unwanted_events; /* bits of their kinds */
} algorithm;

struct flow; /* what is kept of one, all zero when it is new; no larger than doca_pcc_dev_algo_ctxt_t */
static void handle(struct flow* flow, doca_pcc_dev_event_t* event, const uint32_t* param, uint32_t* counter,
                   doca_pcc_dev_results_t* results);

static uint32_t text_bytes(const char* text) { return (uint32_t)__builtin_strlen(text) + 1; }

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
  const struct doca_pcc_dev_algo_meta_data about = {algorithm.id, 1, 0, text_bytes(algorithm.text),
                                                    (uint64_t)(uintptr_t)algorithm.text};
  doca_pcc_dev_algo_init_metadata(0, &about, algorithm.parameter_count, algorithm.counter_count);
  for (uint32_t i = 0; i < algorithm.parameter_count; i++) {
    const struct parameter* one = &algorithm.parameters[i];
    doca_pcc_dev_algo_init_param(0, i, one->at_first, one->most, one->least, 1, text_bytes(one->text),
                                 (uint64_t)(uintptr_t)one->text);
  }
  for (uint32_t i = 0; i < algorithm.counter_count; i++)
    doca_pcc_dev_algo_init_counter(0, i, UINT32_MAX, 0, text_bytes(algorithm.counters[i]),
                                   (uint64_t)(uintptr_t)algorithm.counters[i]);
  for (uint32_t port = 0; port < DOCA_PCC_DEV_MAX_NUM_PORTS; port++) doca_pcc_dev_init_algo_slot(port, 0, 0, 1);
  *disable_event_bitmask = algorithm.unwanted_events;
}

/* Ranges are checked before. */
doca_pcc_dev_error_t doca_pcc_dev_user_set_algo_params(uint32_t port_num, uint32_t algo_slot, uint32_t param_id_base,
                                                       uint32_t param_num, const uint32_t* new_param_values,
                                                       uint32_t* params) {
  (void)port_num, (void)algo_slot, (void)new_param_values, (void)params;
  return param_id_base + param_num <= algorithm.parameter_count ? DOCA_PCC_DEV_STATUS_OK : DOCA_PCC_DEV_STATUS_FAIL;
}

/* The probe that a flow waits for, and how long it does before it takes it for lost. */
struct probe {
  uint32_t asked, patience;
};

static inline void ask(struct probe* probe, uint32_t now, doca_pcc_dev_results_t* results) {
  probe->asked = now;
  results->rtt_req = 1;
}

/* Asks again where the probe is taken for lost, each time later. Whether it did. */
static inline int ask_again(struct probe* probe, uint32_t now, doca_pcc_dev_results_t* results) {
  if (now - probe->asked <= probe->patience) return 0;
  if (probe->patience < UINT32_MAX / 4) probe->patience *= 2;
  ask(probe, now, results);
  return 1;
}

static inline uint32_t rate_within(uint64_t rate, uint32_t least) {
  if (rate > DOCA_PCC_DEV_MAX_RATE) return DOCA_PCC_DEV_MAX_RATE;
  return rate < least ? least : (uint32_t)rate;
}

#endif
