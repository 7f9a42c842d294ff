/* SPDX-License-Identifier: BSD-3-Clause */
/* credits: receivers say how fast their senders may be (SCR, A.8). A sender asks when its flow begins; a receiver grants, in
 * each period, what its port has left beside what nobody asked for: bits per second, by equal parts. Senders keep their rate
 * until a new credit comes. Both roles are here: flows that send ask, flows that were asked for are granted. */
#include <rocebox/ewma.h>
#include <rocebox_scr.h>

enum { kPeriod, kHeadroom, kFloor, kFirst, kIdle, kSmoothing };
enum { kAsked, kGranted, kObeyed, kBounded };
#define ASK 16 /* a message of this policy's own */

const struct scr_parameter scr_parameters[] = {
    {"period", "between two credits, ns", 20000, 1000, 1000000000},
    {"headroom", "of the port that is given away, in 1/1000", 950, 1, 1000},
    {"floor", "least credit, bits per second", 1000000000, 1000000, 100000000000},
    {"first", "rate of a flow without a credit, bits per second; 0: the port's", 0, 0, 1000000000000},
    {"idle", "a flow from which nothing comes for so long has ended, ns", 1000000, 1000, 10000000000},
    {"smoothing", "of the port's use: a period weighs 1 / 2^this", 2, 0, 8},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"asked", "granted", "obeyed", "bounded", 0};

struct flow {
  uint64_t received; /* bytes since the last period */
  int64_t last, asked;
  uint8_t sends, has_credit, wants, listed;
};
static struct flow flows[SCR_FLOWS_MAX];
static uint32_t known[SCR_FLOWS_MAX], known_count; /* that ask, or are asked for */
static uint64_t port_bytes, port_before;
static int64_t last_period;
static struct ewma others; /* kbit/s that nobody asked for */

static void list(uint32_t number) {
  if (flows[number].listed) return;
  flows[number].listed = 1;
  known[known_count++] = number;
}

static void ask(struct scr_node* node, uint32_t number) {
  flows[number].asked = node->now;
  node->counters[kAsked]++;
  scr_send(node, number, ASK, 0, 0);
}

static void on_tx(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  if (flow->sends) return;
  flow->sends = 1;
  list(number);
  if (node->parameters[kFirst]) scr_set_rate(node, number, (uint64_t)node->parameters[kFirst]);
  ask(node, number);
}

static void on_message(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  if (event->detail == ASK) {
    flow->wants = 1;
    flow->last = node->now;
    list(event->flow);
  } else if (event->detail == SCR_CREDIT && flow->sends) {
    const uint64_t least = (uint64_t)node->parameters[kFloor];
    const uint64_t rate = event->value < least ? least : event->value > node->line_rate ? node->line_rate : event->value;
    node->counters[rate == event->value ? kObeyed : kBounded]++;
    flow->has_credit = 1;
    scr_set_rate(node, event->flow, rate);
  }
}

/* Each period: what the port took, less what came for flows that want credits, is the background. */
static void on_period(struct scr_node* node) {
  const int64_t span = node->now - last_period;
  if (span <= 0) return;
  uint64_t wanted = 0;
  uint32_t wanting = 0;
  for (uint32_t i = 0; i < known_count; i++) {
    struct flow* flow = &flows[known[i]];
    if (flow->sends && !flow->has_credit && node->now - flow->asked > 10 * node->parameters[kPeriod]) ask(node, known[i]);
    if (!flow->wants) continue;
    wanted += flow->received;
    flow->received = 0;
    if (node->now - flow->last > node->parameters[kIdle]) continue;
    wanting++;
  }
  const uint64_t all = port_bytes - port_before;
  port_before = port_bytes;
  last_period = node->now;
  const uint64_t rest = all > wanted ? all - wanted : 0;
  const uint64_t kilobits = rest * 8000000 / (uint64_t)span;
  const uint64_t background =
      (uint64_t)ewma_add(&others, kilobits > UINT32_MAX ? UINT32_MAX : (uint32_t)kilobits, (unsigned)node->parameters[kSmoothing]) * 1000;
  if (!wanting) return;
  const uint64_t room = node->line_rate / 1000 * (uint64_t)node->parameters[kHeadroom];
  const uint64_t part = (room > background ? room - background : 0) / wanting;
  const uint64_t least = (uint64_t)node->parameters[kFloor];
  for (uint32_t i = 0; i < known_count; i++) {
    const struct flow* flow = &flows[known[i]];
    if (!flow->wants || node->now - flow->last > node->parameters[kIdle]) continue;
    node->counters[kGranted]++;
    scr_send(node, known[i], SCR_CREDIT, part < least ? least : part, 0);
  }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  switch (event->kind) {
    case SCR_TX:
      return on_tx(node, event->flow);
    case SCR_RX:
      flows[event->flow].received += event->bytes;
      flows[event->flow].last = event->time;
      return;
    case SCR_PEER:
      return on_message(node, event);
    case SCR_HOST:
      if (event->detail == SCR_HOST_PCIE) {
        port_bytes = event->value2;
        if (node->now - last_period >= node->parameters[kPeriod]) on_period(node);
      } else if (event->detail == SCR_HOST_NEW_FLOW) {
        const uint8_t listed = flows[event->flow].listed;
        __builtin_memset(&flows[event->flow], 0, sizeof flows[0]);
        flows[event->flow].listed = listed;
      }
      return;
    default:
      return;
  }
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_RX) | SCR_EVENT(SCR_PEER) | SCR_EVENT(SCR_HOST) | SCR_HOST_STATE;
}
