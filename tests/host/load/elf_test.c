/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are not plugins: each kind has its reason, none is opened in a way that hangs, and a
 * cut plugin is refused before the dynamic loader maps it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/load/rig.h"
#include "load/device.h"
#include "load/elf.h"
#include "load/reason.h"

static const char *place(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", rig_dir(), name);
    return path;
}

/* Loads the file as the library of a section and checks what is said. */
static void expect(const char *path, uint32_t reason, const char *words)
{
    struct rig rig;
    const frit_setting settings[] = {{"plugin.wanted", "library", path}, {NULL, NULL, NULL}};
    const struct plugin *plugin;

    assert_int_equal(rig_open(&rig, settings), FRIT_OK);
    assert_int_equal(registry_n_plugins(rig.registry), 1);
    plugin = registry_plugin_at(rig.registry, 0);
    assert_string_equal(reason_name(plugin->reason), reason_name(reason));
    rig_contains(plugin->detail, words);
    rig_contains(rig_log(), reason_name(reason));
    assert_int_equal(registry_n_devices(rig.registry), 0);
    rig_close(&rig);
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void expect_bytes(const void *bytes, size_t count, const char *words)
{
    const char *path = place("file.so");

    write_file(path, bytes, count);
    expect(path, FRIT_REASON_NOT_ELF, words);
    assert_int_equal(unlink(path), 0);
}

static void nothing_there(void **state)
{
    (void)state;
    expect(place("missing.so"), FRIT_REASON_NOT_FOUND, "missing.so");
    expect(place("no/such/dir.so"), FRIT_REASON_NOT_FOUND, "No such file");
}

static void not_regular_files(void **state)
{
    const char *path = place("pipe.so");

    (void)state;
    expect(rig_dir(), FRIT_REASON_NOT_A_FILE, rig_dir());
    expect("/dev/null", FRIT_REASON_NOT_A_FILE, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(path, FRIT_REASON_NOT_A_FILE, "not a regular file");
    assert_int_equal(unlink(path), 0);
}

static void not_elf(void **state)
{
    const char text[] = "#!/bin/sh\necho this is a program, but not that kind of program at all\n";

    (void)state;
    expect_bytes("", 0, "is empty");
    expect_bytes(text, sizeof(text) - 1, "ELF magic");
    expect_bytes("\177ELF", 4, "shorter than an ELF header");
}

/* The good plugin's header with one field changed. */
static void other_kinds_of_elf(void **state)
{
    Elf64_Ehdr good, bad;
    FILE *file = fopen(rig_fake("libfrit-fake-good.so"), "rb");

    (void)state;
    assert_non_null(file);
    assert_int_equal(fread(&good, sizeof(good), 1, file), 1);
    assert_int_equal(fclose(file), 0);

    bad = good;
    bad.e_ident[EI_CLASS] = ELFCLASS32;
    expect_bytes(&bad, sizeof(bad), "64-bit");
    bad = good;
    bad.e_ident[EI_DATA] = ELFDATA2MSB;
    expect_bytes(&bad, sizeof(bad), "little-endian");
    bad = good;
    bad.e_machine = EM_S390;
    expect_bytes(&bad, sizeof(bad), "another machine");
    bad = good;
    bad.e_type = ET_REL;
    expect_bytes(&bad, sizeof(bad), "not a shared object");
    bad = good;
    bad.e_phnum = 0xffff;
    expect_bytes(&bad, sizeof(bad), "impossible table");
    bad = good;
    bad.e_phoff = UINT64_MAX - 8;
    expect_bytes(&bad, sizeof(bad), "cut off");
    expect_bytes(&good, sizeof(good), "cut off before its table");
}

static void cut_plugin(void **state)
{
    static char bytes[1 << 22];
    FILE *file = fopen(rig_fake("libfrit-fake-good.so"), "rb");
    size_t count;

    (void)state;
    assert_non_null(file);
    count = fread(bytes, 1, sizeof(bytes), file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(count, 4097, sizeof(bytes) - 1);
    expect_bytes(bytes, 4096, "a segment ends past the end");
}

/* ---- the good plugin with some bytes changed ---- */

static unsigned char plugin_bytes[1 << 22];
static size_t n_plugin_bytes;

static void read_plugin(void)
{
    FILE *file = fopen(rig_fake("libfrit-fake-good.so"), "rb");

    assert_non_null(file);
    n_plugin_bytes = fread(plugin_bytes, 1, sizeof(plugin_bytes), file);
    assert_int_equal(fclose(file), 0);
    assert_in_range(n_plugin_bytes, 4097, sizeof(plugin_bytes) - 1);
}

/* The first place of these bytes in the file. */
static unsigned char *find_bytes(const void *bytes, size_t n)
{
    unsigned char *at = memmem(plugin_bytes, n_plugin_bytes, bytes, n);

    assert_non_null(at);
    return at;
}

static Elf64_Phdr *segment_of(uint32_t type)
{
    Elf64_Ehdr header;

    memcpy(&header, plugin_bytes, sizeof(header));
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        void *at = plugin_bytes + header.e_phoff + i * sizeof(Elf64_Phdr);

        if (((Elf64_Phdr *)at)->p_type == type)
            return at;
    }
    fail_msg("no segment of type %#x", type);
    return NULL;
}

static struct frit_note_section *note_of_plugin(void)
{
    static const uint32_t head[] = {5, sizeof(frit_note), 1};

    return (void *)find_bytes(head, sizeof(head));
}

/* Writes the changed bytes as a file and checks what the host says of it. */
static void expect_changed(uint32_t reason, const char *words)
{
    const char *path = place("file.so");

    write_file(path, plugin_bytes, n_plugin_bytes);
    expect(path, reason, words);
    assert_int_equal(unlink(path), 0);
    read_plugin();
}

static void notes_of_other_hosts(void **state)
{
    (void)state;
    read_plugin();
    note_of_plugin()->note.abi_min = note_of_plugin()->note.abi_max = 7 << 16;
    expect_changed(FRIT_REASON_ABI_MISMATCH, "the plugin speaks ABI 7.0-7.0");
    note_of_plugin()->note.sanitizer = FRIT_SANITIZER_MEMORY;
    expect_changed(FRIT_REASON_SANITIZER_MISMATCH, "the memory sanitizer");
    if (FRIT_SANITIZER == FRIT_SANITIZER_NONE) { /* and no runtime is preloaded */
        note_of_plugin()->note.sanitizer = FRIT_SANITIZER_THREAD;
        expect_changed(FRIT_REASON_SANITIZER_MISMATCH,
                       "whose runtime has to be there first: LD_PRELOAD=$(cc "
                       "-print-file-name=libtsan.so)");
    }
    note_of_plugin()->note.isa[0] = 1u << 31;
    expect_changed(FRIT_REASON_ISA_UNSUPPORTED, "a set of instructions that this host");
    note_of_plugin()->note.isa[2] = 1;
    expect_changed(FRIT_REASON_ISA_UNSUPPORTED, "a set of instructions that this host");
}

static void notes_that_are_malformed(void **state)
{
    (void)state;
    read_plugin();
    note_of_plugin()->desc_bytes = 8;
    expect_changed(FRIT_REASON_BAD_NOTE, "cut off");
    note_of_plugin()->desc_bytes = UINT32_MAX;
    expect_changed(FRIT_REASON_BAD_NOTE, "cut off");
    note_of_plugin()->note.record_size = 100;
    expect_changed(FRIT_REASON_BAD_NOTE, "whose size is not that of its record");
    note_of_plugin()->note.record_size = UINT32_MAX;
    expect_changed(FRIT_REASON_BAD_NOTE, "whose size is not that of its record");
    memset(note_of_plugin()->note.id, 'a', sizeof(note_of_plugin()->note.id));
    expect_changed(FRIT_REASON_BAD_NOTE, "not terminated printable ASCII");
    note_of_plugin()->note.version[0] = '\033';
    expect_changed(FRIT_REASON_BAD_NOTE, "not terminated printable ASCII");
}

/* Of the dynamic section. */
static Elf64_Dyn *entry_of(int64_t tag)
{
    const Elf64_Phdr *segment = segment_of(PT_DYNAMIC);
    Elf64_Dyn *entry = (void *)(plugin_bytes + segment->p_offset);

    for (size_t i = 0; i < segment->p_filesz / sizeof(*entry); i++)
        if (entry[i].d_tag == tag)
            return &entry[i];
    fail_msg("no dynamic entry %lld", (long long)tag);
    return NULL;
}

static void what_the_loader_would_do(void **state)
{
    (void)state;
    read_plugin();
    segment_of(PT_GNU_STACK)->p_flags |= PF_X;
    expect_changed(FRIT_REASON_EXECUTABLE_STACK, "-z noexecstack");
    entry_of(DT_FLAGS)->d_un.d_val |= DF_TEXTREL;
    expect_changed(FRIT_REASON_TEXT_RELOCATIONS, "-z text");
    entry_of(DT_SONAME)->d_tag = DT_TEXTREL;
    expect_changed(FRIT_REASON_TEXT_RELOCATIONS, "-z text");
    entry_of(DT_FLAGS)->d_un.d_val |= DF_STATIC_TLS;
    segment_of(PT_GNU_EH_FRAME)->p_memsz = 513;
    segment_of(PT_GNU_EH_FRAME)->p_type = PT_TLS;
    expect_changed(FRIT_REASON_STATIC_TLS, "513 bytes, at most 512");
    memcpy(find_bytes("libc.so.6", 10), "libq.so.6", 10);
    expect_changed(FRIT_REASON_LIBRARY_MISSING, "libq.so.6");
}

static void write_and_read(const char *path)
{
    struct elf_facts facts;
    char text[256] = "";

    write_file(path, plugin_bytes, n_plugin_bytes);
    assert_true((elf_read(path, &facts, text, sizeof(text)) != 0) == (text[0] != '\0'));
}

static void change_each_byte(size_t first, size_t n)
{
    static const unsigned char values[] = {0, 0x7f, 0xff};
    const char *path = place("file.so");

    for (size_t i = first; i < first + n; i++) {
        const unsigned char was = plugin_bytes[i];

        for (size_t k = 0; k < sizeof(values); k++) {
            plugin_bytes[i] = values[k];
            write_and_read(path);
        }
        plugin_bytes[i] = was;
    }
    assert_int_equal(unlink(path), 0);
}

/* Any byte of the headers, the note and the dynamic section may be anything. */
static void changed_bytes_never_crash_the_reader(void **state)
{
    (void)state;
    read_plugin();
    change_each_byte(0, sizeof(Elf64_Ehdr) + 12 * sizeof(Elf64_Phdr));
    change_each_byte((size_t)((unsigned char *)note_of_plugin() - plugin_bytes), 64);
    change_each_byte(segment_of(PT_DYNAMIC)->p_offset, segment_of(PT_DYNAMIC)->p_filesz);
}

static void shared_objects_that_are_no_plugins(void **state)
{
    (void)state;
    expect(rig_fake("libfake-plain.so"), FRIT_REASON_NO_ENTRY, "libfake-plain.so");
    expect(rig_fake("libfake-unresolved.so"), FRIT_REASON_LOAD_FAILED, "nobody_has_this");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_there),
        cmocka_unit_test(not_regular_files),
        cmocka_unit_test(not_elf),
        cmocka_unit_test(other_kinds_of_elf),
        cmocka_unit_test(cut_plugin),
        cmocka_unit_test(shared_objects_that_are_no_plugins),
        cmocka_unit_test(notes_of_other_hosts),
        cmocka_unit_test(notes_that_are_malformed),
        cmocka_unit_test(what_the_loader_would_do),
        cmocka_unit_test(changed_bytes_never_crash_the_reader),
    };

    return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
