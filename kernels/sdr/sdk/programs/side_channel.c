/* SPDX-License-Identifier: BSD-3-Clause */
#include "side_channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int of_client(struct sockaddr_in at, const char* server) {
  if (inet_pton(AF_INET, server, &at.sin_addr) != 1) return fprintf(stderr, "%s is no IPv4 address\n", server), -1;
  for (int i = 0; i < 600; i++) { /* a minute: the peer opens its device first */
    const int channel = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(channel, (struct sockaddr*)&at, sizeof at) == 0) return channel;
    close(channel);
    usleep(100000);
  }
  perror(server);
  return -1;
}

int side_channel(const char* server, int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (server) return of_client(at, server);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 1) != 0) return perror("listen"), -1;
  const int channel = accept(listener, NULL, NULL);
  close(listener);
  return channel;
}

int exchange(int channel, const void* own, void* peers, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t some = send(channel, (const char*)own + done, bytes - done, MSG_NOSIGNAL);
    if (some <= 0) return perror("send"), -1;
    done += (size_t)some;
  }
  for (size_t done = 0; done < bytes;) {
    const ssize_t some = recv(channel, (char*)peers + done, bytes - done, 0);
    if (some <= 0) return fprintf(stderr, "the peer has gone\n"), -1;
    done += (size_t)some;
  }
  return 0;
}

int connect_over(int channel, struct sdr_qp* qp) {
  size_t bytes = 0;
  uint64_t own_bytes, peers_bytes;
  if (sdr_qp_info_size_get(qp, &bytes) != SDR_SUCCESS) return -1;
  own_bytes = bytes;
  if (exchange(channel, &own_bytes, &peers_bytes, sizeof own_bytes) != 0) return -1;
  if (own_bytes != peers_bytes) return fprintf(stderr, "the peer's queue pair is made otherwise\n"), -1;
  char *info = malloc(2 * bytes), done = 0, peers_done;
  const int failed = !info || sdr_qp_info_get(qp, info) != SDR_SUCCESS ||
                     exchange(channel, info, info + bytes, bytes) != 0 ||
                     sdr_qp_connect(qp, info + bytes) != SDR_SUCCESS;
  free(info);
  return failed ? -1 : exchange(channel, &done, &peers_done, 1);
}

long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}
