/* SPDX-License-Identifier: Apache-2.0 */
/* A case as a text program: an input per tensor operand, the views that give it the case's layout,
 * and the op. */
#include "conform/program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conform/cases.h"
#include "conform/conform.h"

/* Text that grows up to its room; `full` where it did not fit. */
struct writer {
    char *text;
    size_t capacity, used;
    bool full;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(w->text + w->used, w->capacity - w->used, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= w->capacity - w->used)
        w->full = true;
    else
        w->used += (size_t)length;
}

static void put_dims(struct writer *w, const frit_dims *dims)
{
    for (int64_t i = 0; i < dims->rank; i++)
        put(w, "%s%lld", i ? ", " : "", (long long)dims->dim[i]);
}

/* ---- element types of operands ---- */

static bool is_float(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_FLOAT;
}

static uint32_t widened(uint32_t dtype, bool wide)
{
    return wide && is_float(dtype) ? FRIT_F64 : dtype;
}

static uint32_t slot_dtype(const struct conform_case *one, const frit_slot_info *slot, bool wide)
{
    switch (slot->letter) {
    case FRIT_LETTER_BOOL:
        return FRIT_BOOL;
    case FRIT_LETTER_I64:
        return FRIT_I64;
    case FRIT_LETTER_I: /* both in turn */
        return (one->dtype + (uint32_t)one->layout) % 2 ? FRIT_I32 : FRIT_I64;
    case FRIT_LETTER_P: /* of which quantize makes packed values */
        return widened(one->dtype, wide);
    default:
        if (conform_letter_takes(slot->letter, one->dtype))
            return widened(one->dtype, wide);
        return conform_letter_takes(slot->letter, FRIT_F32) ? widened(FRIT_F32, wide) : FRIT_I32;
    }
}

/* ---- layouts ---- */

static bool changes(const struct conform_case *one, const frit_dims *dims)
{
    switch (one->layout) {
    case LAYOUT_DENSE:
        return false;
    case LAYOUT_DYING:
        return true;
    case LAYOUT_PERMUTED:
        return dims->rank > 1;
    default:
        return dims->rank > 0;
    }
}

/* The dims that an operand is stored with, so that the layout's view gives `dims`. */
static frit_dims stored_dims(const struct conform_case *one, const frit_dims *dims)
{
    frit_dims stored = *dims;
    int64_t last = dims->rank - 1;

    if (!changes(one, dims))
        return stored;
    switch (one->layout) {
    case LAYOUT_PERMUTED:
        for (int64_t i = 0; i < dims->rank; i++)
            stored.dim[i] = dims->dim[last - i];
        break;
    case LAYOUT_STRIDED:
        stored.dim[last] = 2 * dims->dim[last] + 1;
        break;
    case LAYOUT_STRETCHED:
        stored.dim[0] = 1;
        break;
    case LAYOUT_INSIDE:
        stored.dim[0] += 2;
        break;
    default:
        break;
    }
    return stored;
}

static void put_view(struct writer *w, const struct conform_case *one, uint32_t k,
                     const frit_dims *dims)
{
    switch (one->layout) {
    case LAYOUT_PERMUTED:
        put(w, "v%u = permute x%u, order=[", k, k);
        for (int64_t i = dims->rank; i > 0; i--)
            put(w, "%lld%s", (long long)i - 1, i > 1 ? ", " : "]\n");
        break;
    case LAYOUT_STRIDED:
        put(w, "v%u = slice x%u, slices=[", k, k);
        for (int64_t i = 1; i < dims->rank; i++)
            put(w, ":, ");
        put(w, "1::2]\n");
        break;
    case LAYOUT_REVERSED:
        put(w, "v%u = flip x%u\n", k, k);
        break;
    case LAYOUT_STRETCHED:
        put(w, "v%u = expand x%u, dims=[", k, k);
        put_dims(w, dims);
        put(w, "]\n");
        break;
    case LAYOUT_DYING:
        put(w, "v%u = copy x%u\n", k, k);
        break;
    default:
        put(w, "v%u = slice x%u, slices=[1:%lld]\n", k, k, (long long)dims->dim[0] + 1);
        break;
    }
}

/* ---- operands ---- */

/* What is read of the table's operands, and what is written. */
struct reader {
    const struct conform_case *one;
    struct conform_program *program;
    struct writer inputs, views, call;
    bool wide;
};

