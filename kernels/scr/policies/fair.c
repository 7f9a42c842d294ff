/* SPDX-License-Identifier: BSD-3-Clause */
/* fair: shares the port among flows that have data to send (SCR, 5.1): by default as the NIC does, statically, or by water
 * filling to weighted max-min fairness. A flow's bandwidth is what its TX events tell; its rate is compared with that
 * which was in force when the bytes left, because events come some microseconds late and rates take effect as late. */
#include <rocebox/ewma.h>
#include <rocebox_scr.h>

enum { kDefault, kStatic, kWaterFilling };
enum { kReset, kFill, kShare };
enum { kAlgorithm, kArrivals, kStep, kStart, kMinRate, kCapacity, kSaturated, kPatience, kIdle, kLag, kSmoothing, kWindow };
enum { kEvents, kJoined, kLeft, kRises, kFalls, kReclaims };

const struct scr_parameter scr_parameters[] = {
    {"algorithm", "0: as the NIC does by itself; 1: static, the port by the number of flows; 2: water filling", 2, 0, 2},
    {"arrivals", "when a flow comes: 0: all begin anew; 1: others scale down, it begins at `start`; 2: at its share", 2, 0, 2},
    {"step", "of water filling, bits per second", 400000000, 1000000, 100000000000},
    {"start", "rate at which flows begin to fill, bits per second", 500000000, 1000000, 100000000000},
    {"min_rate", "least rate of a flow, bits per second", 1000000000, 1000000, 100000000000},
    {"capacity", "of the port that is given away, in 1/1000", 1000, 1, 1000},
    {"saturated", "a flow that uses so much of its rate has more to send, in 1/1000", 950, 1, 1000},
    {"patience", "events in a row that show less until a flow's rate is reclaimed", 4, 1, 1000},
    {"idle", "a flow that sends nothing for so long has ended, ns", 1000000, 1000, 10000000000},
    {"lag", "from an event that is handled to its rate in force, ns", 10000, 0, 1000000},
    {"smoothing", "of the bandwidth: a sample weighs 1 / 2^this", 2, 0, 8},
    {"window", "least time over which bandwidth is measured, ns: on a live wire packets leave in bursts", 1, 1, 1000000000},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"tx_events", "flows_joined", "flows_left", "rises", "falls", "reclaims", 0};

#define RATES 8 /* that are remembered: more than are given while one takes effect */

struct flow {
  int64_t last;          /* time of the newest TX event that was measured */
  int64_t seen;          /* of the newest one */
  uint64_t waiting;      /* bytes since then */
  uint64_t rate;         /* 0: none */
  uint64_t charge;       /* what it takes of the port, in the books */
  struct ewma bandwidth; /* kbit/s */
  uint16_t weight, low;  /* low: events in a row that show less than the rate */
  uint8_t active, saturated, measured, newest;
  struct {
    int64_t from;
    uint64_t rate;
  } rates[RATES]; /* what was given, from when on */
};

static struct flow flows[SCR_FLOWS_MAX];
static uint32_t active[SCR_FLOWS_MAX], active_count; /* numbers of the flows that are */
static uint64_t charged;                     /* of all */
static uint64_t charged_saturated, weight_saturated, weight_all;
static int64_t woken = INT64_MAX;
static int64_t ruling = -1, began_with; /* the algorithm, and what flows begin with, that rates are by; -1: none yet */

static uint64_t capacity(const struct scr_node* node) {
  return node->line_rate / 1000 * (uint64_t)node->parameters[kCapacity];
}
static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* All books are kept here. */
static void book(struct flow* flow, uint64_t charge, int saturated) {
  charged += charge - flow->charge;
  if (flow->saturated) charged_saturated -= flow->charge, weight_saturated -= flow->weight;
  if (saturated) charged_saturated += charge, weight_saturated += flow->weight;
  flow->charge = charge;
  flow->saturated = (uint8_t)saturated;
}

