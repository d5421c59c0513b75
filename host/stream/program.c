/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are exact bytes: the relative op with its operands and KEY attributes; a signature with its
 * arguments and scalar classes. */
#include "stream/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/str.h"

enum { MAX_SIGNATURES = 256 }; /* remembered per program; then it begins anew */

struct program_entry {
    frit_program program; /* table NULL: the driver refuses the op */
    struct map prepared;  /* signature -> struct prepared */
};

struct prepared {
    frit_status status;
    frit_launch_spec spec;
    frit_variant variant;
};

struct programs {
    pthread_mutex_t lock;
    struct map entries; /* relative op -> struct program_entry */
};

/* ---- the relative op ---- */

/* Extents 0 and 1 are themselves; every other gets the number of its first appearance. */
struct extents {
    int64_t *seen;
    uint32_t count;
};

static uint32_t extent_number(struct extents *extents, int64_t extent)
{
    if (extent <= 1)
        return (uint32_t)extent;
    for (uint32_t i = 0; i < extents->count; i++) {
        if (extents->seen[i] == extent)
            return i + 2;
    }
    extents->seen[extents->count++] = extent;
    return extents->count + 1;
}

static void relative_tensor(struct extents *extents, const struct op_type *type, uint32_t value,
                            frit_operand *out)
{
    *out = (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = type->dtype, .value = value, .rank = type->rank};
    for (uint32_t d = 0; d < type->rank; d++)
        out->extent[d] = extent_number(extents, type->dims[d]);
}

/* `attrs` NULL: a record without fields. */
static void relative_attrs(const frit_op_info *row, const void *attrs, unsigned char *out)
{
    const frit_record_info *record = frit_record_info_at(row->record);
    uint64_t size = record->size;

    memset(out, 0, record->size);
    memcpy(out, &size, sizeof(size));
    for (uint32_t i = 0; i < record->n_fields && attrs; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use == FRIT_USE_KEY)
            memcpy(out + field->offset, (const unsigned char *)attrs + field->offset, field->size);
    }
}

frit_status relative_init(const struct exec_call *call, struct relative_op *out, frit_err *err)
{
    const frit_op_info *row = frit_op_info_at(call->op);
    int64_t fixed[sizeof(out->fixed) / sizeof(out->fixed[0]) * FRIT_MAX_RANK];
    struct extents extents = {.seen = fixed};
    uint32_t n = call->n_in + call->n_out, values = 0, scalars = 0;

    memset(out, 0, sizeof(*out));
    out->operands = out->fixed;
    if (n > sizeof(out->fixed) / sizeof(out->fixed[0])) {
        out->operands = calloc(n, sizeof(*out->operands));
        extents.seen = calloc(n, FRIT_MAX_RANK * sizeof(*extents.seen));
        if (!out->operands || !extents.seen) {
            free(out->operands);
            free(extents.seen);
            return fail_memory(err, n * sizeof(*out->operands));
        }
    }
    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct exec_input *in = &call->in[i];

        if (in->kind == FRIT_OPERAND_TENSOR)
            relative_tensor(&extents, &in->value.type, values++, &out->operands[i]);
        else if (in->kind == FRIT_OPERAND_SCALAR)
            out->operands[i] =
                (frit_operand){.kind = in->kind, .dtype = in->dtype, .value = scalars++};
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].type.dtype != FRIT_NO_DTYPE)
            relative_tensor(&extents, &call->out[i].type, values++, &out->operands[call->n_in + i]);
    }
    relative_attrs(row, call->attrs, (unsigned char *)out->attrs);
    out->desc = (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, dead),
                               .id = call->op,
                               .rev = row->rev,
                               .n_in = call->n_in,
                               .n_out = call->n_out,
                               .operand_stride = sizeof(frit_operand),
                               .n_extra = row->traits & FRIT_OP_SEEDED ? 2 : 0,
                               .in = out->operands,
                               .out = out->operands + call->n_in,
                               .attrs = out->attrs};
    if (extents.seen != fixed)
        free(extents.seen);
    return FRIT_OK;
}

