// SPDX-License-Identifier: BSD-3-Clause
// case_player: plays the cases of tests/conformance to the first RDMA device of this machine, at the word of a tester
// on its wire. A word is a datagram "NUMBER COMMAND ARGUMENT...", its answer "NUMBER ANSWER"; a number that comes again
// has the same answer again. The tester is also the peer of every queue pair: it makes and reads their packets itself.
//   begin TYPE ACCESS PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER RETRY_CNT RNR_RETRY MAX_RD_ATOMIC TIMEOUT WINDOWS PEER
//                                  a queue pair in RTS  -> qpn=N at=ADDRESS good=KEY ...
//   receive BYTES KEY, post NAME BYTES AT KEY, remove KEY, wait MICROSECONDS  -> done, or the error's name
//   end                            -> STATE and the completions, one a line
//   memory 0|1 PLACE               -> the first run of bytes at or behind PLACE that are not 0: PLACE HEXADECIMAL, or
//   end beacon PEER                    a queue pair that does nothing but answer -> qpn=N at=ADDRESS good=KEY quit
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  PORT = 7471,
  IDLE_SECONDS = 120,
  REGION = 4096,
  RECEIVES = 65536,
  RUN_MAX = 400,
  DEPTH = 64,
  PEER_QPN = 0x99,
  BEACON_PEER_QPN = 0x77,
  QKEY = 0x1234,
  IPV4_GID = 1,
  WINDOW_AT = 1024,
  WINDOW_BYTES = 1024,
  NO_KEY = 0x00DEAD00,
  BIND = 1 << 20  // the number of a work request that is no case's
};
static const uint64_t remote_address = 0x10000;
static const int all_rights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

enum key {
  GOOD,
  READ_ONLY,
  WRITE_ONLY,
  OTHER_DOMAIN,
  RECEIVE,
  REGIONS,
  WINDOW = REGIONS,
  READ_WINDOW,
  STRANGERS_WINDOW,
  UNBOUND_WINDOW,
  UNKNOWN,
  KEYS
};
static const char* const names[KEYS] = {"good",   "read_only",   "write_only",       "other_domain",   "receive",
                                        "window", "read_window", "strangers_window", "unbound_window", "unknown"};

static struct ibv_context* device;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq *send_cq, *receive_cq, *beacon_cq;
static struct ibv_qp *qp, *beacon;
static struct ibv_mr* regions[REGIONS];
static struct ibv_mw* windows[KEYS];
static uint32_t keys[KEYS], local_keys[KEYS];  // a region that nobody may reach has no remote key
static unsigned char memory[REGION] __attribute__((aligned(4096))), received[RECEIVES] __attribute__((aligned(4096)));
static uint64_t posted, posted_receives;
static char answer[1400];

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "case_player: %s: %s\n", what, strerror(errno));
  exit(1);
}

// The error of a verb, which `errno` or the verb itself tells.
static const char* done(int error) { return error ? strerrorname_np(error < 0 ? errno : error) : "done"; }

static enum key key_of(const char* name) {
  for (int i = 0; i < KEYS; i++)
    if (strcmp(name, names[i]) == 0) return i;
  errno = EINVAL;
  need(0, name);
  return UNKNOWN;
}

static struct ibv_qp* make(enum ibv_qp_type type, struct ibv_cq* send, struct ibv_cq* receive, int access) {
  struct ibv_qp_init_attr init = {.send_cq = send, .recv_cq = receive, .qp_type = type, .cap = {DEPTH, DEPTH, 1, 1, 0}};
  struct ibv_qp* made = ibv_create_qp(pd, &init);
  need(made != NULL, "ibv_create_qp");
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = (unsigned)access};
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  need(ibv_modify_qp(made, &a, mask) == 0, "INIT");
  return made;
}

static void connect_to(struct ibv_qp* one, const char* peer, uint32_t qpn, struct ibv_qp_attr a) {
  int rc = one->qp_type == IBV_QPT_RC, mask = IBV_QP_STATE;
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_256;
  a.dest_qp_num = qpn;
  a.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.sgid_index = IPV4_GID, .hop_limit = 64}};
  a.ah_attr.grh.dgid.raw[10] = a.ah_attr.grh.dgid.raw[11] = 0xFF;
  need(inet_pton(AF_INET, peer, a.ah_attr.grh.dgid.raw + 12) == 1, "the peer's address");
  if (one->qp_type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (rc) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  need(ibv_modify_qp(one, &a, mask) == 0, "RTR");
  a.qp_state = IBV_QPS_RTS;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (rc) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  need(ibv_modify_qp(one, &a, mask) == 0, "RTS");
}

