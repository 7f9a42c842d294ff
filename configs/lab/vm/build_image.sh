#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes what vm.py boots: a Debian kernel with Soft-RoCE, and an initramfs with this machine's rdma-core and perftest, and
# with the programs of guest/ where they can be compiled.
#   build_image.sh [--kernel-package FILE.deb] [FOLDER]
# The kernel package is downloaded by apt and unpacked, not installed; nothing needs root. FOLDER (default:
# $ROCEBOX_VM_IMAGES, or else rocebox/vm in $XDG_CACHE_HOME or ~/.cache) keeps images by a hash of all that goes into
# them, the two used last. Prints the folder of the image, which holds `vmlinux` and `initramfs.cpio`. Exit status: 0 done, 1
# failed, 2 bad arguments, 77 what it takes is not here; the reason is on standard error.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)

say() { echo "build_image.sh: $*" >&2; }
lacking() { say "$*"; exit 77; }

# virtio to be a machine, rdma_rxe to be an RNIC; crc32 is what rdma_rxe asks the kernel's crypto for.
modules=(virtio_pci virtio_net virtio_console rdma_rxe ib_uverbs rdma_ucm ib_umad crc32_generic crc32_pclmul af_packet)
programs=(dash busybox kmod timeout ip rdma ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong
          ibv_srq_pingpong ib_write_bw ib_read_bw ib_send_bw ib_atomic_bw ib_write_lat ib_read_lat ib_send_lat
          ib_atomic_lat rping ucmatose udaddy)
own_programs=(verbs_check allgather_rank)  # in guest/, for tests/interop
programs_if_here=(ethtool tc udpong mckey cmtime rdma_client rdma_server tcpdump)
packages='qemu-system-x86 busybox-static cpio kmod iproute2 rdma-core ibverbs-providers ibverbs-utils perftest rdmacm-utils'

read_arguments() {
  kernel_package=''
  folder=${ROCEBOX_VM_IMAGES:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rocebox/vm}
  if [ "${1:-}" = --kernel-package ]; then
    [ -f "${2:-}" ] || { say "--kernel-package: no file \`${2:-}\`"; exit 2; }
    kernel_package=$(realpath "$2")
    shift 2
  fi
  case "${1:-}" in -*) say "unknown option \`$1\`"; exit 2 ;; esac
  [ $# -le 1 ] || { say "one folder at most, not \`$*\`"; exit 2; }
  folder=${1:-$folder}
}

# Sets `files` to the programs and `libraries` to what they and Soft-RoCE's provider load.
find_programs() {
  local name missing=()
  files=()
  for name in cpio python3 dpkg-deb sha256sum flock ldd; do
    command -v "$name" >/dev/null || missing+=("$name")
  done
  export PATH=$PATH:/usr/sbin:/sbin
  for name in "${programs[@]}"; do
    if command -v "$name" >/dev/null; then files+=("$(command -v "$name")"); else missing+=("$name"); fi
  done
  provider=$(ls /usr/lib/*/libibverbs/librxe-rdmav*.so 2>/dev/null | tail -n 1 || true)
  [ -n "$provider" ] || missing+=(librxe-rdmav.so)
  [ ${#missing[@]} -eq 0 ] || lacking "not here: ${missing[*]}; apt-get install $packages"
  ldd "$(command -v busybox)" >/dev/null 2>&1 && lacking "busybox is not the static one; apt-get install busybox-static"
  for name in "${programs_if_here[@]}"; do
    if command -v "$name" >/dev/null; then files+=("$(command -v "$name")"); fi
  done
  # libgcc_s is loaded by name when a thread is cancelled, as rdma-core's tools do.
  mapfile -t libraries < <({ ldd "${files[@]}" "$provider" 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | grep -v ':$'
                             ls /lib/*/libgcc_s.so.1; } | sort -u)
}

