/* SPDX-License-Identifier: BSD-3-Clause */
/* dcqcn_policy: DCQCN's reaction point (Zhu et al., SIGCOMM 2015, 3.1) as a program, in whole numbers. Notifications cut the
 * rate by alpha / 2; recovery, additive and hyper increase follow by bytes and by time. Time that has passed is made up for
 * at the flow's next event. */
#include <rocebox_scr.h>

enum { kTimeReset, kByteReset, kThreshold, kIncrease, kHyper, kMinRate, kG, kAlphaPeriod, kReducePeriod };
enum { kCnps, kCuts, kIncreases };

const struct scr_parameter scr_parameters[] = {
    {"rpg_time_reset", "time between increases, ns", 300000, 1000, 1000000000},
    {"rpg_byte_reset", "bytes between increases", 2097088, 1024, 1000000000000},
    {"rpg_threshold", "increases by either before the target grows, too", 1, 1, 31},
    {"rpg_ai_rate", "additive increase of the target, bits per second", 5000000, 1000, 100000000000},
    {"rpg_hai_rate", "the same once both have passed the threshold", 50000000, 1000, 100000000000},
    {"rpg_min_rate", "least rate, bits per second", 1000000, 1000000, 100000000000},
    {"dce_tcp_g", "of alpha that an update keeps, in 1/1024", 1019, 1, 1024},
    {"dce_tcp_rtt", "time between updates of alpha, ns", 1000, 100, 1000000000},
    {"rate_reduce_monitor_period", "time between cuts at least, ns", 4000, 0, 1000000000},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"cnps", "cuts", "increases", 0};

#define ONE (1u << 20) /* alpha's 1 */
struct flow {
  uint64_t current, target, bytes; /* current 0: it is new */
  int64_t reduced, alpha_at, increase_at;
  uint32_t alpha, by_time, by_bytes;
  uint8_t notified, limited;
};
static struct flow flows[SCR_FLOWS_MAX];

static uint32_t kept(uint64_t alpha, uint32_t keep, int64_t times) {
  for (; times > 0 && alpha; times--) alpha = alpha * keep >> 10;
  return (uint32_t)alpha;
}

static void increase(struct scr_node* node, struct flow* flow) {
  const int64_t* p = node->parameters;
  const uint32_t most = flow->by_time > flow->by_bytes ? flow->by_time : flow->by_bytes;
  const uint32_t least = flow->by_time < flow->by_bytes ? flow->by_time : flow->by_bytes;
  node->counters[kIncreases]++;
  if (least > p[kThreshold])
    flow->target += (uint64_t)p[kHyper] * (least - (uint64_t)p[kThreshold]);
  else if (most > p[kThreshold])
    flow->target += (uint64_t)p[kIncrease];
  if (flow->target > node->line_rate) flow->target = node->line_rate;
  flow->current = (flow->target + flow->current) / 2;
  if (node->line_rate - flow->current > node->line_rate / 1000) return;
  flow->current = flow->target = node->line_rate;
  flow->limited = 0;
}

static void catch_up(struct scr_node* node, struct flow* flow, int64_t now) {
  const int64_t* p = node->parameters;
  if (!flow->limited) {
    flow->alpha_at = flow->increase_at = now;
    return;
  }
  const int64_t updates = (now - flow->alpha_at) / p[kAlphaPeriod];
  if (updates > 0) {
    flow->alpha_at += updates * p[kAlphaPeriod];
    flow->alpha = kept(flow->alpha, (uint32_t)p[kG], updates - flow->notified);
    flow->notified = 0;
  }
  while (flow->limited && now - flow->increase_at >= p[kTimeReset]) {
    flow->increase_at += p[kTimeReset];
    flow->by_time++;
    increase(node, flow);
  }
}

static void on_cnp(struct scr_node* node, struct flow* flow, int64_t now) {
  const int64_t* p = node->parameters;
  node->counters[kCnps]++;
  if (!flow->notified) flow->alpha = kept(flow->alpha, (uint32_t)p[kG], 1) + (uint32_t)(ONE - (ONE * (uint64_t)p[kG] >> 10));
  flow->notified = 1;
  if (now - flow->reduced < p[kReducePeriod]) return;
  flow->reduced = now;
  if (flow->by_time || flow->by_bytes || !flow->limited) flow->target = flow->current;
  uint64_t cut = (flow->current >> 10) * (flow->alpha / 2) >> 10;
  if (cut > flow->current / 2) cut = flow->current / 2;
  flow->current -= cut;
  if (flow->current < (uint64_t)p[kMinRate]) flow->current = (uint64_t)p[kMinRate];
  if (!flow->limited) flow->alpha_at = now;
  flow->limited = 1;
  flow->by_time = flow->by_bytes = 0;
  flow->bytes = 0;
  flow->increase_at = now;
  node->counters[kCuts]++;
}

static void on_sent(struct scr_node* node, struct flow* flow, uint64_t bytes) {
  if (!flow->limited) return;
  for (flow->bytes += bytes; flow->limited && flow->bytes >= (uint64_t)node->parameters[kByteReset];) {
    flow->bytes -= (uint64_t)node->parameters[kByteReset];
    flow->by_bytes++;
    increase(node, flow);
  }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  if (event->kind == SCR_HOST) {
    if (event->detail == SCR_HOST_NEW_FLOW) flows[event->flow].current = 0;
    return;
  }
  struct flow* flow = &flows[event->flow];
  if (flow->current == 0) {
    __builtin_memset(flow, 0, sizeof *flow);
    flow->current = flow->target = node->line_rate;
    flow->alpha = ONE / 1024 * 1023;
    flow->alpha_at = flow->increase_at = event->time;
    flow->reduced = event->time - 1000000000;
  }
  const uint64_t before = flow->current;
  catch_up(node, flow, event->time);
  if (event->kind == SCR_CNP)
    on_cnp(node, flow, event->time);
  else
    on_sent(node, flow, event->bytes);
  if (flow->current != before) scr_set_rate(node, event->flow, flow->current);
}

void scr_init(struct scr_node* node) { node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_CNP) | SCR_EVENT(SCR_HOST); }
