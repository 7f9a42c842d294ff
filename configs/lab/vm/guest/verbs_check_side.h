// SPDX-License-Identifier: BSD-3-Clause
// One side of a case of verbs_check: its queue pair, its memory, and what has come. Only verbs_check.c includes this.
#pragma once
#include "group.h"

enum { CASE = 1, READY, GO, DONE, RESULT };
enum { RC, UC, UD };
enum { SEND, SEND_WITH_IMM, WRITE, WRITE_WITH_IMM, READ, FETCH_ADD, COMPARE_SWAP, VERBS };
enum { CONTROL_DEPTH = 8, DEPTH = 16, RD_ATOMIC = 4, TIMEOUT = 16, HEAD_BYTES = 40, EMPTY = 0xEE };
enum { QKEY = 0x11111111, MULTICAST_QPN = 0xFFFFFF };

// All in network order.
struct message {
  char magic[8];
  uint32_t kind, number, transport, verb, server_requests, size, messages, mtu, qpn, psn, rkey, status;
  uint64_t address;
  uint8_t group[16];
  uint32_t completed, whole, partial, missing, wrong, reserved;
};
_Static_assert(sizeof(struct message) == 104, "as on the wire");

static struct rdma_cm_id* id;
static struct ibv_pd* pd;

// The case that goes on; the client's QP and memory are in `peer`.
static struct {
  bool exists, requests, settles;
  uint32_t number, transport, verb, size, messages, mtu;
  struct message peer;
  struct ibv_qp* qp;
  struct ibv_cq* cq;
  struct ibv_mr* mr;
  struct ibv_ah* ah;
  uint8_t* memory;
  bool* seen;
  int socket;  // that has joined the group
  uint32_t posted, completed, whole, wrong, status;
  int64_t last;
} side;

static bool is_atomic(void) { return side.verb == FETCH_ADD || side.verb == COMPARE_SWAP; }
static bool is_send(void) { return side.verb == SEND || side.verb == SEND_WITH_IMM; }
static bool has_imm(void) { return side.verb == SEND_WITH_IMM || side.verb == WRITE_WITH_IMM; }
static bool has_group(void) { return side.peer.group[0] || side.peer.group[10]; }
static size_t stride(void) { return ((size_t)side.size + HEAD_BYTES + 63) & ~(size_t)63; }
static uint8_t* data(uint64_t slot) { return side.memory + slot * stride() + HEAD_BYTES; }

static uint8_t expected(uint32_t message, uint32_t offset) {
  if (offset < 4) return (uint8_t)(message >> (24 - 8 * offset));
  return (uint8_t)(message * 167 + offset * 31 + (offset >> 8) * 7 + side.number * 59 + 0x5A);
}

enum { WHOLE, PARTIAL, MISSING, WRONG };
static int find(uint64_t slot, uint32_t message) {
  uint32_t right = 0, empty = 0, neither = 0;
  for (uint32_t i = 0; i < side.size; i++) {
    bool is_right = data(slot)[i] == expected(message, i), is_empty = data(slot)[i] == EMPTY;
    right += is_right;
    empty += is_empty;
    neither += !is_right && !is_empty;
  }
  return right == side.size ? WHOLE : empty == side.size ? MISSING : neither ? WRONG : PARTIAL;
}

static void count(uint32_t counts[4]) {
  memset(counts, 0, 4 * sizeof *counts);
  if (side.requests || side.verb != WRITE) {
    counts[WHOLE] = side.whole;
    counts[WRONG] = side.wrong;
  }
  if (!side.requests && is_atomic()) {
    uint64_t value;
    memcpy(&value, data(0), sizeof value);
    counts[value == side.messages ? WHOLE : WRONG] = side.messages;
  } else if (!side.requests && side.verb == WRITE) {
    for (uint32_t m = 0; m < side.messages; m++) counts[find(m, m)]++;
  } else if (side.requests == (side.verb >= READ)) {
    counts[MISSING] = side.messages - side.whole - side.wrong;
  }
}

