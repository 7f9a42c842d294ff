// SPDX-License-Identifier: BSD-3-Clause
// RecorderEndpoints: traces and captures of a live run, started and ended over DPDK's telemetry socket.
#pragma once
#include "runtime/drives/live/recorder.h"
#include "runtime/telemetry/endpoints.h"

namespace rocebox {

/// /rocebox/trace/start and /rocebox/capture/start with a JSON object (see RecordingRequest::parse), which answer with
/// the number; /rocebox/capture/stop with that number, for both; /rocebox/capture/list.
class RecorderEndpoints {
 public:
  explicit RecorderEndpoints(Recorder& recorder);

 private:
  Endpoints endpoints_;
};

}  // namespace rocebox
