// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/process/kept_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace rocebox {

KeptOutput::KeptOutput(int descriptor) : descriptor_(descriptor), kept_(memfd_create("kept_output", MFD_CLOEXEC)) {
  std::fflush(nullptr);
  if (kept_ >= 0) original_ = dup(descriptor_);
  if (original_ >= 0) dup2(kept_, descriptor_);
}

KeptOutput::~KeptOutput() {
  std::fflush(nullptr);
  if (original_ >= 0) {
    dup2(original_, descriptor_);
    close(original_);
  }
  if (kept_ >= 0) close(kept_);
}

std::string KeptOutput::text() {
  std::fflush(nullptr);
  std::string text;
  char buffer[4096];
  for (ssize_t got; kept_ >= 0 && (got = pread(kept_, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

}  // namespace rocebox