# Sets `kernel_id`, by which the cache knows the kernel, and `kernel_name` and `kernel_version` of what apt offers.
find_kernel() {
  if [ -n "$kernel_package" ]; then
    kernel_id=$(sha256sum <"$kernel_package")
    return
  fi
  kernel_name='' kernel_version=''
  read -r kernel_name kernel_version < <(apt-cache show --no-all-versions linux-image-amd64 2>/dev/null |
    sed -n 's/^Depends:.*\(linux-image-[^ ,]*\) (= \([^)]*\)).*/\1 \2/p') || true
  if [ -z "$kernel_name" ]; then
    kernel_package=$(ls -t "$folder"/linux-image-*.deb 2>/dev/null | head -n 1 || true)
    [ -n "$kernel_package" ] || lacking "apt knows no package linux-image-amd64: \`apt-get update\` first, or give" \
                                        "Debian's kernel package with --kernel-package"
    kernel_name=$(dpkg-deb -f "$kernel_package" Package)
    kernel_version=$(dpkg-deb -f "$kernel_package" Version)
    say "apt knows no package linux-image-amd64; the one downloaded before is used: $kernel_package"
  fi
  kernel_id="$kernel_name $kernel_version"
}

# Sets `headers` to where RDMA CM's C headers are: this machine's, or those of Debian's package, downloaded once and unpacked.
# Empty: the image is made without own_programs; `headers_why` says what is not here.
find_headers() {
  local room=$folder/download.$$ package
  headers='' headers_why=''
  if ! command -v cc >/dev/null || [ ! -f /usr/include/infiniband/verbs.h ]; then
    headers_why='not here: a C compiler or infiniband/verbs.h; apt-get install gcc libc6-dev libibverbs-dev'
  elif [ -f /usr/include/rdma/rdma_cma.h ]; then
    headers=/usr/include
  elif [ -f "$folder/librdmacm-dev/usr/include/rdma/rdma_cma.h" ]; then
    headers=$folder/librdmacm-dev/usr/include
  else
    mkdir -p "$room"
    if (cd "$room" && apt-get download -qq -o APT::Sandbox::User=root librdmacm-dev >/dev/null 2>&1); then
      package=$(echo "$room"/*.deb)
      dpkg-deb -x "$package" "$folder/librdmacm-dev"
      headers=$folder/librdmacm-dev/usr/include
    else
      headers_why='not here: rdma/rdma_cma.h; apt-get install librdmacm-dev'
    fi
    rm -rf "$room"
  fi
}

# The kernel package, downloaded once. Package lists may be older than the archive: then they are read anew.
fetch_kernel() {
  [ -z "$kernel_package" ] || return 0
  kernel_package=$folder/${kernel_name}_${kernel_version//:/%3a}_amd64.deb
  [ ! -f "$kernel_package" ] || return 0
  local room=$folder/download.$$ said
  mkdir -p "$room"
  say "downloading $kernel_name $kernel_version (about 70 MB)"
  if ! said=$(cd "$room" && apt-get download -qq -o APT::Sandbox::User=root "$kernel_name=$kernel_version" 2>&1); then
    rm -rf "$room"
    lacking "the kernel package cannot be downloaded: $(head -n 3 <<<"$said" | tr '\n' ' '); \`apt-get update\` first if" \
            "its version is gone, or give the package with --kernel-package"
  fi
  rm -f "$folder"/linux-image-*.deb
  mv "$room"/*.deb "$kernel_package"
  rmdir "$room"
}

# QEMU starts an uncompressed kernel at once; in a machine without KVM, unpacking it takes seconds of every boot.
unpack_kernel() {
  python3 - "$1" "$2" <<'PYTHON'
import lzma
import sys
packed = open(sys.argv[1], "rb").read()
start = packed.find(b"\xfd7zXZ\0")
kernel = lzma.LZMADecompressor().decompress(packed[start:]) if start >= 0 else packed
if start >= 0 and kernel[:4] != b"\x7fELF":
    sys.exit("no ELF file in " + sys.argv[1])
open(sys.argv[2], "wb").write(kernel)
PYTHON
}

# The modules, each with those it depends on, as modprobe says.
copy_modules() {
  local root=$1 tree=$2 release=$3 module path
  depmod -b "$tree" "$release"
  for module in "${modules[@]}"; do
    modprobe -d "$tree" -S "$release" --show-depends "$module"
  done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r path; do
    install -D -m 644 "$path" "$root/lib/modules/$release/${path#*/lib/modules/"$release"/}"
  done
  cp "$tree/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$release/"
  depmod -b "$root" "$release"
}