static char kind_of(const struct conform_row *row, uint32_t index)
{
    size_t n = strlen(row->kinds);

    if (n == 0)
        return 'g';
    return row->kinds[index < n ? index : n - 1];
}

/* Packed tensors are made by quantize only. */
static void put_quantize(struct reader *r, uint32_t k, bool viewed, const char *type)
{
    put(&r->views, "s%u = full 0.03125, dtype=%s, dims=[]\n", k,
        frit_dtype_name(widened(r->one->dtype, r->wide)));
    put(&r->views, "q%u = quantize %c%u, s%u, dtype=%s\n", k, viewed ? 'v' : 'x', k, k, type);
}

/* "[2,3]" with what may stand after; returns what follows, NULL if it cannot be read. */
static const char *read_tensor(const char *at, frit_dims *dims, int64_t *bound, char type[16])
{
    char *end = NULL;

    *dims = (frit_dims){0};
    *bound = 0;
    *type = '\0';
    for (at++; *at && *at != ']'; at += *at == ',') {
        if (dims->rank == FRIT_MAX_RANK)
            return NULL;
        dims->dim[dims->rank++] = strtoll(at, &end, 10);
        if (end == at)
            return NULL;
        at = end;
    }
    if (*at++ != ']')
        return NULL;
    if (*at == '<') {
        *bound = strtoll(at + 1, &end, 10);
        at = end;
    } else if (*at == ':') {
        size_t length = strcspn(++at, ", ");

        snprintf(type, 16, "%.*s", (int)length, at);
        at += length;
    }
    return at;
}

static const char *take_tensor(struct reader *r, const char *at, uint32_t index)
{
    struct conform_program *program = r->program;
    const frit_slot_info *slots = r->one->row.op->in;
    bool many = slots[0].role == FRIT_ROLE_MANY && !slots[1].name;
    const frit_slot_info *slot = &slots[many ? 0 : index];
    uint32_t k = program->n_in;
    struct conform_operand *operand = &program->in[k];
    frit_dims dims;
    char type[16];

    if (k == CONFORM_OPERANDS || !slot->name)
        return NULL;
    at = read_tensor(at, &dims, &operand->bound, type);
    if (!at)
        return NULL;
    program->n_in++;
    operand->dtype = slot_dtype(r->one, slot, r->wide);
    operand->kind = kind_of(&r->one->row, index);
    operand->dims = stored_dims(r->one, &dims);
    operand->seen = 1;
    for (int64_t i = 0; i < dims.rank; i++)
        operand->seen *= (uint64_t)dims.dim[i];
    put(&r->inputs, "input x%u : %s[", k, frit_dtype_name(operand->dtype));
    put_dims(&r->inputs, &operand->dims);
    put(&r->inputs, "]\n");
    if (changes(r->one, &dims))
        put_view(&r->views, r->one, k, &dims);
    if (*type)
        put_quantize(r, k, changes(r->one, &dims), type);
    put(&r->call, "%c%u", *type ? 'q' : changes(r->one, &dims) ? 'v' : 'x', k);
    return at;
}

/* The scalar of `%LETTER`, as rows.def says. */
static void put_scalar(struct reader *r, char letter)
{
    const uint32_t dtype = r->one->dtype, bits = 8 * (uint32_t)frit_storage_bytes(dtype, 1);
    const uint32_t cls = frit_dtype_info_of(dtype).cls;
    const uint64_t top = (uint64_t)1 << (bits - 1), ends[] = {top - 1, top - 1 + top};

    if (cls == FRIT_DTYPE_FLOAT)
        put(&r->call, "%s",
            letter == 's'   ? "1.5"
            : letter == 'r' ? "-2.25"
            : letter == 'h' ? "inf"
            : letter == 'l' ? "-0.0"
                            : "nan");
    else if (cls == FRIT_DTYPE_BOOL)
        put(&r->call, letter == 's' || letter == 'h' ? "true" : "false");
    else if (letter == 'h')
        put(&r->call, "%" PRIu64, ends[cls == FRIT_DTYPE_UINT]);
    else if (letter == 'l' && cls == FRIT_DTYPE_INT)
        put(&r->call, "-%" PRIu64, top);
    else if (letter == 'n' && bits == 64)
        put(&r->call, "9007199254740993"); /* 2^53 + 1 */
    else
        put(&r->call, letter == 's' ? "3" : letter == 'l' ? "0" : "7");
}

