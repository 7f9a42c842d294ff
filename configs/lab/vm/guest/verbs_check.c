// SPDX-License-Identifier: BSD-3-Clause
// verbs_check [-p PORT] [-w MILLISECONDS]: the other end of rocebox's workload of that name, for a machine with an RDMA
// device. It waits for one client by RDMA CM, does the cases that the client asks for, prints a line for each, and ends
// when the client goes. Exit status: 0 every byte that came was right, 1 otherwise. nic_model/host/workloads/README.md
// has the protocol.
#include <fcntl.h>
#include <time.h>

#define PROGRAM "verbs_check"
#include "verbs_check_side.h"

static struct rdma_event_channel* channel;
static struct ibv_cq* control_cq;
static struct ibv_mr* control_mr;
static struct message control[2 * CONTROL_DEPTH];  // received, and to be sent
static unsigned sent;
static double settle_seconds = 0.5, deadline;
static bool all_right = true, has_said_done;
static struct message done;  // the requester's, whichever side that is

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Says where this side stands.
static struct message say(uint32_t kind) {
  uint32_t counts[4];
  count(counts);
  struct message m = side.peer;  // the case as the client has it
  m.kind = htonl(kind);
  m.qpn = htonl(side.qp->qp_num);
  m.psn = htonl(first_psn());
  m.rkey = htonl(side.mr->rkey);
  m.address = htobe64((uintptr_t)data(0));
  m.status = htonl(side.status);
  m.completed = htonl(side.completed);
  m.whole = htonl(counts[WHOLE]), m.partial = htonl(counts[PARTIAL]);
  m.missing = htonl(counts[MISSING]), m.wrong = htonl(counts[WRONG]);
  struct message* place = &control[CONTROL_DEPTH + sent++ % CONTROL_DEPTH];
  *place = m;
  struct ibv_sge sge = {(uintptr_t)place, sizeof *place, control_mr->lkey};
  struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  need(ibv_post_send(id->qp, &request, &bad) == 0, "ibv_post_send");
  return m;
}

// Of a case that is over: by whom its messages are verified is who says how many came.
static void end_case(const struct message* done, const struct message* result) {
  static const char* transports[] = {"RC", "UC", "UD"};
  static const char* verbs[] = {"send", "send_with_imm", "write",       "write_with_imm",
                                "read", "fetch_add",     "compare_swap"};
  const struct message* by = side.verb >= READ ? done : result;
  printf("%s %s by the %s: %u of %u whole, %u partial, %u missing, %u wrong, status %u\n", transports[side.transport],
         verbs[side.verb], side.requests ? "server" : "client", ntohl(by->whole), side.messages, ntohl(by->partial),
         ntohl(by->missing), ntohl(by->wrong), ntohl(done->status) ? ntohl(done->status) : ntohl(result->status));
  fflush(stdout);
  if (by->wrong || (is_atomic() && result->wrong)) all_right = false;
  release();
}

static void on_message(const struct message* m) {
  switch (ntohl(m->kind)) {
    case CASE:
      if (side.exists) release();
      prepare(m);
      connect_side();
      has_said_done = false;
      say(READY);
      return;
    case GO:
      post();
      return;
    case DONE:
      done = *m;
      side.settles = true;
      deadline = now() + (m->status ? 0 : settle_seconds);
      return;
    case RESULT:
      end_case(&done, m);
      return;
    default:
      errno = EPROTO;
      die("a message of no kind");
  }
}

// Whether there was a completion.
static bool poll_control(void) {
  struct ibv_wc wc;
  int got = ibv_poll_cq(control_cq, 1, &wc);
  need(got >= 0, "ibv_poll_cq");
  if (got == 0 || wc.status == IBV_WC_WR_FLUSH_ERR) return got > 0;
  errno = EIO;
  need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  if (wc.opcode != IBV_WC_RECV) return true;
  struct message m = control[wc.wr_id];
  errno = EPROTO;
  need(wc.byte_len == sizeof m && memcmp(m.magic, "vrbcheck", 8) == 0, "a message that is none of verbs_check");
  post_receive(id->qp, wc.wr_id, &control[wc.wr_id], sizeof m, control_mr->lkey);
  on_message(&m);
  return true;
}

static bool advance(void) {
  bool any = poll_control();
  if (!side.exists) return any;
  any |= poll_side();
  if (side.requests && !has_said_done && side.posted && (side.completed == side.messages || side.status)) {
    has_said_done = true;
    done = say(DONE);
  }
  if (side.settles && !any && (is_complete() || now() >= deadline)) {
    struct message result = say(RESULT);
    end_case(&done, &result);
  }
  return any;
}

// The event that comes next, if it is that one.
static struct rdma_cm_id* wait_for(enum rdma_cm_event_type type) {
  struct rdma_cm_event* event;
  need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  struct rdma_cm_id* of = event->id;
  errno = EPROTO;
  need(event->event == type, rdma_event_str(event->event));
  rdma_ack_cm_event(event);
  return of;
}

static void accept_client(void) {
  id = wait_for(RDMA_CM_EVENT_CONNECT_REQUEST);
  need((pd = ibv_alloc_pd(id->verbs)), "ibv_alloc_pd");
  need((control_cq = ibv_create_cq(id->verbs, 4 * CONTROL_DEPTH, NULL, NULL, 0)), "ibv_create_cq");
  need((control_mr = ibv_reg_mr(pd, control, sizeof control, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
  struct ibv_qp_init_attr init = {.send_cq = control_cq,
                                  .recv_cq = control_cq,
                                  .qp_type = IBV_QPT_RC,
                                  .cap = {CONTROL_DEPTH, CONTROL_DEPTH, 1, 1, 0}};
  need(rdma_create_qp(id, pd, &init) == 0, "rdma_create_qp");
  for (unsigned i = 0; i < CONTROL_DEPTH; i++)
    post_receive(id->qp, i, &control[i], sizeof control[i], control_mr->lkey);
  struct rdma_conn_param options = {
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  need(rdma_accept(id, &options) == 0, "rdma_accept");
  wait_for(RDMA_CM_EVENT_ESTABLISHED);
}

int main(int argc, char** argv) {
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7175)};
  for (int c; (c = getopt(argc, argv, "p:w:")) != -1;) {
    if (c == '?') return 2;
    if (c == 'p') any.sin6_port = htons((uint16_t)atoi(optarg));
    if (c == 'w') settle_seconds = atoi(optarg) / 1e3;
  }
  struct rdma_cm_id* listener;
  need((channel = rdma_create_event_channel()), "rdma_create_event_channel");
  need(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  need(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "rdma_bind_addr");
  need(rdma_listen(listener, 1) == 0, "rdma_listen");
  accept_client();
  need(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
  struct rdma_cm_event* event;
  for (;;) {
    if (advance()) continue;
    if (rdma_get_cm_event(channel, &event) == 0) break;  // the client has gone
    usleep(200);                                         // Soft-RoCE may need the only CPU
  }
  rdma_ack_cm_event(event);
  if (side.exists) release();
  rdma_disconnect(id);
  rdma_destroy_qp(id);
  ibv_dereg_mr(control_mr);
  ibv_destroy_cq(control_cq);
  ibv_dealloc_pd(pd);
  rdma_destroy_id(id);
  rdma_destroy_id(listener);
  rdma_destroy_event_channel(channel);
  return all_right ? 0 : 1;
}
