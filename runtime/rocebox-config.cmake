# SPDX-License-Identifier: BSD-3-Clause
# find_package(rocebox): the target rocebox::plugin has what a kernel plugin is compiled with.
#   add_library(my_kernel MODULE my_kernel.cc)
#   target_link_libraries(my_kernel PRIVATE rocebox::plugin)
# A plugin links to nothing: the symbols that it uses are those of the `rocebox` that loads it.
find_package(PkgConfig REQUIRED)
pkg_check_modules(ROCEBOX_DPDK REQUIRED libdpdk)
get_filename_component(ROCEBOX_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET rocebox::plugin)
  add_library(rocebox::plugin INTERFACE IMPORTED)
  target_compile_features(rocebox::plugin INTERFACE cxx_std_20)
  target_compile_options(rocebox::plugin INTERFACE ${ROCEBOX_DPDK_CFLAGS_OTHER})
  target_include_directories(rocebox::plugin INTERFACE "${ROCEBOX_PREFIX}/include/rocebox")
  foreach(flag ${ROCEBOX_DPDK_CFLAGS})
    if(flag MATCHES "^-I(.*)")
      target_include_directories(rocebox::plugin SYSTEM INTERFACE ${CMAKE_MATCH_1})
    endif()
  endforeach()
endif()
