# SPDX-License-Identifier: BSD-3-Clause
# `cpack -G DEB` in a build folder: one Debian package of all that `cmake --install` puts under a prefix. The headers are
# in it because every user may write a kernel; what compiling one takes besides is only suggested.
set(ROCEBOX_MAINTAINER "rocebox <root@localhost>" CACHE STRING "Who answers for the package: NAME <ADDRESS>")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT ${ROCEBOX_MAINTAINER})
set(CPACK_PACKAGE_VENDOR rocebox)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/permissions.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION [[
Packets of captures, or of live ports through DPDK, go through devices made of
kernels: a lossy and slow link with explicit faults, an inspector of RoCEv2
flows, and kernels of one's own as plugins.

A capture is replayed bit for bit the same every time; the same kernels run as
a bump in the wire between network interfaces, as a service if need be.]])
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS OFF)
# EAL loads drivers by name, which dpkg-shlibdeps cannot see: that of every packet pool, and those of the ports.
file(REAL_PATH ${rte_eal_path} eal_library)
string(REGEX REPLACE ".*\\.so\\.([0-9]+).*" "\\1" dpdk_abi ${eal_library})
set(CPACK_DEBIAN_PACKAGE_DEPENDS "librte-mempool-ring${dpdk_abi}, librte-bus-vdev${dpdk_abi}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "librte-meta-net")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config, dpdk-dev, bash-completion, wireshark-common, iproute2, ethtool, procps, qemu-system-x86, python3, python3-matplotlib, openmpi-bin")
include(CPack)
