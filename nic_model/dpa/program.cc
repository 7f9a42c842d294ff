// SPDX-License-Identifier: BSD-3-Clause
#include "nic_model/dpa/program.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/component/component.h"

namespace rocebox::nic_model::dpa {
namespace {

#if defined(__x86_64__)
constexpr unsigned kMachine = EM_X86_64;
#else
constexpr unsigned kMachine = EM_AARCH64;
#endif

constexpr std::size_t kProgramBytesMax = std::size_t{64} << 20;

constexpr std::string_view kCountsBlocks = "__sanitizer_cov_trace_pc";

// What the device has besides its API: it is in every C library, takes no lock and no memory of its own; and what
// programs call that count the blocks of code that they run through (calls.h).
constexpr std::string_view kLibrary[] = {kCountsBlocks, "memchr",  "memcmp",  "memcpy",  "memmove", "memset",
                                         "strcat",      "strchr",  "strcmp",  "strcpy",  "strlen",  "strncat",
                                         "strncmp",     "strncpy", "strnlen", "strrchr", "strstr"};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw ConfigError(fmt::format("`{}` {}", path, why));
}

}  // namespace

std::string Program::read(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  struct stat about {};
  fstat(file, &about);
  if (!S_ISREG(about.st_mode) || static_cast<std::size_t>(about.st_size) > kProgramBytesMax) {
    close(file);
    refuse(path, "is no device program: it is not a file, or one of over 64 MiB");
  }
  std::string bytes(static_cast<std::size_t>(about.st_size), 0);
  std::size_t have = 0;
  for (ssize_t got; have < bytes.size() && (got = ::read(file, bytes.data() + have, bytes.size() - have)) > 0;)
    have += static_cast<std::size_t>(got);
  close(file);
  bytes.resize(have);
  return bytes;
}

namespace {

// A piece of the file as an array; empty where it is not all in there.
template <class T>
std::span<const T> piece(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset || offset % alignof(T)) return {};
  return {reinterpret_cast<const T*>(bytes.data() + offset), static_cast<std::size_t>(size / sizeof(T))};
}

// Whether it counts the blocks of code that it runs through.
bool check_symbols(const std::string& path, std::string_view bytes, std::span<const Elf64_Shdr> sections,
                   Program::Api functions) {
  bool counts_blocks = false;
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_DYNSYM || table.sh_link >= sections.size()) continue;
    const Elf64_Shdr& texts = sections[table.sh_link];
    const auto names = piece<char>(bytes, texts.sh_offset, texts.sh_size);
    for (const Elf64_Sym& symbol : piece<Elf64_Sym>(bytes, table.sh_offset, table.sh_size)) {
      if (symbol.st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
      if (symbol.st_name >= names.size() || names.back() != 0) refuse(path, "is damaged: a symbol without a name");
      const std::string_view name = names.data() + symbol.st_name;
      counts_blocks |= name == kCountsBlocks;
      const bool known = std::ranges::find(kLibrary, name) != std::end(kLibrary) ||
                         std::ranges::any_of(functions, [&](std::string_view api) { return name.starts_with(api); });
      if (name == "__stack_chk_fail") refuse(path, "has stack protectors: compile it with -fno-stack-protector");
      if (!known)
        refuse(path, fmt::format("needs `{}`, which a DPA has not: there are the device API and the C library's "
                                 "functions of memory and strings",
                                 name));
    }
  }
  return counts_blocks;
}

bool check_object(const std::string& path, std::string_view bytes, Program::Api functions) {
  const auto headers = piece<Elf64_Ehdr>(bytes, 0, sizeof(Elf64_Ehdr));
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      headers[0].e_ident[EI_CLASS] != ELFCLASS64 || headers[0].e_type != ET_DYN)
    refuse(path, "is no shared object");
  const Elf64_Ehdr& header = headers[0];
  if (header.e_machine == EM_RISCV)
    refuse(path, "is compiled for the DPA itself (RISC-V): compile its source with this machine's compiler");
  if (header.e_machine != kMachine) refuse(path, "is compiled for another processor");
  if (header.e_shentsize != sizeof(Elf64_Shdr)) refuse(path, "has no table of sections");
  const auto sections = piece<Elf64_Shdr>(bytes, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  if (sections.empty()) refuse(path, "has no table of sections");
  return check_symbols(path, bytes, sections, functions);
}

}  // namespace

void Program::check(const std::string& path, std::string_view bytes, Api api) { check_object(path, bytes, api); }

Program::Program(const std::string& path, std::string_view bytes, Api api)
    : name_(path.substr(path.rfind('/') + 1)), counts_blocks_(check_object(path, bytes, api)) {
  // The dynamic loader gives a file that it knows only once: a copy without a name has data of its own. The file stays
  // open because the loader knows it by this number.
  file_ = memfd_create(name_.c_str(), MFD_CLOEXEC);
  std::size_t have = 0;
  for (ssize_t put; file_ >= 0 && have < bytes.size(); have += static_cast<std::size_t>(put))
    if ((put = write(file_, bytes.data() + have, bytes.size() - have)) <= 0) break;
  handle_ =
      have == bytes.size() ? dlopen(fmt::format("/proc/self/fd/{}", file_).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle_) return;
  const char* error = have == bytes.size() ? dlerror() : std::strerror(errno);
  if (file_ >= 0) close(file_);
  refuse(path, fmt::format("cannot be loaded: {}", error));
}

Program::~Program() {
  dlclose(handle_);
  close(file_);
}

void* Program::find(const std::string& function) const { return dlsym(handle_, function.c_str()); }

std::string Program::place_of(const void* instruction) const {
  Dl_info about{};
  if (!dladdr(instruction, &about)) return "no code";
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const char*>(instruction) - static_cast<const char*>(about.dli_fbase));
  // Functions of the program that nobody can name from outside are in its file alone.
  if (fmt::format("/proc/self/fd/{}", file_) == about.dli_fname)
    if (std::string name = function_at(offset); !name.empty()) return name;
  if (!about.dli_sname) return "a function without a name";
  return fmt::format("{}+{:#x}", about.dli_sname,
                     static_cast<const char*>(instruction) - static_cast<const char*>(about.dli_saddr));
}

std::string Program::function_at(std::uint64_t offset) const {
  const std::string bytes = read(fmt::format("/proc/self/fd/{}", file_));
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  const auto sections = piece<Elf64_Shdr>(bytes, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& table : sections) {
    if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) || table.sh_link >= sections.size()) continue;
    const Elf64_Shdr& texts = sections[table.sh_link];
    const auto names = piece<char>(bytes, texts.sh_offset, texts.sh_size);
    for (const Elf64_Sym& symbol : piece<Elf64_Sym>(bytes, table.sh_offset, table.sh_size))
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < names.size() && offset >= symbol.st_value &&
          offset - symbol.st_value < symbol.st_size)
        return fmt::format("{}+{:#x}", names.data() + symbol.st_name, offset - symbol.st_value);
  }
  return "";
}

}  // namespace rocebox::nic_model::dpa
