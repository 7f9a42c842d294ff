/* SPDX-License-Identifier: BSD-3-Clause */
/* swift: congestion control by delay (SCR, A.6; Kumar et al., SIGCOMM 2020, 3.1 to 3.3), with rates in place of windows: a
 * window is a rate times a round-trip time. Additive increase below the target delay, decrease in proportion above it, once
 * in a round trip. The fabric's delay is probed; those of both hosts are what their reads over PCIe take, the peer's by its
 * messages. Square roots in fixed point. */
#include <rocebox/fxp16.h>
#include <rocebox_scr.h>

enum {
  kBase, kHops, kPerHop, kRange, kMinRate, kMaxRate, kMtu, kIncrease, kBeta, kMostCut, kFloor, kHostTarget, kTellPeer, kTellBytes
};
enum { kProbes, kLost, kRises, kCuts, kHostCuts, kNacks };

const struct scr_parameter scr_parameters[] = {
    {"base", "target delay without hops and scaling, ns", 1000, 0, 1000000000},
    {"hops", "switches on the path", 1, 0, 64},
    {"per_hop", "added for each, ns", 2000, 0, 1000000000},
    {"range", "most that is added by scaling with flows, ns", 2000, 0, 1000000000},
    {"min_rate", "rate at which all of the range is added, bits per second", 32000000000, 1000000, 1000000000000},
    {"max_rate", "rate at which none is, bits per second", 96000000000, 1000000, 1000000000000},
    {"mtu", "bytes of a packet, in which windows are counted", 1024, 256, 9216},
    {"increase", "in a round trip, bits per second", 500000000, 1000, 100000000000},
    {"beta", "of the excess that a cut takes, in 1/1000", 800, 1, 1000},
    {"most_cut", "most that a cut takes, in 1/1000", 500, 1, 999},
    {"floor", "least rate, bits per second", 100000000, 1000000, 100000000000},
    {"host_target", "delay of both hosts together that is no congestion, ns; 0: theirs are not looked at. 0 as it begins: never", 0, 0, 1000000000},
    {"tell_peer", "1: peers of flows that come are told of this host's delay. 0 as it begins: never", 0, 0, 1},
    {"tell_bytes", "a peer is told after so many bytes of its flow; 0: each host_period", 0, 0, 1000000000000},
    {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"probes_answered", "probes_lost", "rises", "cuts", "host_cuts", "nacks", 0};

struct flow {
  uint64_t fabric, host;     /* rates; 0: it is new */
  uint64_t rate;             /* the lower one, as it was given */
  int64_t cut, host_cut;     /* when */
  uint64_t untold;           /* bytes that came since its peer was told */
  uint32_t rtt, peer_delay;
  uint8_t probing, sent, received;
};
static struct flow flows[SCR_FLOWS_MAX];
static uint32_t host_delay;

/* rate * rtt in packets: a window in fixed point. */
static fxp16 window_of(uint64_t rate, uint32_t rtt, uint32_t mtu) {
  const uint64_t bits = rate / 1000000 * rtt / 1000;
  return (fxp16)((bits << 13) / mtu > FXP16_MAX ? FXP16_MAX : (bits << 13) / mtu);
}
static fxp16 inverse_root(fxp16 window) { return fxp16_recip(fxp16_sqrt(window)); }

/* base + hops * h + max(0, min(alpha / sqrt(w) + beta, range)), alpha = range / (1 / sqrt(w_min) - 1 / sqrt(w_max)) and
 * beta = -alpha / sqrt(w_max). */
uint32_t swift_target(const int64_t* p, uint64_t rate, uint32_t rtt);
uint32_t swift_target(const int64_t* p, uint64_t rate, uint32_t rtt) {
  const uint32_t fixed = (uint32_t)(p[kBase] + p[kHops] * p[kPerHop]), range = (uint32_t)p[kRange], mtu = (uint32_t)p[kMtu];
  const fxp16 here = inverse_root(window_of(rate, rtt, mtu));
  const fxp16 least = inverse_root(window_of((uint64_t)p[kMaxRate], rtt, mtu));
  const fxp16 most = inverse_root(window_of((uint64_t)p[kMinRate], rtt, mtu));
  if (here <= least || most <= least) return fixed;
  if (here >= most) return fixed + range;
  /* range * (here - least) / (most - least): one quotient in place of alpha and beta. */
  return fixed + fxp16_quotient((uint64_t)range * (here - least), most - least);
}

static uint64_t within(const struct scr_node* node, uint64_t rate) {
  const uint64_t least = (uint64_t)node->parameters[kFloor];
  return rate < least ? least : rate > node->line_rate ? node->line_rate : rate;
}

static uint64_t cut_by(uint64_t rate, const int64_t* p, uint32_t delay, uint32_t target) {
  uint64_t share = (uint64_t)p[kBeta] * (delay - target) / delay;
  if (share > (uint64_t)p[kMostCut]) share = (uint64_t)p[kMostCut];
  return rate - rate / 1000 * share;
}

static void install(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  const uint64_t rate = flow->host < flow->fabric ? flow->host : flow->fabric;
  if (rate == flow->rate) return;
  flow->rate = rate;
  scr_set_rate(node, number, rate);
}

/* One probe after the other while the flow sends. */
static void probe(struct scr_node* node, uint32_t number) {
  flows[number].probing = flows[number].sent;
  flows[number].sent = 0;
  if (flows[number].probing) scr_probe(node, number, 0);
}

static void on_host_delay(struct scr_node* node, struct flow* flow) {
  const uint32_t delay = host_delay + flow->peer_delay, target = (uint32_t)node->parameters[kHostTarget];
  if (target == 0) {
    flow->host = node->line_rate;
  } else if (delay <= target) {
    flow->host = within(node, flow->host + (uint64_t)node->parameters[kIncrease]);
  } else if (node->now - flow->host_cut >= flow->rtt) {
    node->counters[kHostCuts]++;
    flow->host = within(node, cut_by(flow->host, node->parameters, delay, target));
    flow->host_cut = node->now;
  }
}

static void on_rtt(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  if (event->detail) {
    node->counters[kLost]++;
    if (flow->rtt && node->now - flow->cut >= flow->rtt) {
      flow->fabric = within(node, flow->fabric - flow->fabric / 1000 * (uint64_t)node->parameters[kMostCut]);
      flow->cut = node->now;
      node->counters[kCuts]++;
    }
  } else {
    node->counters[kProbes]++;
    const uint32_t delay = event->network_rtt ? event->network_rtt : 1;
    const uint32_t target = swift_target(node->parameters, flow->fabric, delay);
    flow->rtt = event->rtt;
    if (delay <= target) {
      node->counters[kRises]++;
      flow->fabric = within(node, flow->fabric + (uint64_t)node->parameters[kIncrease]);
    } else if (node->now - flow->cut >= event->rtt) {
      node->counters[kCuts]++;
      flow->fabric = within(node, cut_by(flow->fabric, node->parameters, delay, target));
      flow->cut = node->now;
    }
    on_host_delay(node, flow);
  }
  install(node, event->flow);
  probe(node, event->flow);
}

static void on_tx(struct scr_node* node, uint32_t number) {
  struct flow* flow = &flows[number];
  if (flow->fabric == 0) flow->fabric = flow->host = flow->rate = node->line_rate;
  flow->sent = 1;
  if (!flow->probing) probe(node, number);
}

static void on_nack(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  if (event->detail != SCR_NACK_SEQUENCE || !flow->fabric || node->now - flow->cut < flow->rtt) return;
  node->counters[kNacks]++;
  flow->fabric = within(node, flow->fabric - flow->fabric / 1000 * (uint64_t)node->parameters[kMostCut]);
  flow->cut = node->now;
  install(node, event->flow);
}

static void on_rx(struct scr_node* node, const struct scr_event* event) {
  struct flow* flow = &flows[event->flow];
  const uint64_t enough = (uint64_t)node->parameters[kTellBytes];
  flow->received = 1;
  flow->untold += event->bytes;
  if (!node->parameters[kTellPeer] || !enough || flow->untold < enough) return;
  flow->untold %= enough;
  scr_send(node, event->flow, SCR_UTILISATION, host_delay, 0);
}

static void tell_peers(struct scr_node* node) {
  for (uint32_t i = 0; i < node->flows; i++) {
    if (!flows[i].received) continue;
    flows[i].received = 0;
    scr_send(node, i, SCR_UTILISATION, host_delay, 0);
  }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  switch (event->kind) {
    case SCR_TX:
      return on_tx(node, event->flow);
    case SCR_RTT:
      return on_rtt(node, event);
    case SCR_NACK:
      return on_nack(node, event);
    case SCR_RX:
      return on_rx(node, event);
    case SCR_PEER: /* an absurd delay is at most a second */
      if (event->detail == SCR_UTILISATION)
        flows[event->flow].peer_delay = event->value > 1000000000 ? 1000000000 : (uint32_t)event->value;
      return;
    case SCR_HOST:
      if (event->detail == SCR_HOST_NEW_FLOW) __builtin_memset(&flows[event->flow], 0, sizeof flows[0]);
      if (event->detail != SCR_HOST_PCIE) return;
      host_delay = (uint32_t)event->value;
      if (node->parameters[kTellPeer] && !node->parameters[kTellBytes]) tell_peers(node);
      return;
    default:
      return;
  }
}

void scr_init(struct scr_node* node) {
  node->events = SCR_EVENT(SCR_TX) | SCR_EVENT(SCR_RTT) | SCR_EVENT(SCR_NACK) | SCR_EVENT(SCR_PEER) | SCR_EVENT(SCR_HOST);
  if (node->parameters[kTellPeer]) node->events |= SCR_EVENT(SCR_RX);
  if (node->parameters[kTellPeer] || node->parameters[kHostTarget]) node->events |= SCR_HOST_STATE;
}
