/* SPDX-License-Identifier: BSD-3-Clause */
/* paths: which way a flow goes, by its UDP source port (SCR, A.7). Ports are chosen at random, as MP-RDMA and PLB do; each is
 * probed in turn, and one whose probe gets no answer in time has failed until it answers again. Modes:
 *   0  the port with the least round-trip time
 *   1  PLB: another port after so many congested rounds, at once where the flow is idle and else after twice as many
 *   2  MP-RDMA: at each TX event the next port of those that are not congested */
#include <rocebox_scr.h>

enum { kMode, kPorts, kPeriod, kMargin, kCongested, kRounds, kSeed, kFirst };
enum { kAnswers, kFailures, kRecoveries, kMoves, kIdleMoves, kForcedMoves };

const struct scr_parameter scr_parameters[] = {
    {"mode", "0: the least round-trip time; 1: PLB; 2: MP-RDMA, packet by packet", 0, 0, 2},
    {"ports", "source ports of a flow that are probed", 4, 1, 8},
    {"period", "between two probes of a port, ns", 20000, 1000, 1000000000},
    {"margin", "so much less a round trip must be for the flow to move, in 1/1000", 100, 0, 1000},
    {"congested", "a round trip longer than this is congested, ns", 20000, 100, 1000000000},
    {"rounds", "congested ones until the flow moves (PLB)", 3, 1, 1000},
    {"seed", "of the choice of ports", 1, 1, 1000000000},
    {"first", "the first port; the others follow it. 0: by chance", 0, 0, 65000},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"answers", "failures", "recoveries", "moves", "idle_moves", "forced_moves", 0};

#define PORTS 8
struct flow {
  uint32_t rtt[PORTS]; /* averages; 0: not known */
  uint16_t ports[PORTS];
  uint8_t failed[PORTS];
  uint8_t known, at, sent;
  uint16_t congested; /* rounds */
};
static struct flow flows[SCR_FLOWS_MAX];
static uint32_t known[SCR_FLOWS_MAX], known_count;
static uint8_t running;
static uint64_t dice;

static uint16_t any_port(const struct scr_node* node) {
  if (!dice) dice = (uint64_t)node->parameters[kSeed] * UINT64_C(0x9E3779B97F4A7C15);
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return (uint16_t)(0xC000 | (dice >> 20 & 0x3FFF)); /* as RoCE's entropy; probes' own ports are changed below */
}

static uint16_t fresh_port(const struct scr_node* node, const struct flow* flow) {
  for (;;) {
    const uint16_t port = any_port(node);
    int used = port == 49791 || port == 49792;
    for (uint32_t i = 0; i < PORTS; i++) used |= flow->ports[i] == port;
    if (!used) return port;
  }
}

static uint32_t port_count(const struct scr_node* node) { return (uint32_t)node->parameters[kPorts]; }

static void go(struct scr_node* node, uint32_t number, uint32_t at) {
  struct flow* flow = &flows[number];
  flow->at = (uint8_t)at;
  node->counters[kMoves]++;
  scr_set_port(node, number, flow->ports[at]);
}

/* As many ports as it may have; those that it has stay. Until a change of parameters is told, new ones are 0. */
static void fill_ports(const struct scr_node* node, struct flow* flow) {
  for (uint32_t i = 0; i < PORTS; i++) {
    if (i >= port_count(node))
      flow->ports[i] = 0;
    else if (!flow->ports[i])
      flow->ports[i] = node->parameters[kFirst] ? (uint16_t)(node->parameters[kFirst] + i) : fresh_port(node, flow);
    else
      continue;
    flow->rtt[i] = flow->failed[i] = 0;
  }
}

static void learn(struct scr_node* node, uint32_t number) {
  flows[number].known = 1;
  known[known_count++] = number;
  fill_ports(node, &flows[number]);
  go(node, number, 0);
}

static void on_parameters(struct scr_node* node) {
  for (uint32_t i = 0; i < known_count; i++) {
    fill_ports(node, &flows[known[i]]);
    if (flows[known[i]].at >= port_count(node)) go(node, known[i], 0);
  }
}

static uint32_t best_of(const struct scr_node* node, const struct flow* flow) {
  uint32_t best = flow->at;
  for (uint32_t i = 0; i < port_count(node); i++) {
    if (flow->failed[i] || !flow->rtt[i]) continue;
    if (flow->failed[best] || !flow->rtt[best] || flow->rtt[i] < flow->rtt[best]) best = i;
  }
  return best;
}

