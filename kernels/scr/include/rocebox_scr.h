/* SPDX-License-Identifier: BSD-3-Clause */
/* What a policy of Software-Controlled RDMA is written against: one shared object in C for each policy.
 *
 *   void scr_init(struct scr_node* node);                                   once; says which events it wants
 *   void scr_handle(struct scr_node* node, const struct scr_event* event);  one event; says what is to be done
 *   const struct scr_parameter scr_parameters[];                            optional, ended by a null name
 *   const char* const scr_counters[];                                       optional, ended by null
 *
 * Each NIC has a copy of the program's code and globals, and calls it with one event at a time, on one thread. Flows
 * are numbered from 0 to node->flows - 1. All rates are bits per second as the wire has them, all times nanoseconds. */
#ifndef ROCEBOX_SCR_H
#define ROCEBOX_SCR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum scr_kind {
  SCR_TX,   /* packets of data left: bytes; those of one flow are taken together (count) */
  SCR_RX,   /* packets came */
  SCR_ACK,  /* acknowledgements of what was sent: psn */
  SCR_NACK, /* detail: scr_nack */
  SCR_CNP,  /* congestion notifications of the peer */
  SCR_RTT,  /* the answer to a probe: rtt, network_rtt, udp_source_port; detail 1: none came in time */
  SCR_PEER, /* a message of the peer's program: detail, value, value2 */
  SCR_HOST, /* of the node: detail: scr_host, value, value2 */
  SCR_KINDS
};
enum scr_nack { SCR_NACK_RNR, SCR_NACK_SEQUENCE, SCR_NACK_FATAL };
enum scr_host {
  SCR_HOST_NEW_FLOW,   /* the flow can send from now on; its number may have been another's. At once, without latency */
  SCR_HOST_TIMER,      /* scr_wake_at */
  SCR_HOST_PCIE,       /* value: the last read's latency over PCIe in ns; value2: bytes received by the port so far */
  SCR_HOST_HINT,       /* value: the flow's weight, as an application says; 0: it has ended */
  SCR_HOST_PARAMETERS, /* node->parameters are other ones from now on */
  SCR_HOST_NIC /* value: bytes that the port has sent so far, as the wire has them; value2: bytes read from host memory
                  over PCIe so far; ready_flows: queue pairs with something to send; staged_bytes: chosen, and not sent
                  yet */
};
/* Kinds of peer messages; a program may have others, up to 255. */
enum scr_message { SCR_CREDIT = 1, SCR_UTILISATION = 2, SCR_BACKPRESSURE = 3 };

#define SCR_FLOWS_MAX 16384 /* node->flows is never more: tables of a program can have a fixed size */
#define SCR_NODE UINT32_MAX /* the flow of events that are of no flow */
#define SCR_EVENT(kind) (1u << (kind))
#define SCR_HOST_STATE SCR_EVENT(SCR_KINDS)    /* SCR_HOST_PCIE is wanted, too, each host_period */
#define SCR_NIC_STATE SCR_EVENT(SCR_KINDS + 1) /* and SCR_HOST_NIC */

struct scr_event {
  int64_t time;  /* of the newest thing that it tells of */
  int64_t since; /* of the oldest */
  uint64_t bytes, value, value2;
  uint32_t flow, count; /* count: how many events of the collector it was made of */
  uint32_t psn;
  union {
    uint32_t rtt;
    uint32_t ready_flows;
  };
  union {
    uint32_t network_rtt;
    uint32_t staged_bytes;
  };
  uint16_t udp_source_port;
  uint8_t kind, detail;
};

struct scr_parameter {
  const char *name, *text;
  int64_t at_first, least, most;
};

enum scr_action_kind { SCR_SET_RATE, SCR_SET_PORT, SCR_PROBE, SCR_SEND, SCR_WAKE };
struct scr_action {
  uint64_t value, value2; /* rate; time; a message's */
  uint32_t flow;
  uint16_t udp_source_port;
  uint8_t kind, detail;
};

#define SCR_PARAMETERS_MAX 64
#define SCR_COUNTERS_MAX 32

struct scr_node {
  int64_t now;        /* when the event is handled */
  uint64_t line_rate; /* of the port */
  uint32_t flows;
  uint32_t events; /* scr_init writes which kinds it wants: SCR_EVENT() */
  int64_t parameters[SCR_PARAMETERS_MAX];
  uint64_t counters[SCR_COUNTERS_MAX];
  struct scr_action* actions;
  uint32_t action_count, action_most, actions_lost;
  uint32_t guard; /* not a program's to write */
};

static inline void scr_act(struct scr_node* node, struct scr_action action) {
  if (node->action_count < node->action_most)
    node->actions[node->action_count++] = action;
  else
    node->actions_lost++;
}

/* The flow's data leave at most at that rate; 0: at the port's. */
static inline void scr_set_rate(struct scr_node* node, uint32_t flow, uint64_t bits_per_second) {
  const struct scr_action action = {bits_per_second, 0, flow, 0, SCR_SET_RATE, 0};
  scr_act(node, action);
}
/* The UDP source port of the flow's packets: its path, as switches hash it. */
static inline void scr_set_port(struct scr_node* node, uint32_t flow, uint16_t udp_source_port) {
  const struct scr_action action = {0, 0, flow, udp_source_port, SCR_SET_PORT, 0};
  scr_act(node, action);
}
/* Measures the round-trip time to the flow's peer on that path (0: the flow's own): SCR_RTT tells. */
static inline void scr_probe(struct scr_node* node, uint32_t flow, uint16_t udp_source_port) {
  const struct scr_action action = {0, 0, flow, udp_source_port, SCR_PROBE, 0};
  scr_act(node, action);
}
/* Tells the program at the flow's other end: SCR_PEER. It may get lost. */
static inline void scr_send(struct scr_node* node, uint32_t flow, uint8_t message, uint64_t value, uint64_t value2) {
  const struct scr_action action = {value, value2, flow, 0, SCR_SEND, message};
  scr_act(node, action);
}
/* SCR_HOST_TIMER comes then, and not at a time that was asked for before. */
static inline void scr_wake_at(struct scr_node* node, int64_t time) {
  const struct scr_action action = {(uint64_t)time, 0, SCR_NODE, 0, SCR_WAKE, 0};
  scr_act(node, action);
}

void scr_init(struct scr_node* node);
void scr_handle(struct scr_node* node, const struct scr_event* event);
extern const struct scr_parameter scr_parameters[];
extern const char* const scr_counters[];

#ifdef __cplusplus
}
#endif
#endif
