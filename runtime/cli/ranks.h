// SPDX-License-Identifier: BSD-3-Clause
// Ranks: the processes that one `mpirun` started, and what they tell each other.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace rocebox::cli {

/// Open MPI says by the environment who a process is. Its library is loaded when there is something to tell, so the
/// command runs where there is none, and is not linked against it.
class Ranks {
 public:
  /// One alone, where no `mpirun` started this process. Throws std::runtime_error when one did and its library cannot
  /// be loaded.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  /// How many processes mpirun has started.
  static int started();

  /// What every rank gives, in their order; all of them call it.
  std::vector<std::string> exchange(const std::string& own);

  /// This rank cannot go on, and the others would wait for it: tells why, and ends them all. Nothing for one alone.
  void abandon(const std::exception& why);

  /// The environment of a process that is no rank, for those that ranks start.
  static std::vector<std::string> no_rank();

 private:
  struct Library;
  void send(int to, const std::string& text);
  std::string receive(int from);

  int rank_ = 0, count_ = 1;
  std::unique_ptr<Library> library_;
};

}  // namespace rocebox::cli