void relative_fini(struct relative_op *relative)
{
    if (relative->operands != relative->fixed)
        free(relative->operands);
}

static bool relative_key(const struct relative_op *relative, struct str *key)
{
    const frit_op_desc *d = &relative->desc;
    uint32_t head[] = {d->id, d->n_in, d->n_out};

    str_add(key, (const char *)head, sizeof(head));
    str_add(key, (const char *)relative->operands, (d->n_in + d->n_out) * sizeof(frit_operand));
    str_add(key, (const char *)relative->attrs, (size_t)relative->attrs[0]);
    return !key->failed;
}

/* ---- programs ---- */

frit_status programs_create(struct programs **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

static void entry_destroy(void *value)
{
    struct program_entry *entry = value;

    map_fini(&entry->prepared, free);
    if (entry->program.table)
        entry->program.table->destroy(entry->program.self);
    free(entry);
}

void programs_destroy(struct programs *programs)
{
    if (!programs)
        return;
    map_fini(&programs->entries, entry_destroy);
    pthread_mutex_destroy(&programs->lock);
    free(programs);
}

static bool table_is_whole(const frit_program_table *table)
{
    return table && FRIT_HAS(table, frit_program_table, destroy) && table->describe &&
           table->prepare && table->destroy;
}

/* Asks the driver.  A refusal is an entry without a table. */
static frit_status entry_create(frit_device *device, const frit_op_desc *op,
                                struct program_entry **out, frit_err *err)
{
    struct program_entry *entry = calloc(1, sizeof(*entry));
    uint64_t claimed = 0;
    frit_status st;

    *out = NULL;
    if (!entry)
        return fail_memory(err, sizeof(*entry));
    entry->program.struct_size = sizeof(entry->program);
    st = device->backend->supports(device->self, op, 1, sizeof(*op), &claimed, err);
    fail_from(err, st, "supports");
    if (!st && claimed & 1) {
        st = device->backend->op_program(device->self, op, &entry->program, err);
        fail_from(err, st, "op_program");
        if (!st && !table_is_whole(entry->program.table))
            st = fail(err, FRIT_INTERNAL, "%s: op_program gave a table that lacks required slots",
                      device->entry->name);
        if (st)
            entry->program.table = NULL;
        else
            atomic_fetch_add(&device->count.programs, 1);
    }
    if (st && st != FRIT_UNSUPPORTED) {
        free(entry);
        return st;
    }
    *out = entry;
    return FRIT_OK;
}

/* Stores an entry unless another thread was faster; gives the one that counts. */
static frit_status entry_store(struct programs *programs, const struct str *key,
                               struct program_entry *entry, struct program_entry **out,
                               frit_err *err)
{
    struct program_entry *known;
    bool stored = false;

    pthread_mutex_lock(&programs->lock);
    known = map_get(&programs->entries, key->text, key->length);
    if (!known)
        stored = map_add(&programs->entries, key->text, key->length, entry);
    pthread_mutex_unlock(&programs->lock);
    *out = known ? known : entry;
    if (stored)
        return FRIT_OK;
    entry_destroy(entry);
    return known ? FRIT_OK : fail_memory(err, key->length);
}

static frit_status find_or_make(frit_device *device, const struct relative_op *relative,
                                struct program_entry **out, frit_err *err)
{
    struct programs *programs = device->programs;
    struct program_entry *entry;
    struct str key = {0};
    frit_status st = FRIT_OK;

    if (!relative_key(relative, &key)) {
        st = fail_memory(err, sizeof(*relative));
        goto out;
    }
    pthread_mutex_lock(&programs->lock);
    *out = map_get(&programs->entries, key.text, key.length);
    pthread_mutex_unlock(&programs->lock);
    if (!*out) {
        st = entry_create(device, &relative->desc, &entry, err);
        if (!st)
            st = entry_store(programs, &key, entry, out, err);
    }
out:
    str_fini(&key);
    return st;
}

frit_status programs_get(frit_device *device, const struct exec_call *call,
                         const frit_program **out, frit_err *err)
{
    struct program_entry *entry = NULL;
    struct relative_op relative;
    frit_status st;

    *out = NULL;
    TRY(relative_init(call, &relative, err));
    st = find_or_make(device, &relative, &entry, err);
    relative_fini(&relative);
    if (st)
        return st;
    if (!entry->program.table)
        return fail(err, FRIT_UNSUPPORTED, "the driver of %s has no such op for these types",
                    device->entry->name);
    *out = &entry->program;
    return FRIT_OK;
}

/* ---- signatures ---- */

static bool signature_key(const frit_signature *sig, struct str *key)
{
    uint32_t head[] = {sig->n_in, sig->n_out, sig->n_scalars, sig->index_width};

    str_add(key, (const char *)head, sizeof(head));
    str_add(key, (const char *)sig->args, (sig->n_in + sig->n_out) * sizeof(*sig->args));
    str_add(key, (const char *)sig->scalar_classes, sig->n_scalars);
    return !key->failed;
}

static frit_status compile(frit_device *device, const frit_program *program,
                           const frit_variant *variant, frit_err *err)
{
    if (!FRIT_HAS(program->table, frit_program_table, compile) || !program->table->compile)
        return fail(err, FRIT_INTERNAL,
                    "%s: prepare wants a compile that the program does not have",
                    device->entry->name);
    atomic_fetch_add(&device->count.compiles, 1);
    return fail_from(err, program->table->compile(program->self, 0, variant, NULL, err), "compile");
}

static struct prepared *prepared_create(frit_device *device, const frit_program *program,
                                        const frit_signature *sig, frit_err *err)
{
    struct prepared *p = calloc(1, sizeof(*p));

    if (!p) {
        fail_memory(err, sizeof(*p));
        return NULL;
    }
    p->spec.struct_size = sizeof(p->spec);
    p->variant.struct_size = sizeof(p->variant);
    p->status = program->table->prepare(program->self, 0, sig, &p->spec, &p->variant, err);
    fail_from(err, p->status, "prepare");
    if (p->status == FRIT_PREPARE_NEEDS_COMPILE)
        p->status = compile(device, program, &p->variant, err);
    return p;
}

/* Only definite answers are remembered: a failure of memory or of a compiler may pass. */
static void remember(struct programs *programs, struct program_entry *entry, const struct str *key,
                     struct prepared *p)
{
    bool stored = false;

    pthread_mutex_lock(&programs->lock);
    if (entry->prepared.count >= MAX_SIGNATURES)
        map_fini(&entry->prepared, free);
    if (p->status >= 0 && !map_get(&entry->prepared, key->text, key->length))
        stored = map_add(&entry->prepared, key->text, key->length, p);
    pthread_mutex_unlock(&programs->lock);
    if (!stored)
        free(p);
}

frit_status programs_prepare(frit_device *device, const frit_program *program,
                             const frit_signature *signature, frit_launch_spec *spec,
                             frit_variant *variant, frit_err *err)
{
    struct program_entry *entry = (struct program_entry *)program; /* its first member */
    struct prepared copy, *p;
    struct str key = {0};
    bool known = false;
    frit_status st = FRIT_OK;

    if (!signature_key(signature, &key)) {
        st = fail_memory(err, sizeof(*signature));
        goto out;
    }
    pthread_mutex_lock(&device->programs->lock);
    p = map_get(&entry->prepared, key.text, key.length);
    if (p) {
        copy = *p;
        known = true;
    }
    pthread_mutex_unlock(&device->programs->lock);
    if (!known) {
        p = prepared_create(device, program, signature, err);
        if (!p) {
            st = FRIT_NO_HOST_MEMORY;
            goto out;
        }
        copy = *p;
        remember(device->programs, entry, &key, p);
    }
    *spec = copy.spec;
    *variant = copy.variant;
    st = copy.status;
out:
    str_fini(&key);
    return st;
}
