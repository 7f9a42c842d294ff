#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine with Linux's Soft-RoCE (device rxe0) on a TAP.

  vm.py start --state DIR --tap TAP --address ADDRESS/BITS [--name NAME] [--mtu BYTES] ...
  vm.py exec  --state DIR [--timeout SECONDS] -- COMMAND [WORD]...
  vm.py stop  --state DIR

DIR is the machine: a folder that `start` makes and `stop` removes. `start` returns when the machine runs commands. `exec`
passes on what the command prints, as it comes, and its exit status; 124: it took longer than --timeout, and was ended;
125: the machine did not do it. SIGTERM and SIGINT to `exec` end the command. Up to four run at a time. `stop` ends what `start` left, however that ended, and is
done when nothing is there. Other failures: 1; bad arguments: 2.
"""
import argparse
import ipaddress
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import channel  # noqa: E402
from machine import Machine, MachineError, mac_of  # noqa: E402

EXEC_FAILED = 125


def matching(pattern, what):
    def check(text):
        if not re.fullmatch(pattern, text):
            raise argparse.ArgumentTypeError(f"`{text}` is no {what}")
        return text
    return check


def address_type(text):
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is no IP address, such as 10.0.0.1/24") from None
    if "/" not in text:
        raise argparse.ArgumentTypeError(f"`{text}` lacks the length of its prefix, as in {text}/24")
    return text


def within(low, high, unit):
    def check(text):
        try:
            value = float(text) if unit == "s" else int(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"`{text}` is not from {low} to {high} {unit}")
        return value
    return check


def parse(words):
    parser = argparse.ArgumentParser(prog="vm.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    start = verbs.add_parser("start", help="boot a machine and wait until it runs commands")
    start.add_argument("--name", type=matching(r"[A-Za-z0-9_-]{1,64}", "host name"), default="vm", help="its host name")
    start.add_argument("--tap", type=matching(r"[^\s/,]{1,15}", "name of an interface"), required=True,
                       help="TAP of this network namespace: there, up, and with the MTU")
    start.add_argument("--address", type=address_type, action="append", required=True, help="ADDRESS/BITS; may be repeated")
    start.add_argument("--mac", type=matching(r"[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}", "MAC address of one host"),
                       help="default: 52:54:00 and the end of the first address")
    start.add_argument("--mtu", type=within(1280, 9000, "bytes"), default=1500,
                       help="of its interface; RoCE's MTU follows: 1500 gives 1024, 4200 gives 4096")
    start.add_argument("--memory", type=within(256, 65536, "MiB"), default=512, help="MiB of RAM (default 512)")
    start.add_argument("--accel", choices=("tcg", "kvm"), default="tcg", help="tcg, the default, runs everywhere")
    start.add_argument("--image", type=pathlib.Path, help="what build_image.sh printed; default: it is run")
    start.add_argument("--wait", type=within(0, 3600, "s"), default=120, help="seconds to wait (default 120); 0: do not")
    execute = verbs.add_parser("exec", help="run a command in the machine")
    execute.add_argument("--timeout", type=within(0.1, 86400, "s"), default=60, help="seconds (default 60)")
    execute.add_argument("command", nargs="+", help="a program and its arguments; sh -c '...' for more")
    stop = verbs.add_parser("stop", help="end the machine and remove DIR")
    for verb in (start, execute, stop):
        verb.add_argument("--state", type=pathlib.Path, required=True, help="the folder that is the machine")
    return parser.parse_args(words)


def find_image(image):
    if image is None:
        script = pathlib.Path(__file__).resolve().parent / "build_image.sh"  # where it is installed, it is no program
        built = subprocess.run(["bash", script], stdout=subprocess.PIPE, text=True)
        if built.returncode != 0:
            raise MachineError("no image: see above")
        image = pathlib.Path(built.stdout.strip())
    if not (image / "vmlinux").is_file() or not (image / "initramfs.cpio").is_file():
        raise MachineError(f"no vmlinux and initramfs.cpio in {image}: build_image.sh makes them and prints where")
    return image.absolute()


def start(arguments):
    machine = Machine(arguments.state)
    machine.start(arguments.name, find_image(arguments.image), arguments.tap, arguments.address,
                  arguments.mac or mac_of(arguments.address[0]), arguments.mtu, arguments.memory, arguments.accel)
    if not arguments.wait:
        return 0
    try:
        machine.open_channel(arguments.wait).close()
    except BaseException:
        machine.stop()
        raise
    return 0


def execute(arguments):
    machine = Machine(arguments.state)
    if not machine.running() and machine.identity():
        raise MachineError(f"the machine of {arguments.state} ended; it said last:\n{machine.why_ended()}")
    if not machine.running():
        raise MachineError(f"no machine runs in {arguments.state}: vm.py start --state {arguments.state} ...")
    opened = machine.open_channel(arguments.timeout)
    try:
        tag = channel.start(opened, arguments.command, arguments.timeout)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: machine.end_command(tag))
        return opened.follow(tag, arguments.timeout + 10, sys.stdout.buffer, sys.stderr.buffer)
    except (channel.ChannelError, OSError) as problem:
        raise MachineError(f"{problem}; it said last:\n{machine.why_ended()}") from None
    finally:
        opened.close()


def stop(arguments):
    Machine(arguments.state).stop()
    return 0


def main():
    arguments = parse(sys.argv[1:])
    try:
        return {"start": start, "exec": execute, "stop": stop}[arguments.verb](arguments)
    except (MachineError, OSError) as error:
        print(f"vm.py: {error}", file=sys.stderr)
        return EXEC_FAILED if arguments.verb == "exec" else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
