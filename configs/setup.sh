#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced by quickstart.sh and tests/run.sh: installs the Debian packages that are missing.
#   need PACKAGE...
need() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these packages are missing and there is no sudo: ${missing[*]}" >&2; return 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What building the command takes; zlib and zstd unpack captures, most of which are stored packed.
build_packages=(g++ cmake ninja-build pkg-config dpdk-dev libpcap-dev libisal-dev libxxhash-dev libibverbs-dev
                zlib1g-dev libzstd-dev libyaml-cpp-dev libfmt-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev libboost-context-dev)
# What the tests take besides: independent judges of the wire, sanitizer run-times, fuzzing, formatting, virtual machines, and what
# single options of the command need: figures of `--plot`, sweeps under `mpirun`.
test_packages=(libgtest-dev libbenchmark-dev tshark python3 python3-scapy python3-jsonschema python3-yaml clang
               clang-format libclang-rt-14-dev git iproute2 procps iputils-ping iperf3 ethtool man-db groff-base systemd
               dpkg-dev file qemu-system-x86 busybox-static cpio kmod rdma-core ibverbs-providers ibverbs-utils perftest
               rdmacm-utils python3-prometheus-client dpdk python3-matplotlib openmpi-bin)
