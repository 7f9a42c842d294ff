// SPDX-License-Identifier: BSD-3-Clause
// What the machine's programs share: addresses as GIDs, groups, and giving up. PROGRAM is who gives up.
#pragma once
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char* what) {
  fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(errno));
  exit(1);
}

static void need(bool good, const char* what) {
  if (!good) die(what);
}

// An address as a GID.
static union ibv_gid gid_of(const struct sockaddr* address) {
  union ibv_gid gid = {.raw = {[10] = 0xFF, [11] = 0xFF}};
  if (address->sa_family == AF_INET6)
    memcpy(gid.raw, &((const struct sockaddr_in6*)address)->sin6_addr, 16);
  else
    memcpy(gid.raw + 12, &((const struct sockaddr_in*)address)->sin_addr, 4);
  return gid;
}

static bool is_ipv4(const union ibv_gid* gid) {
  static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
  return memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

// The own GID from which `to` is reached: the connection's, or where that is of the other family any that is not
// link-local.
static uint8_t gid_index(struct rdma_cm_id* id, const union ibv_gid* to) {
  union ibv_gid own = gid_of(rdma_get_local_addr(id)), gid;
  bool like_own = is_ipv4(&own) == is_ipv4(to);
  for (int i = 0; ibv_query_gid(id->verbs, id->port_num, i, &gid) == 0; i++)
    if (like_own ? memcmp(&gid, &own, sizeof gid) == 0
                 : is_ipv4(&gid) == is_ipv4(to) && gid.raw[0] != 0xFE && gid.raw[0])
      return (uint8_t)i;
  errno = EADDRNOTAVAIL;
  die("no GID of the group's family");
  return 0;
}

static struct ibv_ah_attr path(struct rdma_cm_id* id, const union ibv_gid* to) {
  return (struct ibv_ah_attr){
      .is_global = 1, .port_num = id->port_num, .grh = {.dgid = *to, .sgid_index = gid_index(id, to), .hop_limit = 64}};
}

// Linux's IP takes packets of groups only that a socket of this machine has joined: that socket, to be kept open.
static int join_group(struct rdma_cm_id* id, const union ibv_gid* group) {
  int joined;
  unsigned interface = 0;
  union ibv_gid own = gid_of(rdma_get_local_addr(id));
  struct ifaddrs *all, *one;
  need(getifaddrs(&all) == 0, "getifaddrs");
  for (one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6)) continue;
    union ibv_gid gid = gid_of(one->ifa_addr);
    if (memcmp(&gid, &own, sizeof gid) == 0) interface = if_nametoindex(one->ifa_name);
  }
  freeifaddrs(all);
  if (is_ipv4(group)) {
    struct ip_mreqn request = {.imr_ifindex = (int)interface};
    memcpy(&request.imr_multiaddr, group->raw + 12, 4);
    joined = socket(AF_INET, SOCK_DGRAM, 0);
    need(setsockopt(joined, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0, "IP_ADD_MEMBERSHIP");
  } else {
    struct ipv6_mreq request = {.ipv6mr_interface = interface};
    memcpy(&request.ipv6mr_multiaddr, group->raw, 16);
    joined = socket(AF_INET6, SOCK_DGRAM, 0);
    need(setsockopt(joined, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request) == 0, "IPV6_JOIN_GROUP");
  }
  return joined;
}

static void post_receive(struct ibv_qp* qp, uint64_t number, void* place, uint32_t bytes, uint32_t lkey) {
  struct ibv_sge sge = {(uintptr_t)place, bytes, lkey};
  struct ibv_recv_wr request = {.wr_id = number, .sg_list = &sge, .num_sge = bytes ? 1 : 0}, *bad;
  need(ibv_post_recv(qp, &request, &bad) == 0, "ibv_post_recv");
}
