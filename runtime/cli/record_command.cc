// SPDX-License-Identifier: BSD-3-Clause
// `rocebox trace` and `rocebox capture`: what a live run records for them comes through named pipes in its folder, and
// is written here, with the rights and in the file system of whoever asks. A command that goes away ends its recording.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <thread>

#include "runtime/capture/capture_writer.h"
#include "runtime/cli/commands.h"
#include "runtime/config/units.h"
#include "runtime/process/signals.h"
#include "runtime/telemetry/telemetry_client.h"
#include "runtime/telemetry/trace.h"

namespace rocebox::cli {
namespace {

constexpr int kPipeBytes = 1 << 20;           // as much as a user may have
constexpr std::size_t kParametersMax = 1000;  // of a command on DPDK's telemetry socket

// One file, and the pipe through which it comes.
class Stream {
 public:
  // `folder` is the run's. Throws ConfigError when the file or the pipe cannot be made.
  Stream(const std::string& path, const std::string& folder, unsigned number, const char* suffix, int stop)
      : file_(path, Waiting(Patience::kEndless, stop)),
        pipe_(fmt::format("{}/{}-{}{}", folder, getpid(), number, suffix)) {
    if (!make(folder))
      throw ConfigError(fmt::format("{}: no pipe can be made there: {}; be the user who runs it, or root", folder,
                                    std::strerror(errno)));
    fcntl(descriptor_, F_SETPIPE_SZ, kPipeBytes);
  }
  ~Stream() {
    hide();
    if (descriptor_ >= 0) close(descriptor_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // As the user named it.
  const std::string& file() const { return file_.name(); }
  const std::string& pipe() const { return pipe_; }
  // Both sides have it open: nobody else is to find it, and nothing is left behind whatever happens now.
  void hide() {
    if (!hidden_) unlink(pipe_.c_str());
    hidden_ = true;
  }
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }

  // Takes what is there.
  void pump() {
    char bytes[65536];
    for (;;) {
      const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
      if (count > 0) {
        file_.write(bytes, static_cast<std::size_t>(count));
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      const bool more_may_come = count < 0 && errno == EAGAIN;  // errno is the flush's own behind it
      if (file_.direct()) file_.flush();
      if (more_may_come) return;
      close(descriptor_);
      descriptor_ = -1;
      return;
    }
  }
  std::string failed() const { return file_.failed(); }
  void finish() {
    file_.close();
    file_.publish();
  }

 private:
  // The folder is the run's, whose user may be another than this one, and less trusted: the pipe has its mode from the
  // first, and nothing that was put in its place is touched.
  bool make(const std::string& folder) {
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) return false;
    const char* name = pipe_.c_str() + folder.size() + 1;
    const mode_t mask = umask(0);
    bool made = mkfifoat(directory, name, 0666) == 0;
    umask(mask);
    if (made) {
      descriptor_ = openat(directory, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      struct stat what {};
      made = descriptor_ >= 0 && fstat(descriptor_, &what) == 0 && S_ISFIFO(what.st_mode);
    }
    const int error = errno;
    close(directory);
    errno = error;
    return made;
  }

  OutputFile file_;
  std::string pipe_;
  int descriptor_ = -1;
  bool hidden_ = false;
};

// Text for the terminal; packets are pcapng unless the name says pcap.
const char* suffix_of(const RecordArguments& arguments, const std::string& file) {
  if (arguments.trace) return is_pcapng_name(file) ? ".pcapng" : ".txt";
  return file.ends_with(".pcap") ? ".pcap" : ".pcapng";
}

Json request_of(const RecordArguments& a, const std::deque<Stream>& streams) {
  Json request = Json::object();
  if (!a.filter.empty()) request["filter"] = a.filter;
  if (!a.ports.empty()) request["ports"] = a.ports;
  if (!a.drops.empty()) request["drops"] = a.drops;
  if (a.count) request["count"] = a.count;
  if (a.snap_bytes) request["snap_bytes"] = a.snap_bytes;
  if (!a.duration.empty()) request["duration"] = a.duration;
  for (const Stream& stream : streams) {
    request["files"].push_back(stream.pipe());
    request["names"].push_back(stream.file());
  }
  if (request.dump().size() > kParametersMax) request.erase("names");  // a list can do without them
  return request;
}

// Long text comes in pieces, which are what DPDK's telemetry holds.
std::string refusal_of(const Json& answer) {
  std::string text;
  for (const Json& piece : answer.value("refused", Json::array())) text += piece.get<std::string>();
  return text;
}

unsigned start(TelemetryClient& client, const RecordArguments& arguments, const std::deque<Stream>& streams) {
  const std::string parameters = request_of(arguments, streams).dump();
  if (parameters.size() > kParametersMax)
    throw ConfigError(fmt::format("that is too much for one command by {} bytes: give patterns, or several commands",
                                  parameters.size() - kParametersMax));
  const Json answer = client.call(arguments.trace ? "/rocebox/trace/start" : "/rocebox/capture/start", parameters);
  if (!answer.is_object()) throw std::runtime_error("this run has no traces and captures: it is of another version");
  if (const std::string why = refusal_of(answer); !why.empty()) throw ConfigError(why);
  return answer.at("id").get<unsigned>();
}

// Until the run has closed every pipe. The first signal ends the recording, and what it has recorded still comes.
void follow(std::deque<Stream>& streams, const StopRequest& ended, const std::function<void()>& ask_to_stop) {
  std::thread asker;  // the run may be waiting for room in a pipe: this thread goes on reading
  while (true) {
    std::vector<pollfd> ready{{asker.joinable() ? -1 : ended.descriptor(), POLLIN, 0}};
    bool failed = false;
    for (const Stream& stream : streams) {
      if (stream.open()) ready.push_back({stream.descriptor(), POLLIN, 0});
      failed |= !stream.failed().empty();
    }
    if (ready.size() == 1 || failed) break;
    if (poll(ready.data(), ready.size(), -1) < 0) continue;
    if (ready[0].revents) asker = std::thread(ask_to_stop);
    for (Stream& stream : streams)
      if (stream.open()) stream.pump();
  }
  if (asker.joinable()) asker.join();
}

Json row_of(TelemetryClient& client, unsigned id) {
  for (const Json& row : client.call("/rocebox/capture/list"))
    if (row.value("id", 0u) == id) return row;
  return {};
}

int print_list(TelemetryClient& client) {
  Json rows = Json::array();
  for (const Json& row : client.call("/rocebox/capture/list")) rows.push_back(row);
  if (rows.empty()) return 0;
  fmt::print("{}", report_text(Json{{"recordings", rows}}));
  return 0;
}

void check(const RecordArguments& arguments) {
  if (!arguments.filter.empty()) const TraceFilter checked(arguments.filter);
  if (!arguments.duration.empty() && config::parse_duration(arguments.duration).value_or(0) <= 0)
    throw ConfigError(fmt::format("--duration {}: write such as 10s", arguments.duration));
  if (arguments.trace && arguments.filter.empty())
    throw ConfigError("--filter is needed: such as `qpn=0x11 psn=100-120`, or `all`");
  if (!arguments.trace && arguments.ports.empty() && arguments.drops.empty())
    throw ConfigError("what is to be captured? Give --port DEVICE.PORT, or --drop REASON, such as `--drop all`");
  if (!arguments.trace && arguments.files.empty())
    throw ConfigError("-w FILE is needed; `-w -` is standard output, for `| tshark -r -`");
}

// The run knows its files, and the user of this command may write over them where the run may not.
void check_spared(TelemetryClient& client, const std::vector<std::string>& files) {
  RunFiles own;
  for (const std::string& file : files) own.writes(file, "the recording");
  check_files(own);
  const Json rows = client.call("/rocebox/files");
  if (!rows.is_array()) return;  // an older run, which does not tell
  for (const std::string& file : files)
    for (const Json& row : rows) {
      const std::string key = RunFiles::key_of(file), text = row.get<std::string>();
      if (!key.empty() && text.starts_with(key + " "))
        throw ConfigError(fmt::format("{}: is {} of the run; an output must be a file of its own", file,
                                      text.substr(key.size() + 1)));
    }
}

// What came of it, for a person.
int conclude(TelemetryClient& client, const RecordArguments& arguments, unsigned id) {
  Json row;
  try {
    row = row_of(client, id);
  } catch (const TelemetryError&) {
  }
  const char* name = arguments.trace ? "trace" : "capture";
  if (!row.is_object()) {
    fmt::print(stderr, "rocebox {}: the run is over; what came before its end is written\n", name);
    return 0;
  }
  if (row.contains("error")) throw std::runtime_error(row["error"].get<std::string>());
  fmt::print(stderr, "rocebox {}: {} {}, {} lost\n", name, row.value("written", std::uint64_t{0}),
             arguments.trace ? "events" : "packets", row.value("lost", std::uint64_t{0}));
  return 0;
}

}  // namespace

int record(const RecordArguments& arguments) {
  const bool list = arguments.list, stop = !arguments.stop.empty();
  if (!list && !stop) check(arguments);
  const RunningInstance instance = find_instance(arguments.instance);
  TelemetryClient client(instance.socket);
  if (list) return print_list(client);
  if (stop) {
    client.call("/rocebox/capture/stop", arguments.stop);
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is an error of writing
  const EndSignals signals;
  const std::string folder = std::filesystem::path(instance.socket).parent_path();
  const std::vector<std::string> files =
      arguments.trace ? trace_files(arguments.filter, arguments.files, true) : arguments.files;
  check_spared(client, files);
  std::deque<Stream> streams;
  for (const std::string& file : files)
    streams.emplace_back(file, folder, static_cast<unsigned>(streams.size()), suffix_of(arguments, file),
                         signals.asked().descriptor());
  const unsigned id = start(client, arguments, streams);
  for (Stream& stream : streams) stream.hide();
  follow(streams, signals.asked(), [&] {
    try {
      TelemetryClient(instance.socket).call("/rocebox/capture/stop", std::to_string(id));
    } catch (const TelemetryError& error) {
      tell(fmt::format("{}; once more ends this without what is still to come", error.what()));
    }
  });
  for (Stream& stream : streams) stream.finish();
  return conclude(client, arguments, id);
}

}  // namespace rocebox::cli
