// SPDX-License-Identifier: BSD-3-Clause
// Workload `sdr_messages`: a stream of messages from one host to another over SDR, with a reliability layer of choice.
#pragma once
#include "runtime/component/component.h"

namespace rocebox {
Component sdr_messages_workload();
}
