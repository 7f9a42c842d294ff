/* SPDX-License-Identifier: BSD-3-Clause */
/* backpressure: a receiver that is congested tells its senders, as marks of congestion would (SCR, A.8). A sender cuts its
 * rate by a share, at most once in a time, and adds to it by and by while nothing more is said. A receiver is congested when
 * its port or its host's PCIe is slower than it should be, or, to show the loop, every so often. */
#include <rocebox_scr.h>

enum { kCut, kGuard, kIncrease, kIncreasePeriod, kFloor, kPortLimit, kPcieLimit, kEvery };
enum { kTold, kCuts, kRises, kIgnored };

const struct scr_parameter scr_parameters[] = {
    {"cut", "multiplicative decrease, in 1/1000", 500, 1, 999},
    {"guard", "least time between two cuts of a flow, ns", 50000, 0, 1000000000},
    {"increase", "additive increase, bits per second", 500000000, 1000, 100000000000},
    {"increase_period", "after each such time, ns", 20000, 1000, 1000000000},
    {"floor", "least rate, bits per second", 100000000, 1000000, 100000000000},
    {"port_limit", "of the port's rate that may come, in 1/1000; 0: not looked at", 0, 0, 1000},
    {"pcie_limit", "latency over PCIe that is congestion, ns; 0: not looked at", 0, 0, 1000000000},
    {"every", "receivers tell so often, congested or not, ns; 0: never", 0, 0, 1000000000},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"told", "cuts", "rises", "ignored", 0};

struct flow {
  uint64_t rate; /* 0: the port's */
  int64_t cut;
  uint8_t received, listed;
};
static struct flow flows[SCR_FLOWS_MAX];
static uint32_t slow[SCR_FLOWS_MAX], slow_count; /* below the port's rate */
static uint64_t port_before;
static int64_t looked, told;

static void tell(struct scr_node* node) {
  for (uint32_t i = 0; i < node->flows; i++) {
    if (!flows[i].received) continue;
    node->counters[kTold]++;
    scr_send(node, i, SCR_BACKPRESSURE, (uint64_t)node->now, 0);
  }
}

static void on_host(struct scr_node* node, const struct scr_event* event) {
  const int64_t* p = node->parameters;
  const int64_t span = node->now - looked;
  const uint64_t bytes = event->value2 - port_before;
  int congested = p[kPcieLimit] && event->value > (uint64_t)p[kPcieLimit];
  if (p[kPortLimit] && looked && span > 0)
    congested |= bytes * 8000000 / (uint64_t)span > node->line_rate / 1000000 * (uint64_t)p[kPortLimit]; /* kbit/s */
  looked = node->now;
  port_before = event->value2;
  if (p[kEvery] && node->now - told >= p[kEvery]) {
    told = node->now;
    congested = 1;
  }
  if (congested) tell(node);
  for (uint32_t i = 0; i < node->flows; i++) flows[i].received = 0;
}

static void on_message(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  if (event->detail != SCR_BACKPRESSURE || (flow->cut && node->now - flow->cut < node->parameters[kGuard])) {
    node->counters[kIgnored]++;
    return;
  }
  const uint64_t before = flow->rate ? flow->rate : node->line_rate, least = (uint64_t)node->parameters[kFloor];
  const uint64_t after = before - before / 1000 * (uint64_t)node->parameters[kCut];
  flow->rate = after < least ? least : after;
  flow->cut = node->now;
  node->counters[kCuts]++;
  scr_set_rate(node, event->flow, flow->rate);
  if (!flow->listed) {
    flow->listed = 1;
    slow[slow_count++] = event->flow;
    if (slow_count == 1) scr_wake_at(node, node->now + node->parameters[kIncreasePeriod]);
  }
}

static void on_timer(struct scr_node* node) {
  for (uint32_t i = slow_count; i-- > 0;) {
    struct flow* flow = &flows[slow[i]];
    if (!flow->rate) {  // another queue pair has its number now, which has not been cut
      flow->listed = 0;
      slow[i] = slow[--slow_count];
      continue;
    }
    flow->rate += (uint64_t)node->parameters[kIncrease];
    node->counters[kRises]++;
    if (flow->rate >= node->line_rate) {
      flow->rate = flow->listed = 0;
      scr_set_rate(node, slow[i], 0);
      slow[i] = slow[--slow_count];
      continue;
    }
    scr_set_rate(node, slow[i], flow->rate);
  }
  if (slow_count) scr_wake_at(node, node->now + node->parameters[kIncreasePeriod]);
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  if (event->kind == SCR_RX) {
    flows[event->flow].received = 1;
  } else if (event->kind == SCR_PEER) {
    on_message(node, event);
  } else if (event->detail == SCR_HOST_PCIE) {
    on_host(node, event);
  } else if (event->detail == SCR_HOST_TIMER) {
    on_timer(node);
  } else if (event->detail == SCR_HOST_NEW_FLOW) {
    // The number may still stand in slow[], once: on_timer takes it out.
    const typeof(flows[0].listed) listed = flows[event->flow].listed;
    __builtin_memset(&flows[event->flow], 0, sizeof flows[0]);
    flows[event->flow].listed = listed;
  }
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_RX) | SCR_EVENT(SCR_PEER) | SCR_EVENT(SCR_HOST) | SCR_HOST_STATE;
}