make_root() {
  local root=$1 file name
  mkdir -p "$root"/{bin,sbin,usr/bin,proc,sys,dev,tmp,run,root,lib,lib64,etc/libibverbs.d}
  for name in $(busybox --list); do ln -s busybox "$root/bin/$name"; done
  for file in "${files[@]}"; do
    rm -f "$root/bin/$(basename "$file")"
    cp -L "$file" "$root/bin/"
  done
  ln -sf dash "$root/bin/sh"  # busybox's shell would run its own `ip` and `timeout` whatever PATH says
  for name in modprobe insmod rmmod lsmod; do ln -sf kmod "$root/bin/$name"; done
  for name in modprobe poweroff; do ln -sf "../bin/$name" "$root/sbin/$name"; done
  for file in "${libraries[@]}" "$provider"; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  done
  echo 'driver rxe' >"$root/etc/libibverbs.d/rxe.driver"
  echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
  echo 'root:x:0:' >"$root/etc/group"
  echo 'hosts: files' >"$root/etc/nsswitch.conf"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
  printf '%s\n' "${modules[@]}" >"$root/etc/modules"
  install -m 755 "$here/guest/init" "$here/guest/agent" "$root/"
  if [ -n "$headers" ]; then
    for name in "${own_programs[@]}"; do
      cc -O2 -o "$root/bin/$name" -I "$headers" "$here/guest/$name.c" -libverbs -l:librdmacm.so.1
    done
  else
    say "the image is made without ${own_programs[*]}; $headers_why"
  fi
}

build() {
  local target=$1 room=$folder/making.$$
  trap 'rm -rf "$folder/making.$$" "$folder/download.$$"' EXIT
  fetch_kernel
  mkdir -p "$room/image"
  dpkg-deb -x "$kernel_package" "$room/kernel"
  local releases=("$room"/kernel/lib/modules/*)
  local release
  release=$(basename "${releases[0]}")
  [ -n "$(find "$room/kernel" -name 'rdma_rxe.ko*' -print -quit)" ] ||
    { say "$kernel_package has no rdma_rxe; Debian's linux-image-amd64 has it, its cloud kernels do not"; exit 1; }
  unpack_kernel "$room/kernel/boot/vmlinuz-$release" "$room/image/vmlinux"
  make_root "$room/root"
  copy_modules "$room/root" "$room/kernel" "$release"
  find "$room/root" -exec touch -h -d @0 {} +
  (cd "$room/root" && find . -print0 | sort -z | cpio --null --create --format=newc --owner=0:0 --reproducible --quiet) \
    >"$room/image/initramfs.cpio"
  mv "$room/image" "$target"
}

[ "$(uname -m)" = x86_64 ] || lacking "images are made of Debian's amd64 packages, and this machine is $(uname -m)"
read_arguments "$@"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
exec 9>"$folder/lock"
flock 9
find_programs
find_kernel
find_headers
key=$({ echo "$kernel_id${headers:+, with verbs_check}"
        sha256sum "$0" "$here"/guest/* "${files[@]}" "${libraries[@]}" "$provider" | cut -d ' ' -f 1; } |
      sha256sum | cut -c 1-16)
image=$folder/image-$key
[ -d "$image" ] || build "$image"
touch "$image"
ls -dt "$folder"/image-* | tail -n +3 | while read -r old; do rm -rf "$old"; done
echo "$image"
