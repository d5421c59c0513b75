/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: the linker's build id and properties, and the record that FRIT_DEFINE_PLUGIN writes.  What
 * a note says is checked again against the welcome once the plugin is loaded. */
#include "load/elf_note.h"

#include <stdio.h>
#include <string.h>

#include "load/elf.h"
#include "load/elf_file.h"

/* A table of notes that is longer is read this far. */
enum { NOTE_BYTES = 65536, NAME_BYTES = 8, FRIT_TYPE = 1 };

/* What lies at `at` of a segment of notes. */
struct note {
    Elf64_Nhdr header;
    uint64_t name, desc, next; /* offsets in the file */
};

static uint64_t align_up(uint64_t offset, uint64_t align)
{
    return (offset + align - 1) / align * align;
}

static bool note_at(const struct elf_file *file, uint64_t at, uint64_t end, uint64_t align,
                    struct note *out)
{
    if (end - at < sizeof(out->header) ||
        !elf_file_read(file, at, &out->header, sizeof(out->header)))
        return false;
    out->name = at + sizeof(out->header);
    out->desc = at + align_up(sizeof(out->header) + out->header.n_namesz, align);
    out->next = out->desc + align_up(out->header.n_descsz, align);
    return true;
}

static bool is_whole(const struct note *note, uint64_t end)
{
    return note->desc <= end && note->header.n_descsz <= end - note->desc;
}

static bool is_named(const struct elf_file *file, const struct note *note, const char *name)
{
    char found[NAME_BYTES] = {0};

    return note->header.n_namesz == strlen(name) + 1 &&
           elf_file_read(file, note->name, found, note->header.n_namesz) &&
           strcmp(found, name) == 0;
}

static void read_build_id(const struct elf_file *file, const struct note *note,
                          struct elf_identity *out)
{
    unsigned char bytes[ELF_BUILD_ID];
    size_t n = note->header.n_descsz < ELF_BUILD_ID ? note->header.n_descsz : ELF_BUILD_ID;

    if (!elf_file_read(file, note->desc, bytes, n))
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(out->build_id + 2 * i, 3, "%02x", bytes[i]);
}

/* Of x86: what code was compiled for, which counts only if all of the object was. */
static void read_properties(const struct elf_file *file, const struct note *note,
                            struct elf_facts *out)
{
    const uint64_t end = note->desc + note->header.n_descsz;
    struct {
        uint32_t type, bytes, value;
    } property;

    for (uint64_t at = note->desc; at < end && end - at >= sizeof(property);
         at += align_up(8 + (uint64_t)property.bytes, 8)) {
        if (!elf_file_read(file, at, &property, sizeof(property)))
            return;
        if (property.type != GNU_PROPERTY_X86_FEATURE_1_AND)
            continue;
        out->guards_branches = property.value & GNU_PROPERTY_X86_FEATURE_1_IBT;
        out->guards_returns = property.value & GNU_PROPERTY_X86_FEATURE_1_SHSTK;
    }
}

static bool is_text(const char *bytes, size_t size)
{
    size_t n = 0;

    while (n < size && bytes[n] >= ' ' && bytes[n] <= '~')
        n++;
    return n < size && bytes[n] == '\0';
}

/* A shorter record is an older one, a longer one newer: the fields of this version count. */
static const char *read_record(const struct elf_file *file, const struct note *note,
                               struct elf_facts *out)
{
    size_t n =
        note->header.n_descsz < sizeof(out->note) ? note->header.n_descsz : sizeof(out->note);

    if (out->has_note)
        return "has two notes of Frit";
    if (n < offsetof(frit_note, id) || !elf_file_read(file, note->desc, &out->note, n))
        return "has a note of Frit that is cut off";
    if (out->note.record_size > note->header.n_descsz || out->note.record_size < n)
        return "has a note of Frit whose size is not that of its record";
    if (!is_text(out->note.id, sizeof(out->note.id)) ||
        !is_text(out->note.version, sizeof(out->note.version)) ||
        !is_text(out->note.runtimes, sizeof(out->note.runtimes)))
        return "has a note of Frit whose texts are not terminated printable ASCII";
    out->has_note = true;
    return NULL;
}

static const char *read_segment(const struct elf_file *file, const Elf64_Phdr *segment,
                                struct elf_facts *out)
{
    const uint64_t align = segment->p_align == 8 ? 8 : 4;
    const uint64_t bytes = segment->p_filesz < NOTE_BYTES ? segment->p_filesz : NOTE_BYTES;
    const uint64_t end = segment->p_offset + bytes;
    struct note note;

    for (uint64_t at = segment->p_offset; at < end; at = note.next) {
        if (!note_at(file, at, end, align, &note))
            return NULL;
        if (!is_whole(&note, end)) /* others' notes may be of any kind */
            return is_named(file, &note, "FRIT") ? "has a note of Frit that is cut off" : NULL;
        if (note.header.n_type == NT_GNU_BUILD_ID && is_named(file, &note, ELF_NOTE_GNU))
            read_build_id(file, &note, &out->identity);
        if (note.header.n_type == NT_GNU_PROPERTY_TYPE_0 && is_named(file, &note, ELF_NOTE_GNU))
            read_properties(file, &note, out);
        if (note.header.n_type == FRIT_TYPE && is_named(file, &note, "FRIT")) {
            const char *trouble = read_record(file, &note, out);

            if (trouble)
                return trouble;
        }
    }
    return NULL;
}

const char *elf_read_notes(const struct elf_file *file, struct elf_facts *out)
{
    for (uint32_t i = 0; i < file->n_segments; i++) {
        const char *trouble = NULL;

        if (file->segment[i].p_type == PT_NOTE)
            trouble = read_segment(file, &file->segment[i], out);
        if (trouble)
            return trouble;
    }
    return NULL;
}
