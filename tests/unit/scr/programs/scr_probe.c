/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy that counts what it is told and does what its parameters say. */
#include <rocebox_scr.h>

enum { kRate, kMischief, kProbePort, kMessage, kWake, kSourcePort };
const struct scr_parameter scr_parameters[] = {{"rate", "given at each TX event; 0: none", 0, 0, INT64_MAX / 4},
                                               {"mischief", "what goes wrong, at the first TX event", 0, 0, 9},
                                               {"probe_port", "probed at each TX event", 0, 0, 65535},
                                               {"message", "sent at each TX event", 0, 0, 1000000},
                                               {"wake", "after the first TX event, ns", 0, 0, 1000000000},
                                               {"source_port", "set at each TX event", 0, 0, 65535},
                                               {0, 0, 0, 0, 0}};
const char* const scr_counters[] = {"tx",        "rx",     "ack",    "nack",       "cnp",         "rtt",
                                    "peer",      "host",   "bytes",  "new_flows",  "lost",        "last_value",
                                    "last_rtt",  "timers", "events", "detail",     "pcie_looks",  "last_port",
                                    "nic_looks", "sent",   "read",   "most_ready", "most_staged", 0};
static int* volatile nowhere = (int*)8;
static uint64_t total; /* a global of this copy's own */

static void misbehave(struct scr_node* node) {
  switch (node->parameters[kMischief]) {
    case 1:
      *nowhere = 1;
      break;
    case 2:
      for (volatile int i = 0;; i++) {
      }
    case 3:
      node->guard = 0;
      break;
    case 4:
      scr_set_rate(node, node->flows + 7, 1000000000);
      scr_set_rate(node, 0, UINT64_MAX);
      scr_set_rate(node, 0, 1);
      break;
    case 5:
      for (uint32_t i = 0; i < 1000000; i++) scr_wake_at(node, 0);
      break;
    default:
      break;
  }
}

void scr_handle(struct scr_node* node, const struct scr_event* event) {
  node->counters[event->kind]++;
  node->counters[8] += event->bytes;
  node->counters[14] = ++total;
  node->counters[15] = event->detail;
  if (event->kind == SCR_PEER) node->counters[11] = event->value;
  if (event->kind == SCR_RTT)
    node->counters[event->detail ? 10 : 12] = event->detail ? node->counters[10] + 1 : event->rtt;
  if (event->kind == SCR_RTT) node->counters[17] = event->udp_source_port;
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_NEW_FLOW) node->counters[9]++;
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_TIMER) node->counters[13]++;
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_PCIE) node->counters[16]++;
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_NIC) {
    node->counters[18]++;
    node->counters[19] = event->value;
    node->counters[20] = event->value2;
    if (event->ready_flows > node->counters[21]) node->counters[21] = event->ready_flows;
    if (event->staged_bytes > node->counters[22]) node->counters[22] = event->staged_bytes;
  }
  if (event->kind == SCR_HOST && event->detail == SCR_HOST_HINT) node->counters[11] = event->value;
  if (event->kind != SCR_TX) return;
  if (node->counters[SCR_TX] == 1) misbehave(node);
  if (node->parameters[kRate]) scr_set_rate(node, event->flow, (uint64_t)node->parameters[kRate]);
  if (node->parameters[kProbePort]) scr_probe(node, event->flow, (uint16_t)node->parameters[kProbePort]);
  if (node->parameters[kMessage]) scr_send(node, event->flow, SCR_CREDIT, (uint64_t)node->parameters[kMessage], 7);
  if (node->parameters[kSourcePort]) scr_set_port(node, event->flow, (uint16_t)node->parameters[kSourcePort]);
  if (node->parameters[kWake] && node->counters[SCR_TX] == 1) scr_wake_at(node, node->now + node->parameters[kWake]);
}

void scr_init(struct scr_node* node) { node->events = UINT32_MAX; }
