// SPDX-License-Identifier: BSD-3-Clause
// allgather_rank [-p PORT] [-s BYTES] [-m MTU] [-g GROUP] [-c SECONDS] ADDRESS...: one rank of rocebox's workload
// multicast_allgather with one communicator, subgroup, chain and iteration, for a machine with an RDMA device: written by
// kernels/allgather/README.md, and no line of it rocebox's. The addresses are those of all ranks. This machine's is the
// last, and their number no power of two, so that its barrier is one message each way. Exit status: 0 every byte is
// right, 1 otherwise.
#define PROGRAM "allgather_rank"
#include <fcntl.h>
#include <time.h>

#include "group.h"

enum { BARRIER = 1, ACTIVATE, REQUEST, ACKNOWLEDGE, FINAL, MEMBER, GOODBYE };
enum { LEFT, RIGHT, PARTNER, LINKS };
enum { RANKS_MAX = 15, RECEIVES = 32, SENDS = 128, HEAD_BYTES = 40, QKEY = 0x11111111, MULTICAST_QPN = 0xFFFFFF };
enum { ON_LINK, CHUNK_SENT, CHUNK_CAME, READ_DONE };  // what a completion is of: the top byte of its identifier

// All in network order.
struct message {
  uint8_t type, reserved0;
  uint16_t communicator;
  uint32_t sequence, argument, rkey;
  uint64_t address, reserved1;
};
_Static_assert(sizeof(struct message) == 32, "as on the wire");
struct hello {
  char magic[8];
  uint64_t agreed;
  uint32_t rank;
  uint16_t communicator;
  uint8_t link, reserved;
};
_Static_assert(sizeof(struct hello) == 24, "as on the wire");

static struct link {
  struct rdma_cm_id* id;
  struct message in[RECEIVES], out[SENDS];
  unsigned sent;
  bool is_up, has_goodbye;
} links[LINKS];
static uint32_t port = 18519, block_bytes = 40000, mtu = 1024, rank, ranks, core, chunks;
static double cutoff_after = 10;
static struct sockaddr_in addresses[RANKS_MAX];
static union ibv_gid group = {.raw = {[10] = 0xFF, [11] = 0xFF}};
static struct rdma_event_channel* channel;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr *link_mr, *buffer_mr, *slots_mr;
static struct ibv_qp* qp;
static uint8_t *buffer, *slots;
static bool* have;  // by chunk
static uint32_t missing[RANKS_MAX], qpns[RANKS_MAX], fetched;
static bool asked[RANKS_MAX], wanted[RANKS_MAX], barrier_came, activated, final_came;
static unsigned left_to_send, members, posted_reads;
static uint64_t agreed;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// The workload's own bytes (kernels/allgather/workload.cc, given()), of the first collective.
static uint8_t expected(uint32_t block, uint64_t offset) {
  uint64_t x = offset + ((uint64_t)block << 32);
  x = (x ^ x >> 31) * 0x9E3779B97F4A7C15;
  return (uint8_t)(x >> 56);
}

static uint32_t bytes_of(uint32_t index) {
  uint32_t begin = index * mtu;
  return block_bytes - begin < mtu ? block_bytes - begin : mtu;
}

static void say(unsigned to, uint8_t type, uint32_t argument, uint32_t rkey, uint64_t address) {
  struct link* link = &links[to];
  struct message* m = &link->out[link->sent++ % SENDS];
  *m = (struct message){.type = type, .argument = htonl(argument), .rkey = htonl(rkey), .address = htobe64(address)};
  struct ibv_sge sge = {(uintptr_t)m, sizeof *m, link_mr->lkey};
  struct ibv_send_wr request = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
  need(ibv_post_send(link->id->qp, &request, &bad) == 0, "ibv_post_send");
}

static void acknowledge(uint32_t block) {
  say(RIGHT, ACKNOWLEDGE, block, buffer_mr->rkey, (uintptr_t)buffer + (uint64_t)block * block_bytes);
}

static void on_chunk_whole(uint32_t block, uint32_t index) {
  have[block * chunks + index] = true;
  if (--missing[block] == 0 && wanted[block]) acknowledge(block);
}

// What of the block has not come, from where the left neighbour has it.
static void read_missing(uint32_t block, uint32_t rkey, uint64_t address) {
  for (uint32_t i = 0; i < chunks; i++) {
    if (have[block * chunks + i]) continue;
    struct ibv_sge sge = {(uintptr_t)buffer + (uint64_t)block * block_bytes + i * mtu, bytes_of(i), buffer_mr->lkey};
    struct ibv_send_wr request = {.wr_id = (uint64_t)READ_DONE << 56 | (block * chunks + i), .sg_list = &sge, .num_sge = 1,
                                  .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma = {address + i * mtu, rkey}}, *bad;
    need(ibv_post_send(links[LEFT].id->qp, &request, &bad) == 0, "ibv_post_send of a READ");
    posted_reads++;
  }
}

