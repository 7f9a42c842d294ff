// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/ranks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "runtime/component/component.h"
#include "runtime/component/fields.h"
#include "runtime/config/units.h"

namespace rocebox::cli {
namespace {

constexpr const char *kRank = "OMPI_COMM_WORLD_RANK", *kSize = "OMPI_COMM_WORLD_SIZE";
constexpr std::int64_t kRanksMax = 1 << 20;
// Counts of MPI are ints.
constexpr std::size_t kPartBytes = std::size_t{1} << 28;
constexpr int kTag = 1;

int number_in(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  if (!text) return fallback;
  const auto number = config::parse_integer(text);
  if (!number || *number < 0 || *number > kRanksMax)
    throw std::runtime_error(fmt::format("{} is `{}`, and no number that mpirun sets", variable, text));
  return static_cast<int>(*number);
}

}  // namespace

// The functions that are used, as mpi.h of Open MPI declares them: its handles are addresses of objects of the library.
// Another MPI has other handles, and is refused by what it lacks.
struct Ranks::Library {
  Library() {
    for (const char* name : {"libmpi.so.40", "libmpi.so"})
      if ((handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL))) break;
    if (!handle)
      throw std::runtime_error(fmt::format(
          "mpirun started this as one of several ranks, and its library is not here (Debian: libopenmpi3): {}",
          dlerror()));
    get(init, "MPI_Init");
    get(finalize, "MPI_Finalize");
    get(abort, "MPI_Abort");
    get(send, "MPI_Send");
    get(receive, "MPI_Recv");
    get(world, "ompi_mpi_comm_world");
    get(byte, "ompi_mpi_byte");
  }
  template <class T>
  void get(T*& symbol, const char* name) {
    symbol = reinterpret_cast<T*>(dlsym(handle, name));
    if (!symbol)
      throw std::runtime_error(fmt::format("the MPI library that was found is not Open MPI's: it has no {}", name));
  }
  void* handle = nullptr;
  int (*init)(int*, char***);
  int (*finalize)();
  int (*abort)(void* among, int status);
  int (*send)(const void* bytes, int count, void* type, int to, int tag, void* among);
  int (*receive)(void* bytes, int count, void* type, int from, int tag, void* among, void* status);
  void *world, *byte;
};

int Ranks::started() { return number_in(kSize, 1); }

Ranks::Ranks() : rank_(number_in(kRank, 0)), count_(started()) {
  if (count_ <= 1) {
    rank_ = 0;
    count_ = 1;
    return;
  }
  library_ = std::make_unique<Library>();
  library_->init(nullptr, nullptr);  // errors end the process: MPI's default
}

Ranks::~Ranks() {
  if (library_) library_->finalize();
}

void Ranks::abandon(const std::exception& why) {
  if (!library_) return;
  fmt::print(stderr, "rocebox: rank {}: {}\n", rank_, why.what());
  library_->abort(library_->world, dynamic_cast<const ConfigError*>(&why) ? 2 : 1);
}

std::vector<std::string> Ranks::no_rank() { return {fmt::format("{}=0", kRank), fmt::format("{}=1", kSize)}; }

void Ranks::send(int to, const std::string& text) {
  const std::uint64_t size = text.size();
  library_->send(&size, sizeof size, library_->byte, to, kTag, library_->world);
  for (std::size_t at = 0; at < text.size(); at += kPartBytes)
    library_->send(text.data() + at, static_cast<int>(std::min(kPartBytes, text.size() - at)), library_->byte, to, kTag,
                   library_->world);
}

std::string Ranks::receive(int from) {
  std::uint64_t size = 0;
  library_->receive(&size, sizeof size, library_->byte, from, kTag, library_->world, nullptr);
  std::string text(size, '\0');
  for (std::size_t at = 0; at < text.size(); at += kPartBytes)
    library_->receive(text.data() + at, static_cast<int>(std::min(kPartBytes, text.size() - at)), library_->byte, from,
                      kTag, library_->world, nullptr);
  return text;
}

// By way of the first one.
std::vector<std::string> Ranks::exchange(const std::string& own) {
  std::vector<std::string> all(static_cast<std::size_t>(count_));
  all[static_cast<std::size_t>(rank_)] = own;
  for (int other = 1; other < count_ && is_first(); other++) all[static_cast<std::size_t>(other)] = receive(other);
  if (!is_first()) {
    send(0, own);
    for (std::string& text : all) text = receive(0);
    return all;
  }
  for (int other = 1; other < count_; other++)
    for (const std::string& text : all) send(other, text);
  return all;
}

}  // namespace rocebox::cli
