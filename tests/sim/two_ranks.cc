// SPDX-License-Identifier: BSD-3-Clause
// In the place of Open MPI's library, where that is not installed: what two ranks of a sweep use of it, over the socket
// that the test has given both (TWO_RANKS). A rank that ends early is an error of the other, as under mpirun.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

int wire() {
  const char* number = std::getenv("TWO_RANKS");
  return number ? std::atoi(number) : -1;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  _exit(3);
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int ompi_mpi_comm_world, ompi_mpi_byte;
int ompi_mpi_comm_world = 0, ompi_mpi_byte = 0;

EXPORTED int MPI_Init(int*, char***) { return 0; }
EXPORTED int MPI_Finalize() { return 0; }
EXPORTED int MPI_Abort(void*, int status) { _exit(status); }
EXPORTED int MPI_Send(const void* bytes, int count, void*, int, int, void*) {
  const char* at = static_cast<const char*>(bytes);
  for (ssize_t sent = 0; count > 0; at += sent, count -= static_cast<int>(sent))
    if ((sent = send(wire(), at, static_cast<std::size_t>(count), MSG_NOSIGNAL)) <= 0) fail("MPI_Send");
  return 0;
}
EXPORTED int MPI_Recv(void* bytes, int count, void*, int, int, void*, void*) {
  char* at = static_cast<char*>(bytes);
  for (ssize_t got = 0; count > 0; at += got, count -= static_cast<int>(got))
    if ((got = recv(wire(), at, static_cast<std::size_t>(count), 0)) <= 0) fail("MPI_Recv");
  return 0;
}
