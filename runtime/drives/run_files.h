// SPDX-License-Identifier: BSD-3-Clause
// RunFiles: every file that a run reads or writes, in one place, so that no output destroys what the run is made from.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rocebox {

/// What a run writes beside the captures of its configuration.
struct ExtraOutputs {
  std::vector<std::string> traces;  ///< .pcapng gets packets with comments, other names text; `-`: standard output
  std::string json;                 ///< the report; empty: none, `-`: standard output
  bool text_to_stdout = false;      ///< the caller prints text on standard output when the run is done
  int stop = -1;                    ///< readable when the run is to end: nobody waits for readers then, see Waiting
};

/// Files are told apart by what they are, not by their names: links of either kind and other spellings are one file.
class RunFiles {
 public:
  RunFiles() = default;
  /// What a configuration reads (itself, pipelines, plugins, captures) and writes (captures, those of drivers too).
  explicit RunFiles(const config::RunConfig& config);

  /// `what` is what the file is to the run, for messages: "the configuration". An empty path is none.
  /// `packets`: of a capture, which several ports may share.
  void reads(const std::string& path, const std::string& what, bool packets = false);
  void writes(const std::string& path, const std::string& what);
  /// What another program writes.
  void others_write(const std::string& path, const std::string& what);
  /// A text for people, which may follow others on standard output.
  void writes_text(const std::string& path, const std::string& what);
  void writes(const ExtraOutputs& extra);
  /// Files that a text in DPDK's words has its driver for captures read and write: `net_pcap0,tx_pcap=FILE`.
  void add_devargs(const std::string& text);
  /// All that another run has; `of`, such as "of appliance `x`", stands behind what they are.
  void add(const RunFiles& others, const std::string& of);
  /// What the same run has from now on; files that are known already are not added again.
  void merge(const RunFiles& later);

  /// Throws ConfigError with every output that is an input, another output, or has a name that no output can have, and
  /// with streams that two would read.
  void check() const;
  /// What `path` would destroy if something else wrote it: "the configuration"; empty: nothing.
  std::string what_is(const std::string& path) const;

  /// Files beside the outputs that runs which were killed left, one line for each.
  std::vector<std::string> left_behind() const;

  /// For another process, which must not write to them: key_of() and what it is, with a space between.
  std::vector<std::string> rows() const;
  /// A short key, equal for two names of one file. Empty for what several may write, as devices.
  static std::string key_of(const std::string& path);

 private:
  struct Use {
    std::string key, path, what;
    bool output = true;
    bool plain_text = false;  // on standard output, which other text may share
    bool capture = false;     // of a port: ports share a file
    bool ours = true;
    bool packets = false;  // see reads()
    bool stream = false;   // an input that is open already: what is read from it is gone
    // Another file may stand under that name by now; neither may be harmed.
    std::vector<std::string> keys() const;
  };
  void add(Use use);
  std::string read_twice(std::size_t number) const;
  static std::string shown(const Use& use);
  std::vector<Use> uses_;
};

}  // namespace rocebox
