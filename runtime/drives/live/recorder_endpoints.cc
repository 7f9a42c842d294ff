// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/recorder_endpoints.h"

#include "runtime/config/units.h"

namespace rocebox {

namespace {

// As many as an answer holds; what the run reads comes first.
constexpr std::size_t kFilesMax = 100;

// Why it was refused may be longer than the 127 bytes of a text in an answer: it comes in pieces.
Json started(Recorder& recorder, bool trace, const std::string& json) {
  constexpr std::size_t kPieceBytes = 120;
  try {
    return {{"id", recorder.start(RecordingRequest::parse(trace, json))}};
  } catch (const ConfigError& error) {
    const std::string why = error.what();
    Json pieces = Json::array();
    for (std::size_t at = 0; at < why.size(); at += kPieceBytes) pieces.push_back(why.substr(at, kPieceBytes));
    return {{"refused", pieces}};
  }
}

}  // namespace

RecorderEndpoints::RecorderEndpoints(Recorder& recorder) {
  endpoints_.add("/rocebox/trace/start", "Follows packets. Parameters: JSON object",
                 [&](const std::string& json) { return started(recorder, true, json); });
  endpoints_.add("/rocebox/capture/start", "Captures ports or drops. Parameters: JSON object",
                 [&](const std::string& json) { return started(recorder, false, json); });
  endpoints_.add("/rocebox/capture/stop", "Ends a trace or capture. Parameters: its id", [&](const std::string& text) {
    const std::optional<std::int64_t> id = config::parse_integer(text);
    if (!id || *id < 0 || *id > UINT32_MAX) throw ConfigError("the parameter is the id of a trace or capture");
    recorder.stop(static_cast<unsigned>(*id));
    return Json{{"id", *id}};
  });
  endpoints_.add("/rocebox/files", "Files that the run reads or writes: keys, and what they are",
                 [&](const std::string&) {
                   std::vector<std::string> rows = recorder.spared();
                   if (rows.size() > kFilesMax) rows.resize(kFilesMax);
                   return Json(rows);
                 });
  endpoints_.add("/rocebox/capture/list", "Traces and captures, and how far they are",
                 [&](const std::string&) { return recorder.list(); });
}

}  // namespace rocebox
