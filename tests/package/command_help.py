# SPDX-License-Identifier: BSD-3-Clause
"""What `rocebox --help` and `rocebox COMMAND --help` list."""
import functools
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROCEBOX = os.environ.get("ROCEBOX", str(ROOT / "build" / "release" / "rocebox"))


@functools.cache
def help_text(command=""):
    return subprocess.run([ROCEBOX, *command.split(), "--help"], check=True, capture_output=True, text=True).stdout


def section(command, title):
    found = re.search(rf"^{title}:\n((?: +.*\n)+)", help_text(command), re.M)
    return found.group(1) if found else ""


def commands(within=""):
    """Every command; one with commands of its own as `lab up`."""
    names = []
    for name in re.findall(r"^  ([a-z][a-z0-9-]*)", section(within, "Subcommands"), re.M):
        full = f"{within} {name}".strip()
        names += commands(full) or [full]
    return names


def options(command=""):
    return re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", section(command, "Options"), re.M)


def values(command):
    """The options that take a value, with its name there: {"--json": "FILE"}."""
    return dict(re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+) (\S+)", section(command, "Options"), re.M))
