/* SPDX-License-Identifier: BSD-3-Clause */
/* probe: an agent that only measures (SCR, 4.3.1): probes of each flow's path at a fixed pace, by the flow's own source port or by
 * another, and what came of them: the least round-trip time and quantiles, of a histogram whose steps are 1/256 of a value. */
#include <rocebox_scr.h>

enum { kPeriod, kPort, kNetwork };
enum { kSent, kAnswers, kLost, kLeast, kMedian, kP99, kMost };

const struct scr_parameter scr_parameters[] = {
    {"period", "between two probes of a flow, ns", 100000, 1000, 10000000000},
    {"port", "UDP source port of the probes; 0: the flow's own", 0, 0, 65535},
    {"network", "1: without the time that the peer took", 1, 0, 1},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"probes",    "answers", "lost",   "least_ns",
                                    "median_ns", "p99_ns",  "most_ns", 0};

#define STEPS 256 /* of an octave */
#define OCTAVES 32
static uint32_t histogram[OCTAVES * STEPS];
static uint8_t known[SCR_FLOWS_MAX];
static uint32_t flows[SCR_FLOWS_MAX], flow_count;
static uint8_t running;

/* Below STEPS each value has a step of its own; above, eight bits behind the leading one count. */
static uint32_t step_of(uint32_t value) {
  if (value < STEPS) return value;
  const uint32_t octave = 31 - (uint32_t)__builtin_clz(value);
  return (octave - 7) * STEPS + (value >> (octave - 8)) - STEPS;
}
static uint32_t value_of(uint32_t step) {
  if (step < STEPS) return step;
  const uint32_t octave = step / STEPS + 7, least = (STEPS + step % STEPS) << (octave - 8);
  return least + (1u << (octave - 8)) / 2;
}

static uint32_t quantile(uint64_t of, uint64_t thousandths) {
  uint64_t rank = (of * thousandths + 999) / 1000;
  for (uint32_t step = 0; step < OCTAVES * STEPS; step++) {
    if (histogram[step] >= rank) return value_of(step);
    rank -= histogram[step];
  }
  return 0;
}

static void probe_all(struct scr_node* node) {
  for (uint32_t i = 0; i < flow_count; i++) {
    node->counters[kSent]++;
    scr_probe(node, flows[i], (uint16_t)node->parameters[kPort]);
  }
  scr_wake_at(node, node->now + node->parameters[kPeriod]);
}

static void on_rtt(struct scr_node* node, const struct scr_event* event) {
  if (event->detail) {
    node->counters[kLost]++;
    return;
  }
  const uint32_t rtt = node->parameters[kNetwork] ? event->network_rtt : event->rtt;
  uint64_t* count = node->counters;
  histogram[step_of(rtt)]++;
  if (count[kAnswers]++ == 0 || rtt < count[kLeast]) count[kLeast] = rtt;
  if (rtt > count[kMost]) count[kMost] = rtt;
  /* Each quantile costs a walk: when a hundredth more have come. */
  if (count[kAnswers] > 100 && count[kAnswers] % (count[kAnswers] / 100) != 0) return;
  count[kMedian] = quantile(count[kAnswers], 500);
  count[kP99] = quantile(count[kAnswers], 990);
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  if (event->kind == SCR_RTT) return on_rtt(node, event);
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_TIMER) return probe_all(node);
  if (event->kind != SCR_TX || known[event->flow]) return;
  known[event->flow] = 1;
  flows[flow_count++] = event->flow;
  if (running) return;
  running = 1;
  probe_all(node);
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_RTT) | SCR_EVENT(SCR_HOST);
}