/* To the best one, where it is better by the margin. */
static void choose(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  const uint32_t best = best_of(node, flow);
  if (best == flow->at || flow->failed[best]) return;
  const uint64_t enough = (uint64_t)flow->rtt[flow->at] * (1000 - (uint64_t)node->parameters[kMargin]) / 1000;
  if (flow->failed[flow->at] || flow->rtt[best] < enough) go(node, number, best);
}

static void repath(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  flow->ports[flow->at] = fresh_port(node, flow);
  flow->rtt[flow->at] = 0;
  flow->failed[flow->at] = 0;
  flow->congested = 0;
  go(node, number, flow->at);
}

/* A round of PLB: is the way that the flow goes congested? */
static void plb(struct scr_node* node, uint32_t number, uint32_t rtt, int lost) {
  struct flow* flow = &flows[number];
  const int congested = lost || rtt > (uint64_t)node->parameters[kCongested];
  flow->congested = congested ? (uint16_t)(flow->congested + 1) : 0;
  const uint32_t rounds = (uint32_t)node->parameters[kRounds];
  if (flow->congested >= rounds && !flow->sent) {
    node->counters[kIdleMoves]++;
    repath(node, number);
  } else if (flow->congested >= 2 * rounds) {
    node->counters[kForcedMoves]++;
    repath(node, number);
  }
  flow->sent = 0;
}

static void on_rtt(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  uint32_t at = 0;
  while (at < port_count(node) && flow->ports[at] != event->udp_source_port) at++;
  if (at == port_count(node)) return; /* of a port that it has left */
  if (event->detail) {
    node->counters[kFailures] += !flow->failed[at];
    flow->failed[at] = 1;
    flow->rtt[at] = 0;
  } else {
    node->counters[kAnswers]++;
    node->counters[kRecoveries] += flow->failed[at];
    flow->failed[at] = 0;
    flow->rtt[at] = flow->rtt[at] ? flow->rtt[at] - flow->rtt[at] / 4 + event->rtt / 4 : event->rtt;
  }
  if (node->parameters[kMode] == 1) {
    if (at == flow->at) plb(node, event->flow, event->rtt, event->detail);
    return;
  }
  choose(node, event->flow);
}

/* The next one whose round trip is at most half as long again as the best's. */
static void spray(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  const uint32_t best = best_of(node, flow), count = port_count(node);
  for (uint32_t i = 1; i <= count; i++) {
    const uint32_t at = (flow->at + i) % count;
    if (!flow->ports[at] || flow->failed[at] || (flow->rtt[best] && flow->rtt[at] > flow->rtt[best] + flow->rtt[best] / 2)) continue;
    if (at != flow->at) go(node, number, at);
    return;
  }
}

static void round_of_probes(struct scr_node* node) {
  scr_wake_at(node, node->now + node->parameters[kPeriod]); /* first: there may be more probes than actions */
  for (uint32_t i = 0; i < known_count; i++)
    for (uint32_t at = 0; at < port_count(node); at++) {
      if (node->parameters[kMode] == 1 && at != flows[known[i]].at) continue;
      if (flows[known[i]].ports[at]) scr_probe(node, known[i], flows[known[i]].ports[at]);
    }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  if (event->kind == SCR_RTT) return on_rtt(node, event);
  if (event->kind == SCR_HOST) {
    if (event->detail == SCR_HOST_TIMER) round_of_probes(node);
    if (event->detail == SCR_HOST_PARAMETERS) on_parameters(node);
    if (event->detail == SCR_HOST_NEW_FLOW) {
      const uint8_t was_known = flows[event->flow].known;
      __builtin_memset(&flows[event->flow], 0, sizeof flows[0]);
      if (!was_known) return;
      for (uint32_t i = 0; i < known_count; i++)
        if (known[i] == event->flow) known[i] = known[--known_count];
    }
    return;
  }
  struct flow* flow = &flows[event->flow];
  if (!flow->known) learn(node, event->flow);
  flow->sent = 1;
  if (node->parameters[kMode] == 2) spray(node, event->flow);
  if (!running) {
    running = 1;
    round_of_probes(node);
  }
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_RTT) | SCR_EVENT(SCR_HOST);
}