static void bind_window(struct ibv_qp* by, struct ibv_cq* cq, enum key key, unsigned access) {
  struct ibv_send_wr request = {.wr_id = BIND, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
  request.bind_mw.mw = windows[key];
  request.bind_mw.rkey = keys[key] = ibv_inc_rkey(windows[key]->rkey);
  request.bind_mw.bind_info =
      (struct ibv_mw_bind_info){regions[GOOD], (uintptr_t)memory + WINDOW_AT, WINDOW_BYTES, access};
  need(ibv_post_send(by, &request, &bad) == 0, "IBV_WR_BIND_MW");
  struct ibv_wc wc = {0};
  while (ibv_poll_cq(cq, 1, &wc) == 0) usleep(100);
  errno = EIO;
  need(wc.status == IBV_WC_SUCCESS, "a window is not bound");
}

static void make_keys(int with_windows) {
  static const int rights[REGIONS] = {[READ_ONLY] = IBV_ACCESS_REMOTE_READ,
                                      [WRITE_ONLY] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                      [OTHER_DOMAIN] = 15,
                                      [RECEIVE] = IBV_ACCESS_LOCAL_WRITE};
  for (int i = 0; i < REGIONS; i++) {
    int access = i == GOOD           ? all_rights | (with_windows ? IBV_ACCESS_MW_BIND : 0)
                 : i == OTHER_DOMAIN ? all_rights
                                     : rights[i];
    regions[i] = ibv_reg_mr(i == OTHER_DOMAIN ? other_pd : pd, i == RECEIVE ? received : memory,
                            i == RECEIVE ? RECEIVES : REGION, access);
    need(regions[i] != NULL, "ibv_reg_mr");
    keys[i] = regions[i]->rkey;
    local_keys[i] = regions[i]->lkey;
  }
  keys[UNKNOWN] = local_keys[UNKNOWN] = NO_KEY;
  if (!with_windows) return;
  for (int i = WINDOW; i <= UNBOUND_WINDOW; i++) {
    need((windows[i] = ibv_alloc_mw(pd, IBV_MW_TYPE_2)) != NULL, "ibv_alloc_mw");
    keys[i] = windows[i]->rkey;
  }
  unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  bind_window(qp, send_cq, WINDOW, remote);
  bind_window(qp, send_cq, READ_WINDOW, IBV_ACCESS_REMOTE_READ);
  bind_window(beacon, beacon_cq, STRANGERS_WINDOW, remote);
}

// Windows first: those that are bound hold their queue pair and their region.
static void forget(void) {
  if (!qp) return;
  for (int i = 0; i < KEYS; i++) {
    if (windows[i]) need(ibv_dealloc_mw(windows[i]) == 0, "ibv_dealloc_mw");
    windows[i] = NULL;
  }
  need(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
  qp = NULL;
  for (int i = 0; i < REGIONS; i++) {
    if (regions[i]) need(ibv_dereg_mr(regions[i]) == 0, "ibv_dereg_mr");
    regions[i] = NULL;
  }
  need(ibv_destroy_cq(send_cq) == 0 && ibv_destroy_cq(receive_cq) == 0, "ibv_destroy_cq");
}

static void say_place(uint32_t qpn) {
  int at = sprintf(answer, "qpn=%u at=%llu", qpn, (unsigned long long)(uintptr_t)memory);
  for (int i = 0; i < KEYS; i++) at += sprintf(answer + at, " %s=%u", names[i], keys[i]);
}

static void begin(char* const* word) {
  forget();
  memset(memory, 0, sizeof memory);
  memset(received, 0, sizeof received);
  posted = posted_receives = 0;
  need((send_cq = ibv_create_cq(device, 2 * DEPTH, NULL, NULL, 0)) &&
           (receive_cq = ibv_create_cq(device, 2 * DEPTH, NULL, NULL, 0)),
       "ibv_create_cq");
  enum ibv_qp_type type = word[0][1] == 'C' ? (word[0][0] == 'R' ? IBV_QPT_RC : IBV_QPT_UC) : IBV_QPT_UD;
  qp = make(type, send_cq, receive_cq, atoi(word[1]));
  uint32_t psn = (uint32_t)atoi(word[2]);
  struct ibv_qp_attr a = {.rq_psn = psn,
                          .sq_psn = psn,
                          .max_dest_rd_atomic = (uint8_t)atoi(word[3]),
                          .min_rnr_timer = (uint8_t)atoi(word[4]),
                          .retry_cnt = (uint8_t)atoi(word[5]),
                          .rnr_retry = (uint8_t)atoi(word[6]),
                          .max_rd_atomic = (uint8_t)atoi(word[7]),
                          .timeout = (uint8_t)atoi(word[8])};
  connect_to(qp, word[10], PEER_QPN, a);
  make_keys(atoi(word[9]));
  say_place(qp->qp_num);
}

static void make_beacon(const char* peer) {
  static unsigned char bytes[8];
  struct ibv_mr* region = ibv_reg_mr(pd, bytes, sizeof bytes, all_rights);
  need(region && (beacon_cq = ibv_create_cq(device, DEPTH, NULL, NULL, 0)), "a beacon");
  beacon = make(IBV_QPT_RC, beacon_cq, beacon_cq, all_rights);
  connect_to(beacon, peer, BEACON_PEER_QPN, (struct ibv_qp_attr){.max_dest_rd_atomic = 4, .max_rd_atomic = 4});
  sprintf(answer, "qpn=%u at=%llu good=%u", beacon->qp_num, (unsigned long long)(uintptr_t)bytes, region->rkey);
}

static int post(char* const* word) {
  int is_atomic = strcmp(word[0], "FETCH_ADD") == 0;
  struct ibv_sge sge = {(uintptr_t)memory + (uint64_t)atoll(word[2]), (uint32_t)atoi(word[1]),
                        local_keys[key_of(word[3])]};
  struct ibv_send_wr request = {.wr_id = posted++, .sg_list = &sge, .num_sge = sge.length > 0}, *bad;
  request.opcode = strcmp(word[0], "SEND") == 0    ? IBV_WR_SEND
                   : strcmp(word[0], "WRITE") == 0 ? IBV_WR_RDMA_WRITE
                   : strcmp(word[0], "READ") == 0  ? IBV_WR_RDMA_READ
                   : is_atomic                     ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                                   : IBV_WR_LOCAL_INV;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = 1;
  if (is_atomic) {
    request.wr.atomic.remote_addr = remote_address;
    request.wr.atomic.compare_add = 1;
    request.wr.atomic.rkey = 1;
  }
  if (request.opcode == IBV_WR_LOCAL_INV) request.invalidate_rkey = keys[key_of(word[3])];
  return ibv_post_send(qp, &request, &bad);
}

static int post_receive(char* const* word) {
  struct ibv_sge sge = {(uintptr_t)received, (uint32_t)atoi(word[0]), local_keys[key_of(word[1])]};
  struct ibv_recv_wr request = {.wr_id = posted_receives++, .sg_list = &sge, .num_sge = sge.length > 0}, *bad;
  return ibv_post_recv(qp, &request, &bad);
}

static int take_back(enum key key) {
  int error = key < REGIONS ? ibv_dereg_mr(regions[key]) : ibv_dealloc_mw(windows[key]);
  if (error) return error;
  if (key < REGIONS)
    regions[key] = NULL;
  else
    windows[key] = NULL;
  return 0;
}

static int say_completions(int at, struct ibv_cq* cq, const char* queue) {
  static const char* const statuses[] = {"SUCCESS",        "LOC_LEN_ERR",      "LOC_QP_OP_ERR",  "LOC_EEC_OP_ERR",
                                         "LOC_PROT_ERR",   "WR_FLUSH_ERR",     "MW_BIND_ERR",    "BAD_RESP_ERR",
                                         "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",  "REM_ACCESS_ERR", "REM_OP_ERR",
                                         "RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR"};
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) > 0 && at < (int)sizeof answer - 100) {
    if (wc.wr_id == BIND) continue;
    const char* status = wc.status <= IBV_WC_RNR_RETRY_EXC_ERR ? statuses[wc.status] : ibv_wc_status_str(wc.status);
    at += sprintf(answer + at, "\n%s %llu %s", queue, (unsigned long long)wc.wr_id, status);
    if (cq != receive_cq || wc.status != IBV_WC_SUCCESS) continue;
    at += sprintf(answer + at, " bytes=%u", wc.byte_len);
    if (wc.wc_flags & IBV_WC_WITH_IMM) at += sprintf(answer + at, " imm=%u", ntohl(wc.imm_data));
  }
  return at;
}