static void on_message(unsigned from, const struct message* m) {
  uint32_t argument = ntohl(m->argument);
  errno = EPROTO;
  need(m->communicator == 0 && m->sequence == 0 && argument < RANKS_MAX, "a message of another collective");
  switch (m->type) {
    case MEMBER:
      need(from == LEFT && argument < ranks && !qpns[argument], "a member twice");
      qpns[argument] = ntohl(m->rkey);
      members++;
      if ((rank + 1) % ranks != argument) say(RIGHT, MEMBER, argument, ntohl(m->rkey), 0);
      return;
    case BARRIER: barrier_came = true; return;
    case ACTIVATE: activated = true; return;
    case REQUEST:
      need(from == RIGHT && argument < ranks, "a request of a stranger");
      if (missing[argument] == 0) acknowledge(argument);
      else wanted[argument] = true;
      return;
    case ACKNOWLEDGE:
      need(from == LEFT && argument < ranks && asked[argument], "an acknowledgement of nothing");
      read_missing(argument, ntohl(m->rkey), be64toh(m->address));
      return;
    case FINAL: need(from == RIGHT, "a final packet of a stranger"); final_came = true; return;
    case GOODBYE: links[from].has_goodbye = true; return;
    default: die("a message of no type");
  }
}

// A datagram: where it belongs is in its immediate, who has sent it in the GRH and the completion.
static void on_chunk(const struct ibv_wc* wc) {
  const uint8_t* slot = slots + (wc->wr_id & 0xFFFFFF) * (HEAD_BYTES + mtu);
  uint32_t chunk = ntohl(wc->imm_data), block = chunk / chunks, index = chunk % chunks;
  errno = EPROTO;
  need((wc->wc_flags & IBV_WC_WITH_IMM) && block < ranks, "a chunk that there is not");
  if (block == rank) return;  // verbs have datagrams to a group come back
  need(wc->src_qp == qpns[block] && memcmp(slot + 32, &addresses[block].sin_addr, 4) == 0, "a stranger's chunk");
  need(wc->byte_len == HEAD_BYTES + bytes_of(index), "a chunk of another length");
  if (have[chunk]) return;
  memcpy(buffer + (uint64_t)block * block_bytes + index * mtu, slot + HEAD_BYTES, bytes_of(index));
  on_chunk_whole(block, index);
}

static void on_completion(const struct ibv_wc* wc) {
  unsigned kind = (unsigned)(wc->wr_id >> 56), from = 0;
  while (from < LINKS && (!links[from].is_up || links[from].id->qp->qp_num != wc->qp_num)) from++;
  // Who has said goodbye may be gone before its last acknowledgement has come.
  if (wc->status != IBV_WC_SUCCESS && kind == ON_LINK && from < LINKS && links[from].has_goodbye) return;
  errno = EIO;
  need(wc->status == IBV_WC_SUCCESS, ibv_wc_status_str(wc->status));
  if (kind == CHUNK_SENT) left_to_send--;
  if (kind == CHUNK_CAME) on_chunk(wc);
  if (kind == READ_DONE) {
    uint32_t chunk = (uint32_t)wc->wr_id;
    posted_reads--;
    fetched++;
    if (!have[chunk]) on_chunk_whole(chunk / chunks, chunk % chunks);
  }
  if (kind != ON_LINK || wc->opcode != IBV_WC_RECV) return;
  struct message m = links[from].in[wc->wr_id];
  need(wc->byte_len == sizeof m, "a message of another length");
  post_receive(links[from].id->qp, wc->wr_id, &links[from].in[wc->wr_id], sizeof m, link_mr->lkey);
  on_message(from, &m);
}

static void run_until(bool (*done)(void), double deadline) {
  while (!done() && now() < deadline) {
    struct ibv_wc wc;
    int got = ibv_poll_cq(cq, 1, &wc);
    need(got >= 0, "ibv_poll_cq");
    if (got) on_completion(&wc);
    else usleep(200);  // Soft-RoCE may need the only CPU
  }
}