/* A scalar or `none`, up to the comma. */
static const char *take_word(struct reader *r, const char *at)
{
    size_t length = strcspn(at, ",");

    if (*at == '%')
        put_scalar(r, at[1]);
    else
        put(&r->call, "%.*s", (int)length, at);
    return at + length;
}

static bool take_operands(struct reader *r)
{
    const char *at = r->one->form->operands;

    for (uint32_t index = 0; *at; index++) {
        put(&r->call, index ? ", " : " ");
        at = *at == '[' ? take_tensor(r, at, index) : take_word(r, at);
        if (!at)
            return false;
        at += strspn(at, ", ");
    }
    return true;
}

static void put_attrs(struct reader *r)
{
    const char *attrs = r->one->form->attrs, *hole;

    if (!*attrs)
        return;
    put(&r->call, "%s", *r->one->form->operands ? ", " : " ");
    for (; (hole = strstr(attrs, "%t")); attrs = hole + 2)
        put(&r->call, "%.*s%s", (int)(hole - attrs), attrs,
            frit_dtype_name(widened(r->one->dtype, r->wide)));
    put(&r->call, "%s", attrs);
}

/* Whether the form has no such operand. */
static bool lacks(const struct conform_case *one, const char *operand)
{
    const char *at = one->form->operands;

    for (const frit_slot_info *slot = one->row.op->in; slot->name && *at; slot++) {
        if (strcmp(slot->name, operand) == 0)
            return strncmp(at, "none", 4) == 0;
        at += *at == '[' ? strcspn(at, "]") : 0;
        at += strcspn(at, ",");
        at += strspn(at, ", ");
    }
    return true;
}

/* The results: the last ones, dX, are left out where there is no X. */
static void put_results(struct reader *r)
{
    for (const frit_slot_info *slot = r->one->row.op->out; slot->name; slot++) {
        if (slot->role == FRIT_ROLE_XOUT && *slot->name == 'd' && lacks(r->one, slot->name + 1))
            return;
        put(&r->call, "%sy%u", r->program->n_out ? ", " : "", r->program->n_out);
        r->program->n_out++;
    }
}

bool conform_program_of(const struct conform_case *one, bool wide, struct conform_program *out)
{
    char inputs[1024], views[1024], call[1024];
    struct reader r = {.one = one,
                       .program = out,
                       .inputs = {.text = inputs, .capacity = sizeof(inputs)},
                       .views = {.text = views, .capacity = sizeof(views)},
                       .call = {.text = call, .capacity = sizeof(call)},
                       .wide = wide};
    struct writer all = {.text = out->text, .capacity = sizeof(out->text)};

    inputs[0] = views[0] = call[0] = '\0';
    out->n_in = out->n_out = 0;
    put_results(&r);
    put(&r.call, " = %s", one->row.name);
    if (!take_operands(&r))
        return false;
    put_attrs(&r);
    put(&all, "%s%s%s%s\n", inputs, views, out->n_out == 1 ? "output " : "", call);
    for (uint32_t k = 0; k < out->n_out && out->n_out > 1; k++)
        put(&all, "output y%u\n", k);
    return !r.inputs.full && !r.views.full && !r.call.full && !all.full;
}

frit_status conform_graph_parse(const struct conform_program *program, frit_graph **out,
                                frit_err *err)
{
    *out = NULL;
    return frit_graph_parse("case", program->text, strlen(program->text), out, err);
}

frit_status conform_graph_bind(const struct conform_program *program, frit_graph *graph,
                               frit_err *err)
{
    frit_port ports[CONFORM_OPERANDS];

    for (uint32_t k = 0; k < program->n_in; k++)
        ports[k] = (frit_port){.struct_size = sizeof(ports[k]),
                               .dtype = program->in[k].dtype,
                               .dims = program->in[k].dims};
    return frit_graph_bind(graph, ports, program->n_in, err);
}

frit_status conform_graph_of(const struct conform_program *program, frit_graph **out, frit_err *err)
{
    frit_status status = conform_graph_parse(program, out, err);

    if (!status)
        status = conform_graph_bind(program, *out, err);
    if (status) {
        frit_graph_free(*out);
        *out = NULL;
    }
    return status;
}