static void end(void) {
  static const char* const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  struct ibv_qp_attr a;
  struct ibv_qp_init_attr init;
  need(ibv_query_qp(qp, &a, IBV_QP_STATE, &init) == 0 && a.qp_state <= IBV_QPS_ERR, "ibv_query_qp");
  int at = sprintf(answer, "%s", states[a.qp_state]);
  say_completions(say_completions(at, send_cq, "send"), receive_cq, "receive");
}

static void say_run(const unsigned char* bytes, int count, int from) {
  while (from < count && !bytes[from]) from++;
  if (from >= count) {
    strcpy(answer, "end");
    return;
  }
  int at = sprintf(answer, "%d ", from);
  for (int i = from; i < count && i < from + RUN_MAX && bytes[i]; i++) at += sprintf(answer + at, "%02x", bytes[i]);
}

static void command(char* const* word, int words) {
  const char* verb = word[0];
  strcpy(answer, "done");
  if (strcmp(verb, "begin") == 0 && words == 12)
    begin(word + 1);
  else if (strcmp(verb, "beacon") == 0 && words == 2)
    make_beacon(word[1]);
  else if (strcmp(verb, "post") == 0 && words == 5)
    strcpy(answer, done(post(word + 1)));
  else if (strcmp(verb, "receive") == 0 && words == 3)
    strcpy(answer, done(post_receive(word + 1)));
  else if (strcmp(verb, "remove") == 0 && words == 2)
    strcpy(answer, done(take_back(key_of(word[1]))));
  else if (strcmp(verb, "wait") == 0 && words == 2)
    usleep((useconds_t)atoi(word[1]));
  else if (strcmp(verb, "end") == 0)
    end();
  else if (strcmp(verb, "memory") == 0 && words == 3)
    say_run(atoi(word[1]) ? received : memory, atoi(word[1]) ? RECEIVES : REGION, atoi(word[2]));
  else
    strcpy(answer, strcmp(verb, "quit") == 0 ? "done" : "what?");
}

