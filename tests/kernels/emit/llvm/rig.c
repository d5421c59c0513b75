/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/emit/llvm/rig.h"

#include <string.h>

#include "unit.h"

int rig_open(void **state)
{
    static struct rig rig;
    frit_err err = {.struct_size = sizeof(err)};

    *state = &rig;
    if (!llvm_cpu_find(&rig.best) || llvm_open(getenv("FRIT_TEST_LLVM"), &rig.llvm, &err))
        print_message("no LLVM: %s\n", err.text);
    return 0;
}

int rig_close(void **state)
{
    llvm_close(((struct rig *)*state)->llvm);
    return 0;
}

const struct rig *rig_of(void **state)
{
    const struct rig *rig = *state;

    if (!rig->llvm)
        skip();
    return rig;
}

struct object *rig_compile(const struct rig *rig, const struct kir_module *m,
                           const struct llvm_cpu *cpu, int level)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct object *object;
    void *bytes;
    size_t n;

    if (llvm_compile(rig->llvm, m, cpu, (enum llvm_level)level, &bytes, &n, &err) ||
        object_load(bytes, n, &object, &err))
        fail_msg("%s", err.text);
    free(bytes);
    return object;
}

void *rig_scratch(const struct object *object, uint32_t phase)
{
    size_t bytes = object->phases[phase].scratch;
    void *scratch = aligned_alloc(BLOB_ALIGN, bytes ? bytes : BLOB_ALIGN);

    assert_non_null(scratch);
    memset(scratch, 0xff, bytes);
    return scratch;
}

void rig_run(const struct object *object, uint32_t phase, const uint32_t *grid,
             const uint64_t *words, void *const *args, bool streams)
{
    void *scratch = rig_scratch(object, phase);

    if (streams)
        object_begin(&object->phases[phase], scratch);
    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                object->phases[phase].run(words, args, (const uint32_t[4]){x, y, z, streams},
                                          scratch);
        }
    }
    if (streams)
        object_finish(&object->phases[phase], scratch);
    free(scratch);
}