static void give(struct scr_node* node, uint32_t number, uint64_t rate) {
  struct flow* flow = &flows[number];
  rate = least_of(most_of(rate, (uint64_t)node->parameters[kMinRate]), node->line_rate);
  if (flow->saturated) book(flow, rate, 1);
  if (rate == flow->rate) return;
  flow->rate = rate;
  flow->newest = (uint8_t)((flow->newest + 1) % RATES);
  flow->rates[flow->newest].from = node->now + node->parameters[kLag];
  flow->rates[flow->newest].rate = rate;
  scr_set_rate(node, number, rate);
}

/* The rate in force at that time, as far as it is remembered. */
static uint64_t rate_at(const struct flow* flow, int64_t time) {
  for (uint32_t i = 0; i < RATES; i++) {
    const uint32_t at = (flow->newest + RATES - i) % RATES;
    if (flow->rates[at].rate == 0) break;
    if (flow->rates[at].from <= time) return flow->rates[at].rate;
  }
  return 0;
}

static void share_out(struct scr_node* node) {
  for (uint32_t i = 0; i < active_count; i++)
    give(node, active[i], capacity(node) / most_of(weight_all, 1) * flows[active[i]].weight);
}

static void begin_anew(struct scr_node* node) {
  for (uint32_t i = 0; i < active_count; i++) {
    book(&flows[active[i]], 0, 1);
    give(node, active[i], (uint64_t)node->parameters[kStart]);
  }
}

static void join(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  const uint16_t weight = flow->weight ? flow->weight : 1;
  const uint64_t before = weight_all;
  __builtin_memset(flow, 0, sizeof *flow);
  flow->weight = weight;
  flow->active = 1;
  weight_all += weight;
  node->counters[kJoined]++;
  if (node->parameters[kAlgorithm] == kStatic) {
    active[active_count++] = number;
    return share_out(node);
  }
  book(flow, 0, 1);
  if (node->parameters[kArrivals] == kReset) {
    active[active_count++] = number;
    return begin_anew(node);
  }
  /* Others have (n - 1) / n of what they had. */
  for (uint32_t i = 0; i < active_count; i++)
    give(node, active[i], flows[active[i]].rate / weight_all * before);
  active[active_count++] = number;
  give(node, number,
       node->parameters[kArrivals] == kShare ? capacity(node) / weight_all * weight : (uint64_t)node->parameters[kStart]);
}

static void leave(struct scr_node* node, uint32_t at) {
  struct flow* flow = &flows[active[at]];
  book(flow, 0, 0);
  weight_all -= flow->weight;
  flow->active = 0;
  node->counters[kLeft]++;
  scr_set_rate(node, active[at], 0);
  active[at] = active[--active_count];
}

/* What a saturated flow is to have: its part of what the others leave. */
static uint64_t level_of(const struct scr_node* node, const struct flow* flow) {
  const uint64_t others = charged - charged_saturated, all = capacity(node);
  return others >= all ? 0 : (all - others) / most_of(weight_saturated, 1) * flow->weight;
}

/* By a step towards the level, into what room there is; what is near enough stays. */
static void fill(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  const uint64_t step = (uint64_t)node->parameters[kStep], all = capacity(node), near = step / 16;
  const uint64_t level = level_of(node, flow);
  if (flow->rate + near < level) {
    /* Others are still to give back what is not there. */
    const uint64_t rise = least_of(least_of(step, level - flow->rate), all > charged ? all - charged : 0);
    if (rise <= near) return;
    node->counters[kRises]++;
    give(node, number, flow->rate + rise);
  } else if (flow->rate > level + near) {
    node->counters[kFalls]++;
    give(node, number, flow->rate - least_of(step, flow->rate - level));
  }
}

