// SPDX-License-Identifier: BSD-3-Clause
// Recording: one trace or capture of a live run, from what the user asks to the files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/drives/live/live.h"
#include "runtime/drives/live/tap.h"
#include "runtime/drives/tracer.h"

namespace rocebox {

/// What a user asks for: a trace, which follows packets through all stages, or a capture, which takes the packets of
/// some ports or those that are dropped for some reasons.
struct RecordingRequest {
  bool trace = false;
  std::string filter;              ///< a TraceFilter; empty: all packets
  std::vector<std::string> ports;  ///< of a capture: DEVICE.PORT, with `:rx` or `:tx` for one direction
  std::vector<std::string> drops;  ///< of a capture: reasons as reports name them, with * and ?; `all`
  std::vector<std::string> files;  ///< .pcapng: packets with comments; .pcap: packets; other names: text
  std::vector<std::string> names;  ///< what lists call the files when those are pipes; empty: by their own names
  std::uint64_t count = 0;         ///< ends after so many packets of a capture, or events of a trace; 0: no limit
  std::uint32_t snap_bytes = 0;    ///< keeps so many bytes of each packet; 0: all
  Nanos duration = 0;              ///< ends after this time; 0: no limit
  bool of_command_line = false;    ///< the run's own, whose files are among those of the run
  int stop = -1;                   ///< readable when the run is to end: nobody waits for readers then, see Waiting

  /// From the members "filter", "ports", "drops", "files", "names", "count", "snap_bytes", "duration" (as text). Throws
  /// ConfigError.
  static RecordingRequest parse(bool trace, const std::string& json);
};

/// Everything but selection() is for one thread at a time.
class Recording {
 public:
  /// Finds what is meant and opens the files; nothing is recorded yet. Throws ConfigError.
  Recording(unsigned id, RecordingRequest request, const config::RunConfig& config, Live& live);

  unsigned id() const { return id_; }
  const RecordingRequest& request() const { return request_; }
  /// What is taken of a device by a shard; null: nothing.
  const Selection* selection(unsigned shard, unsigned device) const;

  void write(unsigned shard, const Record& record, const std::byte* held);
  /// So that a reader who waits for it sees what was written.
  void flush_direct();
  /// Whether it is to end by itself: count or duration reached, a file that cannot be written.
  bool due(Nanos now);
  /// Completes the files; `lost` is what was recorded and had no room. Errors are told by error().
  void finish(std::uint64_t lost);

  const std::string& error() const { return error_; }
  /// For lists: id, what it is, how far it has got. `lost` as of now.
  Json row(std::string_view state, std::uint64_t lost) const;

 private:
  void select_ports(const config::RunConfig& config);
  void select_drops();
  void name_interfaces();
  unsigned interface_of(const Record& record) const;
  std::string what() const;

  unsigned id_;
  RecordingRequest request_;
  const Clock& clock_;
  std::vector<Shard*> shards_;
  std::optional<TraceFilter> filter_;
  std::vector<std::vector<Selection>> selections_;      // by shard, by device
  std::vector<std::string> interfaces_;                 // of the captures' files
  std::vector<std::vector<unsigned>> interface_table_;  // by device, by port and then the device itself
  std::optional<TraceOutput> output_;
  Nanos until_ = 0;  // 0: not limited
  std::uint64_t written_ = 0;
  std::string error_;
};

}  // namespace rocebox
