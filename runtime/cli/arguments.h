// SPDX-License-Identifier: BSD-3-Clause
// The command line as it is declared to its parser.
#pragma once
#include "runtime/cli/commands.h"

namespace rocebox::cli {

/// The arguments of every command.
struct Arguments {
  ReplayArguments replay;
  SimArguments sim;
  RunArguments run;
  CheckArguments check;
  LabArguments lab;
  KernelsArguments kernels;
  ModelArguments model;
  TopArguments top;
  ReloadArguments reload;
  RecordArguments trace, capture;
};

/// Has the parser know every command with its options; parsing fills `arguments`, which must live as long.
void declare_commands(CLI::App& app, Arguments& arguments);

}  // namespace rocebox::cli
