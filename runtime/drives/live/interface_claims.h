// SPDX-License-Identifier: BSD-3-Clause
// InterfaceClaims: how the runs of one machine know which interfaces the others use.
#pragma once
#include <string>
#include <vector>

namespace rocebox {

/// A claim is a socket that nobody talks to, with an abstract name (unix(7)): the kernel keeps those by network
/// namespace, as it does the indices of interfaces, lists them in /proc/net/unix to whoever asks, and takes them back
/// when a process ends, however it ends. A packet socket would not do: any number may be bound to one interface.
class InterfaceClaims {
 public:
  /// `run`: name of this run; empty: it has none.
  explicit InterfaceClaims(std::string run) : run_(std::move(run)) {}
  ~InterfaceClaims();
  InterfaceClaims(const InterfaceClaims&) = delete;
  InterfaceClaims& operator=(const InterfaceClaims&) = delete;

  /// Claims an interface. Returns the run that has it already, for people: "run `bump` (process 12)".
  std::vector<std::string> claim(int index);

 private:
  std::string run_;
  std::vector<int> sockets_;
};

}  // namespace rocebox