static bool all_members(void) { return members == ranks - 1; }
static bool met(void) { return barrier_came; }
static bool is_whole(void) {
  for (uint32_t block = 0; block < ranks; block++)
    if (missing[block]) return false;
  return posted_reads == 0;
}
static bool is_turn(void) { return activated; }
static bool is_released(void) { return is_whole() && final_came && left_to_send == 0; }
static bool all_goodbyes(void) { return links[LEFT].has_goodbye && links[RIGHT].has_goodbye && links[PARTNER].has_goodbye; }
static void await(bool (*done)(void), const char* what) {
  run_until(done, now() + 120);
  errno = ETIMEDOUT;
  need(done(), what);
}

// What all links share, once there is a device.
static void prepare(struct ibv_context* device) {
  if (pd) return;
  chunks = (block_bytes + mtu - 1) / mtu;
  need((pd = ibv_alloc_pd(device)), "ibv_alloc_pd");
  need((cq = ibv_create_cq(device, 4096, NULL, NULL, 0)), "ibv_create_cq");
  need((link_mr = ibv_reg_mr(pd, links, sizeof links, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
  size_t bytes = (size_t)ranks * block_bytes, ring = (size_t)ranks * chunks * (HEAD_BYTES + mtu);
  need((buffer = malloc(bytes)) && (slots = malloc(ring)) && (have = calloc((size_t)ranks * chunks, 1)), "memory");
  memset(buffer, 0xEE, bytes);
  for (uint32_t block = 0; block < ranks; block++) missing[block] = block == rank ? 0 : chunks;
  for (uint64_t i = 0; i < block_bytes; i++) buffer[(uint64_t)rank * block_bytes + i] = expected(rank, i);
  need((buffer_mr = ibv_reg_mr(pd, buffer, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)), "ibv_reg_mr");
  need((slots_mr = ibv_reg_mr(pd, slots, ring, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
}

static void make_qp(unsigned which) {
  struct link* link = &links[which];
  prepare(link->id->verbs);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {SENDS + 4, RECEIVES, 1, 1, 0}};
  need(rdma_create_qp(link->id, pd, &init) == 0, "rdma_create_qp");
  for (unsigned i = 0; i < RECEIVES; i++) post_receive(link->id->qp, i, &link->in[i], sizeof link->in[i], link_mr->lkey);
  link->is_up = true;
}

static const struct rdma_conn_param parameters = {
    .responder_resources = 16, .initiator_depth = 16, .retry_count = 7, .rnr_retry_count = 7};

// Its left neighbour asks, and its partner in the barrier.
static void accept_one(struct rdma_cm_event* event) {
  struct hello hello;
  errno = EPROTO;
  need(event->param.conn.private_data_len >= sizeof hello, "a request without a rank");
  memcpy(&hello, event->param.conn.private_data, sizeof hello);
  unsigned which = hello.link == 0 ? LEFT : PARTNER;
  need(memcmp(hello.magic, "rbxgthr1", 8) == 0 && (hello.link == 0 || hello.link == 2) && !links[which].id, "a stranger asks");
  need(ntohl(hello.rank) == (which == LEFT ? rank - 1 : rank - core), "another rank asks");
  agreed = hello.agreed;
  links[which].id = event->id;
  make_qp(which);
  struct rdma_conn_param answer = parameters;
  need(rdma_accept(event->id, &answer) == 0, "rdma_accept");
}

static void connect_right(void) {
  struct hello hello = {.magic = "", .agreed = agreed, .rank = htonl(rank), .link = 0};
  memcpy(hello.magic, "rbxgthr1", 8);
  struct rdma_conn_param asks = parameters;
  asks.private_data = &hello;
  asks.private_data_len = sizeof hello;
  make_qp(RIGHT);
  need(rdma_connect(links[RIGHT].id, &asks) == 0, "rdma_connect");
}

static void join(void) {
  struct rdma_cm_id* listener;
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in right = addresses[(rank + 1) % ranks];
  right.sin_port = htons((uint16_t)port);
  need((channel = rdma_create_event_channel()), "rdma_create_event_channel");
  need(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  need(rdma_bind_addr(listener, (struct sockaddr*)&any) == 0, "rdma_bind_addr");
  need(rdma_listen(listener, LINKS) == 0, "rdma_listen");
  for (unsigned requests = 0, up = 0; up < LINKS;) {
    struct rdma_cm_event* event;
    need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    errno = EPROTO;
    switch (event->event) {
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        accept_one(event);
        if (++requests < 2) break;
        need(rdma_create_id(channel, &links[RIGHT].id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
        need(rdma_resolve_addr(links[RIGHT].id, NULL, (struct sockaddr*)&right, 10000) == 0, "rdma_resolve_addr");
        break;
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        need(rdma_resolve_route(links[RIGHT].id, 10000) == 0, "rdma_resolve_route");
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED: connect_right(); break;
      case RDMA_CM_EVENT_ESTABLISHED: up++; break;
      default: die(rdma_event_str(event->event));
    }
    rdma_ack_cm_event(event);
  }
}

// The queue pair of datagrams, which receives from now on.
static struct ibv_ah* join_multicast(void) {
  struct rdma_cm_id* id = links[LEFT].id;
  uint32_t all = ranks * chunks;
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {chunks, all, 1, 1, 0}};
  need((qp = ibv_create_qp(pd, &init)), "ibv_create_qp");
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = id->port_num, .qkey = QKEY};
  need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0, "INIT");
  for (uint32_t i = 0; i < all; i++)
    post_receive(qp, (uint64_t)CHUNK_CAME << 56 | i, slots + (size_t)i * (HEAD_BYTES + mtu), HEAD_BYTES + mtu, slots_mr->lkey);
  a.qp_state = IBV_QPS_RTR;
  need(ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0, "RTR");
  a.qp_state = IBV_QPS_RTS;
  need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
  join_group(id, &group);
  need(ibv_attach_mcast(qp, &group, 0) == 0, "ibv_attach_mcast");
  struct ibv_ah_attr to = path(id, &group);
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  need(ah, "ibv_create_ah");
  return ah;
}

static void multicast(struct ibv_ah* ah) {
  left_to_send = chunks;
  for (uint32_t i = 0; i < chunks; i++) {
    struct ibv_sge sge = {(uintptr_t)buffer + (uint64_t)rank * block_bytes + i * mtu, bytes_of(i), buffer_mr->lkey};
    struct ibv_send_wr request = {.wr_id = (uint64_t)CHUNK_SENT << 56, .sg_list = &sge, .num_sge = 1,
                                  .opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
                                  .imm_data = htonl(rank * chunks + i), .wr.ud = {ah, MULTICAST_QPN, QKEY}}, *bad;
    need(ibv_post_send(qp, &request, &bad) == 0, "ibv_post_send of a chunk");
  }
}

static void read_arguments(int argc, char** argv) {
  need(inet_pton(AF_INET, "239.1.0.0", group.raw + 12) == 1, "group");
  for (int c; (c = getopt(argc, argv, "p:s:m:g:c:")) != -1;) {
    if (c == 'p') port = (uint32_t)atoi(optarg);
    else if (c == 's') block_bytes = (uint32_t)atoi(optarg);
    else if (c == 'm') mtu = (uint32_t)atoi(optarg);
    else if (c == 'c') cutoff_after = atof(optarg);
    else if (c != 'g' || inet_pton(AF_INET, optarg, group.raw + 12) != 1) exit(2);
  }
  for (; optind < argc && ranks < RANKS_MAX; optind++, ranks++)
    if (inet_pton(AF_INET, argv[optind], &addresses[ranks].sin_addr) != 1) exit(2);
  for (core = 1; 2 * core <= ranks; core *= 2) {}
  if (ranks == core || block_bytes == 0 || (block_bytes + mtu - 1) / mtu > SENDS) exit(2);
  for (uint32_t i = 0; i < ranks; i++) addresses[i].sin_family = AF_INET;
  rank = ranks - 1;
}

int main(int argc, char** argv) {
  read_arguments(argc, argv);
  join();
  struct ibv_ah* ah = join_multicast();
  qpns[rank] = qp->qp_num;
  say(RIGHT, MEMBER, rank, qp->qp_num, 0);
  await(all_members, "the others' queue pairs");
  say(PARTNER, BARRIER, 0, 0, 0);
  await(met, "the barrier");
  await(is_turn, "its turn");  // told over a connection, so nothing but time can keep it back
  multicast(ah);
  run_until(is_whole, now() + cutoff_after);
  for (uint32_t block = 0; block < ranks; block++)
    if (missing[block]) {
      asked[block] = true;
      say(LEFT, REQUEST, block, 0, 0);
    }
  await(is_whole, "what was lost");
  say(LEFT, FINAL, 0, 0, 0);
  await(is_released, "the right neighbour's final packet");
  uint64_t wrong = 0;
  for (uint32_t block = 0; block < ranks; block++)
    for (uint64_t i = 0; i < block_bytes; i++) wrong += buffer[(uint64_t)block * block_bytes + i] != expected(block, i);
  for (unsigned i = 0; i < LINKS; i++) say(i, GOODBYE, 0, 0, 0);
  await(all_goodbyes, "the others' goodbyes");
  printf("rank %u of %u: %u chunks a block, %u fetched, %llu bytes wrong\n", rank, ranks, chunks, fetched,
         (unsigned long long)wrong);
  return wrong ? 1 : 0;
}
