// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scr/hints_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace rocebox::scr {

namespace {

static_assert(sizeof(rocebox_hints) == 64 && sizeof(rocebox_hint_row) == 32);

bool is_other(const timespec& one, const timespec& other) {
  return one.tv_sec != other.tv_sec || one.tv_nsec != other.tv_nsec;
}

}  // namespace

HintsFile::HintsFile(const std::string& path, Nanos period, Stats& stats)
    : path_(path),
      period_(period),
      missing_(stats.counter("scr_hints_missing", "looks for a file of hints that is not there, or not to be read")),
      unusable_(stats.counter("scr_hints_unusable", "looks at one that is none of hints, or too short")),
      torn_(stats.counter("scr_hints_torn", "hints that were half written, or whose check is wrong")),
      taken_(stats.counter("scr_hints_taken", "hints that were read from a file")),
      next_(path.empty() ? kNever : 0),
      rows_(path.empty() ? 0 : kHintRowsMax),
      seen_(rows_.size()) {
  hints_.reserve(rows_.size());
}

HintsFile::~HintsFile() {
  if (file_ >= 0) close(file_);
}

std::span<const HintsFile::Hint> HintsFile::look(Nanos now) {
  hints_.clear();
  if (now < next_) return {};
  next_ = now + period_;
  if (!is_open(now)) return {};
  rocebox_hints header;
  if (!read(0, sizeof header, &header) || std::memcmp(header.magic, ROCEBOX_HINTS_MAGIC, sizeof header.magic) != 0 ||
      header.version != ROCEBOX_HINTS_VERSION || header.rows == 0 || header.rows > kHintRowsMax) {
    give_up(now, unusable_);
    return {};
  }
  if (header.changes == changes_ && !is_new_) return {};
  if (!read(sizeof header, header.rows * sizeof(rocebox_hint_row), rows_.data())) {
    give_up(now, unusable_);
    return {};
  }
  changes_ = header.changes;
  take_rows(header);
  return hints_;
}

void HintsFile::take_rows(const rocebox_hints& header) {
  is_new_ = has_torn_ = false;
  for (std::uint32_t i = 0; i < header.rows; i++) {
    const rocebox_hint_row& row = rows_[i];
    if (row.sequence == 0) continue;  // nobody has written it
    // A file that was emptied and written again counts from the beginning: the same number may be of another hint.
    if (row.sequence == seen_[i].told && row.check == seen_[i].check) continue;
    const bool whole =
        row.sequence % 2 == 0 && row.zero == 0 && row.check == rocebox_hint_check(row.sequence, row.qpn, row.weight);
    if (whole) {
      seen_[i].told = row.sequence;
      seen_[i].check = row.check;
      hints_.push_back({row.qpn, row.weight});
      taken_.add();
      continue;
    }
    has_torn_ = true;
    if (seen_[i].torn == row.sequence) continue;
    seen_[i].torn = row.sequence;
    torn_.add();
  }
}

// Now and then: another file may have taken its place, or it has been written by other means than by who counts
// changes. What was torn may be whole; who finishes a row counts a change, so that no look in between is missed.
void HintsFile::check_file(Nanos now) {
  if (now < same_until_) return;
  same_until_ = now + kHintsRetry;
  struct stat named {};
  const bool is_same =
      stat(path_.c_str(), &named) == 0 && named.st_dev == about_.st_dev && named.st_ino == about_.st_ino;
  if (!is_same) {
    close(file_);
    file_ = -1;
    return;
  }
  is_new_ |= has_torn_ || is_other(named.st_mtim, about_.st_mtim) || is_other(named.st_ctim, about_.st_ctim);
  about_ = named;
}

bool HintsFile::is_open(Nanos now) {
  if (file_ >= 0) check_file(now);
  if (file_ >= 0) return true;
  if (now < retry_) return false;
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_ < 0 || fstat(file_, &about_) != 0 || !S_ISREG(about_.st_mode)) {
    give_up(now, file_ < 0 ? missing_ : unusable_);
    return false;
  }
  same_until_ = now + kHintsRetry;
  is_new_ = true;
  std::fill(seen_.begin(), seen_.end(), Seen());
  return true;
}

void HintsFile::give_up(Nanos now, Counter& why) {
  why.add();
  retry_ = now + kHintsRetry;
  if (file_ >= 0) close(file_);
  file_ = -1;
}

bool HintsFile::read(std::size_t from, std::size_t bytes, void* to) const {
  return pread(file_, to, bytes, static_cast<off_t>(from)) == static_cast<ssize_t>(bytes);
}

}  // namespace rocebox::scr