static void measure(struct scr_node* node, uint32_t number, const struct scr_event* event) {
  struct flow* flow = &flows[number];
  const int64_t span = event->time - flow->last;
  flow->waiting += event->bytes;
  if (span < node->parameters[kWindow]) return;
  const uint64_t then = rate_at(flow, flow->last), now = rate_at(flow, event->time);
  const uint64_t kilobits = flow->waiting * 8000000 / (uint64_t)span;
  flow->waiting = 0;
  flow->last = event->time;
  const uint64_t smooth =
      (uint64_t)ewma_add(&flow->bandwidth, (uint32_t)least_of(kilobits, UINT32_MAX), (unsigned)node->parameters[kSmoothing]) * 1000;
  if (!then || !now) return; /* they left before its first rate was in force */
  const uint64_t enough = least_of(then, now) / 1000 * (uint64_t)node->parameters[kSaturated];
  if (kilobits * 1000 >= enough || smooth >= enough) {
    flow->low = 0;
    if (!flow->saturated) book(flow, flow->rate, 1);
    return fill(node, number);
  }
  if (flow->saturated && ++flow->low < (uint64_t)node->parameters[kPatience]) return;
  /* It does not use what it has: in the books stands what it uses, and its rate leaves it room to show more. */
  book(flow, smooth, 0);
  const uint64_t room = most_of(smooth + smooth / 8 + (uint64_t)node->parameters[kStep], (uint64_t)node->parameters[kMinRate]);
  if (room + room / 8 < flow->rate) {
    node->counters[kReclaims]++;
    give(node, number, room);
  }
}

static void on_tx(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  node->counters[kEvents]++;
  if (ruling < 0) ruling = node->parameters[kAlgorithm], began_with = node->parameters[kStart];
  if (!flow->active) {
    join(node, event->flow);
    flow->last = flow->seen = event->time;
    if (woken == INT64_MAX) scr_wake_at(node, woken = node->now + node->parameters[kIdle]);
    return;
  }
  flow->seen = event->time;
  if (node->parameters[kAlgorithm] == kWaterFilling)
    measure(node, event->flow, event);
  else
    flow->last = event->time;
}

static void on_timer(struct scr_node* node) {
  const uint32_t before = active_count;
  for (uint32_t i = active_count; i-- > 0;)
    if (node->now - flows[active[i]].seen > node->parameters[kIdle]) leave(node, i);
  if (before != active_count && node->parameters[kAlgorithm] == kStatic) share_out(node);
  woken = active_count ? node->now + node->parameters[kIdle] / 2 : INT64_MAX;
  if (active_count) scr_wake_at(node, woken);
}

/* An application says what its flow is worth. */
static void on_hint(struct scr_node* node, uint32_t number, uint64_t weight) {
  struct flow* flow = &flows[number];
  if (weight == 0 || weight > UINT16_MAX) return;
  if (!flow->active) {
    flow->weight = (uint16_t)weight;
    return;
  }
  const uint8_t saturated = flow->saturated;
  const uint64_t charge = flow->charge;
  book(flow, 0, 0);
  weight_all += weight - flow->weight;
  flow->weight = (uint16_t)weight;
  book(flow, charge, saturated);
  if (node->parameters[kAlgorithm] == kStatic) share_out(node);
}

static void on_new_flow(struct scr_node* node, uint32_t number) {
  for (uint32_t i = 0; flows[number].active && i < active_count; i++)
    if (active[i] == number) leave(node, i);
  flows[number].weight = 0;
}

/* Under another algorithm, or with another start, all begin anew, or are left to the NIC. */
static void on_parameters(struct scr_node* node) {
  const int is_same = ruling == node->parameters[kAlgorithm] && began_with == node->parameters[kStart];
  ruling = node->parameters[kAlgorithm];
  began_with = node->parameters[kStart];
  if (ruling == kDefault) {
    while (active_count) leave(node, active_count - 1);
  } else if (node->parameters[kAlgorithm] == kStatic) {
    share_out(node);
  } else if (!is_same) {
    begin_anew(node);
  }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_PARAMETERS) return on_parameters(node);
  if (event->kind == SCR_TX) {
    if (node->parameters[kAlgorithm] != kDefault) on_tx(node, event);
    return;
  }
  if (event->kind != SCR_HOST) return;
  if (event->detail == SCR_HOST_TIMER) return on_timer(node);
  if (event->detail == SCR_HOST_HINT) return on_hint(node, event->flow, event->value);
  if (event->detail == SCR_HOST_NEW_FLOW) return on_new_flow(node, event->flow);
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_HOST);
}
