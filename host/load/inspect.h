/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file may be loaded at all, from what it says of itself. */
#ifndef LOAD_INSPECT_H
#define LOAD_INSPECT_H

#include <stddef.h>

#include <frit/status.h>

struct elf_facts;
struct plugin;

/* Refuses the plugin where its file's facts forbid to load it.  A file without a note passes. */
frit_status inspect_file(struct plugin *plugin, const struct elf_facts *facts);
/* Refuses the plugin unless the range of versions meets the host's and the sanitizers are the same.
 */
frit_status inspect_abi(struct plugin *plugin, uint32_t abi_min, uint32_t abi_max,
                        uint32_t sanitizer);

/* "the address sanitizer" and so on. */
const char *inspect_sanitizer_name(uint32_t sanitizer);
/* The sets of instructions in `isa` of a note, separated by blanks. */
void inspect_isa_text(const uint32_t words[4], char *text, size_t size);

#endif