int main(void) {
  int count = 0;
  struct ibv_device** all = ibv_get_device_list(&count);
  errno = ENODEV;
  need(count > 0 && (device = ibv_open_device(all[0])), "no RDMA device");
  need((pd = ibv_alloc_pd(device)) && (other_pd = ibv_alloc_pd(device)), "ibv_alloc_pd");
  int wire = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)}, tester;
  struct timeval idle = {.tv_sec = IDLE_SECONDS};
  need(setsockopt(wire, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof idle) == 0, "SO_RCVTIMEO");
  need(bind(wire, (struct sockaddr*)&own, sizeof own) == 0, "bind");
  long last = -1;
  for (int over = 0; !over;) {
    static char said[1500], reply[1500];
    socklen_t length = sizeof tester;
    ssize_t got = recvfrom(wire, said, sizeof said - 1, 0, (struct sockaddr*)&tester, &length);
    need(got >= 0, "the tester says nothing any more");
    said[got] = '\0';
    char *word[16], *rest = said;
    int words = 0;
    while (words < 16 && (word[words] = strsep(&rest, " "))) words++;
    if (words < 2) continue;
    if (atol(word[0]) != last) {
      last = atol(word[0]);
      over = strcmp(word[1], "quit") == 0;
      command(word + 1, words - 1);
    }
    int bytes = snprintf(reply, sizeof reply, "%ld %s", last, answer);
    need(sendto(wire, reply, (size_t)bytes, 0, (struct sockaddr*)&tester, length) == bytes, "sendto");
  }
  return 0;
}