static bool is_complete(void) {
  if (side.verb >= READ) return true;
  if (side.verb != WRITE) return side.whole + side.wrong >= side.messages;
  uint32_t counts[4];
  count(counts);
  return counts[WHOLE] == side.messages;
}

// Far from those of the cases before, of which a late packet may still come; each sixteenth case's go round.
static uint32_t first_psn(void) { return (0xFFFFE0 + side.number * 0x100000) & 0xFFFFFF; }

static void prepare(const struct message* m) {
  memset(&side, 0, sizeof side);
  side.peer = *m;
  side.number = ntohl(m->number), side.transport = ntohl(m->transport), side.verb = ntohl(m->verb);
  side.requests = m->server_requests != 0;
  side.size = ntohl(m->size), side.messages = ntohl(m->messages), side.mtu = ntohl(m->mtu);
  side.socket = -1;
  side.last = -1;
  errno = EINVAL;
  need(side.transport <= UD && side.verb < VERBS && side.size >= 4 && side.messages >= 1,
       "a case that is not possible");
  size_t bytes = stride() * side.messages;
  need((side.memory = aligned_alloc(64, bytes)) && (side.seen = calloc(side.messages, 1)), "memory");
  memset(side.memory, EMPTY, bytes);
  if (is_atomic() && !side.requests) memset(data(0), 0, 8);
  if (!is_atomic() && side.requests == (side.verb != READ))
    for (uint32_t n = 0; n < side.messages; n++)
      for (uint32_t i = 0; i < side.size; i++) data(n)[i] = expected(n, i);
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  need((side.mr = ibv_reg_mr(pd, side.memory, bytes, access)), "ibv_reg_mr");
  need((side.cq = ibv_create_cq(id->verbs, (int)side.messages + DEPTH + 1, NULL, NULL, 0)), "ibv_create_cq");
  static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
  struct ibv_qp_init_attr init = {
      .send_cq = side.cq, .recv_cq = side.cq, .qp_type = types[side.transport], .cap = {DEPTH, side.messages, 1, 1, 0}};
  need((side.qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
  struct ibv_qp_attr a = {
      .qp_state = IBV_QPS_INIT, .port_num = id->port_num, .qkey = QKEY, .qp_access_flags = (unsigned)access};
  if (side.transport == UC) a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  need(ibv_modify_qp(side.qp, &a, mask | (side.transport == UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0, "INIT");
  uint32_t head = side.transport == UD ? HEAD_BYTES : 0;
  for (uint32_t n = 0; n < side.messages && !side.requests && (is_send() || has_imm()); n++)
    post_receive(side.qp, n, data(n) - head, is_send() ? side.size + head : 0, side.mr->lkey);
  side.exists = true;
}

static void connect_side(void) {
  union ibv_gid peer = gid_of(rdma_get_peer_addr(id)), group;
  memcpy(group.raw, side.peer.group, 16);
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                          .dest_qp_num = ntohl(side.peer.qpn),
                          .rq_psn = ntohl(side.peer.psn),
                          .ah_attr = path(id, &peer),
                          .max_dest_rd_atomic = RD_ATOMIC,
                          .min_rnr_timer = 12};
  for (a.path_mtu = IBV_MTU_256; 128u << a.path_mtu < side.mtu;) a.path_mtu++;
  int mask = IBV_QP_STATE;
  if (side.transport != UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (side.transport == RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  need(ibv_modify_qp(side.qp, &a, mask) == 0, "RTR");
  a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                           .sq_psn = first_psn(),
                           .timeout = TIMEOUT,
                           .retry_cnt = 7,
                           .rnr_retry = 7,
                           .max_rd_atomic = RD_ATOMIC};
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (side.transport == RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  need(ibv_modify_qp(side.qp, &a, mask) == 0, "RTS");
  if (side.transport != UD) return;
  if (side.requests) {
    struct ibv_ah_attr to = path(id, has_group() ? &group : &peer);
    need((side.ah = ibv_create_ah(pd, &to)), "ibv_create_ah");
  } else if (has_group()) {
    side.socket = join_group(id, &group);
    need(ibv_attach_mcast(side.qp, &group, 0) == 0, "ibv_attach_mcast");
  }
}

// Requester: posts as many messages as may be under way.
static void post(void) {
  static const enum ibv_wr_opcode opcodes[] = {
      IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,        IBV_WR_RDMA_WRITE,        IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
  for (; side.posted < side.messages && side.posted - side.completed < DEPTH && !side.status; side.posted++) {
    uint32_t m = side.posted;
    struct ibv_sge sge = {(uintptr_t)data(m), is_atomic() ? 8 : side.size, side.mr->lkey};
    struct ibv_send_wr request = {.wr_id = m, .sg_list = &sge, .num_sge = 1, .opcode = opcodes[side.verb]}, *bad;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htonl(m);
    if (side.transport == UD) {
      request.wr.ud.ah = side.ah;
      request.wr.ud.remote_qpn = has_group() ? MULTICAST_QPN : ntohl(side.peer.qpn);
      request.wr.ud.remote_qkey = QKEY;
    } else if (is_atomic()) {
      request.wr.atomic.remote_addr = be64toh(side.peer.address);
      request.wr.atomic.rkey = ntohl(side.peer.rkey);
      request.wr.atomic.compare_add = side.verb == FETCH_ADD ? 1 : m;
      request.wr.atomic.swap = m + 1;
    } else {
      request.wr.rdma.remote_addr = be64toh(side.peer.address) + m * stride();
      request.wr.rdma.rkey = ntohl(side.peer.rkey);
    }
    need(ibv_post_send(side.qp, &request, &bad) == 0, "ibv_post_send");
  }
}

static void on_answer(uint64_t message) {
  uint64_t original;  // it counts up from 0
  memcpy(&original, data(message), sizeof original);
  bool right = is_atomic() ? original == message : find(message, (uint32_t)message) == WHOLE;
  right ? side.whole++ : side.wrong++;
}

static void on_receive(const struct ibv_wc* wc) {
  uint64_t slot = wc->wr_id;
  uint32_t number;
  memcpy(&number, data(slot), sizeof number);
  number = ntohl(number);
  bool right = wc->byte_len == side.size + (side.transport == UD ? HEAD_BYTES : 0);
  if (has_imm()) {
    right = right && (wc->wc_flags & IBV_WC_WITH_IMM) && (!is_send() || ntohl(wc->imm_data) == number);
    number = ntohl(wc->imm_data);
  }
  if (!is_send()) slot = number;
  right = right && number < side.messages && !side.seen[number] && find(slot, number) == WHOLE;
  if (right && side.transport != UD) right = side.transport == RC ? number == side.last + 1 : number > side.last;
  if (right) side.seen[number] = true;
  side.last = number;
  right ? side.whole++ : side.wrong++;
}

// Whether there was a completion.
static bool poll_side(void) {
  struct ibv_wc wc;
  int got = ibv_poll_cq(side.cq, 1, &wc);
  need(got >= 0, "ibv_poll_cq");
  if (got == 0) return false;
  if (wc.status != IBV_WC_SUCCESS) {
    if (!side.status) side.status = wc.status;
  } else if (side.requests) {
    side.completed++;
    if (side.verb >= READ) on_answer(wc.wr_id);
    post();
  } else {
    on_receive(&wc);
  }
  return true;
}

static void release(void) {
  if (side.socket >= 0) close(side.socket);
  union ibv_gid group;
  memcpy(group.raw, side.peer.group, 16);
  if (has_group() && !side.requests) ibv_detach_mcast(side.qp, &group, 0);
  ibv_destroy_qp(side.qp);
  if (side.ah) ibv_destroy_ah(side.ah);
  ibv_destroy_cq(side.cq);
  ibv_dereg_mr(side.mr);
  free(side.memory);
  free(side.seen);
  memset(&side, 0, sizeof side);
}
