# SPDX-License-Identifier: BSD-3-Clause
"""How a script of tests ends: with 77 when a test or a part of one could not run here, which ctest shows as skipped."""
import sys
import unittest

SKIPPED = 77


def main():
    """Runs the tests of the script that is run, and ends the process."""
    end(unittest.main(exit=False).result)


def end(result):
    """Ends the process; says of what was skipped why."""
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}", file=sys.stderr)
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
