// SPDX-License-Identifier: BSD-3-Clause
// Program: the code and data of a device program, from a shared object that was compiled against include/ alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rocebox::nic_model::dpa {

/// Each has data of its own, however often one file is loaded.
class Program {
 public:
  /// What stands in the file. Throws ConfigError.
  static std::string read(const std::string& path);
  /// How functions begin that a device has, besides those of memory and strings.
  using Api = std::span<const std::string_view>;
  static constexpr std::string_view kHandlers[] = {"flexio_dev_", "flexio_os_", "print_sim_", "rocebox_dpa_"};
  /// Throws ConfigError: that is no program, is for another processor, or wants what the device has not.
  static void check(const std::string& path, std::string_view bytes, Api api = kHandlers);
  /// The same, or it cannot be loaded.
  Program(const std::string& path, std::string_view bytes, Api api = kHandlers);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The file's name.
  const std::string& name() const { return name_; }
  /// A function that others may name; null: there is none.
  void* find(const std::string& function) const;
  /// The same, as a pointer to a function.
  template <class F>
  F function(const std::string& name) const {
    return reinterpret_cast<F>(find(name));
  }
  /// Whether it counts the blocks of code that it runs through (calls.h).
  bool counts_blocks() const { return counts_blocks_; }
  /// Where an address of its code is, for people: `function+0x1c`.
  std::string place_of(const void* instruction) const;

 private:
  std::string function_at(std::uint64_t offset) const;

  std::string name_;
  bool counts_blocks_;
  int file_ = -1;
  void* handle_ = nullptr;
};

}  // namespace rocebox::nic_model::dpa
