// SPDX-License-Identifier: BSD-3-Clause
// Huge pages for memory that is in use already: transparent ones, which need no reservation and no right.
#pragma once

namespace rocebox {

/// Large blocks of malloc have pages of their own from now on, so that its heap stays as dense as what is small.
void keep_large_blocks_apart();
/// Puts what malloc has from its heap into huge pages, where a quarter of one is in use and the kernel has some (Linux
/// 6.1); else nothing changes. It takes the time of copying it.
void use_huge_pages_for_heap();

}  // namespace rocebox
