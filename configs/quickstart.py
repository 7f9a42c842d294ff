# SPDX-License-Identifier: BSD-3-Clause
"""Replays a capture across a lossy link without and with LoWAR gateways, and sets both reports side by side.

usage: quickstart.py ROCEBOX [OPTION OF `rocebox replay`]...

ROCEBOX is the command, build/release/rocebox in the tree; quickstart.sh builds it and calls this. Options go to both replays:
  --seed N    other losses
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def replay(rocebox, name, options):
    """The report of configs/NAME; ends with the command's own status when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        done = subprocess.run([rocebox, "replay", HERE / name, *options, "--json", report], stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"rocebox replay {HERE / name} has failed", file=sys.stderr)
            sys.exit(done.returncode)
        return json.loads(report.read_text())


def kernel(report, device, name):
    return report["devices"][device]["kernels"][name]


def rows(bare, coded):
    """(what, without gateways, with gateways); an empty text where there is nothing to tell."""
    ports = [(report["devices"]["near"]["ports"]["host"], report["devices"]["far"]["ports"]["host"]) for report in (bare, coded)]
    hauls = [report["links"]["haul"] for report in (bare, coded)]
    near, far = kernel(coded, "near", "lowar")["counters"], kernel(coded, "far", "lowar")["counters"]
    sites = kernel(bare, "far", "site")["totals"], kernel(coded, "far", "site")["totals"]
    missing = [before["rx_packets"] - behind["tx_packets"] for before, behind in ports]
    yield "packets that the client sent", *(before["rx_packets"] for before, _ in ports)
    made = near["encode_repairs"] + near["encode_announcements"]
    yield "packets that its gateway added", "", f"{made} ({near['encode_repairs']} repair)"
    lost = [haul["counters"].get("forward_drop_loss", 0) for haul in hauls]
    yield "all packets lost on the link", *lost
    yield "  of the client's packets", lost[0], near["encode_packets"] - far["decode_packets"]  # without gateways: all are
    yield "rebuilt by the server's gateway", "", far.get("decode_recovered", 0)
    yield "missing where the server stands", *missing
    yield "sent again by go-back-N for these, at least", *(site["go_back_n_packets"] for site in sites)
    yield "  in how many stops of a round trip", *(site["go_backs"] for site in sites)


def table(lines):
    return "\n".join(f"{what:<46}{without!s:>14}{with_!s:>18}" for what, without, with_ in lines)


def main(rocebox, *options):
    bare, coded = replay(rocebox, "quickstart_bare.yaml", options), replay(rocebox, "quickstart.yaml", options)
    print(f"A capture of ib_write_bw (client to server: 64 KiB messages of 1024 B packets) across a link with a round trip of\n"
          f"10 ms that loses 1% of all packets; seed {coded['seed']}. LoWAR: one repair packet for at most 8 data packets.\n")
    print(table([("", "without LoWAR", "with LoWAR"), *rows(bare, coded)]))
    print("\nSent again by go-back-N: what came from each missing packet on, until its retransmission could have come, a round\n"
          "trip later. Counted on what this client had sent by then; a client that fills the link sends more meanwhile.\n"
          "Other losses: --seed N. Everything else that there is to know of both runs:\n"
          f"  {rocebox} replay configs/quickstart.yaml\n  {rocebox} replay configs/quickstart_bare.yaml")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if len(sys.argv) > 1 else sys.stderr)
        sys.exit(0 if len(sys.argv) > 1 else 2)
    main(*sys.argv[1:])
