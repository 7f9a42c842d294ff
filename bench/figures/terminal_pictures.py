#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of a terminal in the README, as SVG: a packet trace, and `rocebox top` over a live run with LoWAR gateways.

usage: terminal_pictures.py BUILD_FOLDER [FOLDER_FOR_RESULTS]

Writes rocebox_trace.svg and rocebox_top.svg. What is on them is what the command printed on a terminal just then.
"""
import fcntl
import html
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lowar_residual_loss import write_capture  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHARACTER, LINE, MARGIN = 7.22, 16, 14  # pixels; a monospaced font of 12 pixels is 0.602 wide
STYLES = {"1": 'font-weight="bold" fill="#ffffff"', "2": 'fill="#8b949e"', "31": 'fill="#ff7b72"', "33": 'fill="#e3b341"'}
CODE = re.compile(r"\033\[([0-9;]*)m")

# A stream at 12,500 packets a second over a link that loses 1%, without any interface; nothing in it needs a privilege.
TOP_CONFIG = """devices:
  near: {{path: host <-> lowar <-> wan, kernels: {{lowar: {{r: 32}}}}}}
  far: {{path: host <-> inspect <-> lowar <-> wan, kernels: {{lowar: {{r: 32}}}}}}
links:
  haul: {{between: [near.wan, far.wan], delay: 5ms, loss: 1%}}
ports:
  near.host: {{pcap: {{in: {capture}, pace: 0.0125x}}}}
  far.host: {{pcap: {{out: {capture}.out.pcap}}}}
pool: {{small: 16384}}
live: {{idle: pause}}
"""


def svg(command, text):
    """The command line and what it printed, with bold, dim, red and yellow as in the text, in a dark window."""
    lines = [f"\033[2m$\033[0m \033[1m{command}\033[0m", *text.rstrip("\n").split("\n")]
    columns = max(len(CODE.sub("", line)) for line in lines)
    width, height = round(columns * CHARACTER + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f'<rect width="{width}" height="{height}" rx="6" fill="#0d1117"/>',
           '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12" fill="#c9d1d9">']
    for number, line in enumerate(lines):
        spans, column, style = [], 0, ""
        parts = CODE.split(line)
        for text_part, code in zip(parts[::2], [*parts[1::2], ""]):
            if text_part:
                # Each run of text has its place and length, so that columns stay under each other in any font.
                spans.append(f'<tspan x="{MARGIN + column * CHARACTER:.1f}" textLength="{len(text_part) * CHARACTER:.1f}" '
                             f'{style}>{html.escape(text_part)}</tspan>')
            column += len(text_part)
            style = STYLES.get(code, "")
        if spans:
            out.append(f'<text y="{MARGIN + (number + 0.75) * LINE:.0f}" xml:space="preserve">{"".join(spans)}</text>')
    return "\n".join([*out, "</g>", "</svg>", ""])


def trace(rocebox):
    """What becomes of four packets, of which faults befall three."""
    words = ["replay", "configs/replay/faults.yaml", "-q", "--trace", "qpn=0x11 psn=260-264"]
    said = subprocess.run([rocebox, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return "rocebox replay configs/replay/faults.yaml -q --trace 'qpn=0x11 psn=260-264'", said


def last_frame(rocebox, instance, seconds):
    """What `rocebox top` has drawn on a terminal after that time."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 110, 0, 0))
    top = subprocess.Popen([rocebox, "top", instance], stdout=theirs, env={**os.environ, "TERM": "xterm", "NO_COLOR": ""})
    os.close(theirs)
    said, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            said += os.read(ours, 65536)
    top.send_signal(signal.SIGINT)
    top.wait()
    os.close(ours)
    frames = [frame for frame in said.decode().split("\033[H") if frame.endswith("\033[J")]
    return frames[-1].removesuffix("\033[J").replace("\033[K", "").replace("\r", "")


def top(rocebox):
    with tempfile.TemporaryDirectory() as folder:
        capture, config = pathlib.Path(folder) / "stream.pcap", pathlib.Path(folder) / "wan.yaml"
        write_capture(capture, 100_000)
        config.write_text(TOP_CONFIG.format(capture=capture))
        run = subprocess.Popen([rocebox, "run", config, "-q", "--name", "wan"], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 60
            while "wan " not in subprocess.run([rocebox, "top", "--list"], capture_output=True, text=True).stdout:
                if time.monotonic() > until or run.poll() is not None:
                    sys.exit("the live run has not begun")
                time.sleep(0.2)
            time.sleep(1)
            return "rocebox top", last_frame(rocebox, "wan", 3.5).replace(str(folder) + "/", "")
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    rocebox = pathlib.Path(sys.argv[1]).resolve() / "rocebox"
    results = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    for name, picture in (("rocebox_trace", trace), ("rocebox_top", top)):
        (results / f"{name}.svg").write_text(svg(*picture(rocebox)))


if __name__ == "__main__":
    main()
