/* SPDX-License-Identifier: Apache-2.0 */
/* host/api/ops.c: the bodies, each of which writes its call down for api_op. */
#include "gen.h"

#include <string.h>

/* Writes the array of inputs and returns how many there are. */
static uint32_t put_inputs(FILE *out, const struct gen_function *f)
{
    const frit_op_info *row = f->row;
    struct gen_item items[FRIT_OP_MAX_IN];
    uint32_t count = 0;

    for (uint32_t i = 0; row->in[i].name; i++) {
        const char *maker = row->in[i].role == FRIT_ROLE_OPT ? "api_optional" : "api_tensor";
        if (row->in[i].role == FRIT_ROLE_MANY)
            continue;
        if (gen_is_number(row, f->form, i))
            maker = f->form == GEN_INTEGER ? "api_i" : "api_f";
        snprintf(items[count++].text, sizeof(items[0].text), "%s(%s)", maker, row->in[i].name);
    }
    if (count)
        gen_list(out, "    const frit_input in[] = {", items, count, "\n", "};\n");
    return count;
}

static void put_record(FILE *out, const struct gen_function *f)
{
    const frit_record_info *record = gen_record(f->row);
    char head[96];
    struct gen_item items[FRIT_OP_MAX_FIELDS + 1];
    uint32_t count = 1;

    if (!record->n_fields)
        return;
    snprintf(head, sizeof(head), "    frit_attrs_%s record = {", record->name);
    snprintf(items[0].text, sizeof(items[0].text), ".struct_size = %s",
             gen_has_named(f->row) ? "RECORD_SIZE(record, attrs)" : "sizeof(record)");
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].place == FRIT_PLACE_POS)
            snprintf(items[count++].text, sizeof(items[0].text), ".%s = %s", record->field[i].name,
                     record->field[i].name);
    gen_list(out, head, items, count, "\n", "};\n");
    if (gen_has_named(f->row))
        fputc('\n', out);
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].place == FRIT_PLACE_NAMED)
            fprintf(out, "    TAKE(record, attrs, frit_%s_attrs, %s);\n", f->row->name,
                    record->field[i].name);
}

static void put_call(FILE *out, const struct gen_function *f, uint32_t n_in)
{
    const frit_op_info *row = f->row;
    char head[96];
    struct gen_item items[8 + FRIT_OP_MAX_OUT];
    uint32_t count = 0;

    snprintf(head, sizeof(head), "    return %s(&(struct api_call){",
             row->out[0].name ? "api_op" : "api_op_status");
    snprintf(items[count++].text, sizeof(items[0].text), ".op = FRIT_OP_%s", row->name);
    if (!gen_has_tensors(row))
        snprintf(items[count++].text, sizeof(items[0].text), ".device = device");
    if (row->in[0].role == FRIT_ROLE_MANY) {
        snprintf(items[count++].text, sizeof(items[0].text), ".many = %s", row->in[0].name);
        snprintf(items[count++].text, sizeof(items[0].text), ".n_many = n_%s", row->in[0].name);
    }
    if (n_in) {
        snprintf(items[count++].text, sizeof(items[0].text), ".n_in = %u", n_in);
        snprintf(items[count++].text, sizeof(items[0].text), ".in = in");
    }
    if (gen_record(row)->n_fields)
        snprintf(items[count++].text, sizeof(items[0].text), ".attrs = &record");
    for (uint32_t i = 1; row->out[0].name && i <= FRIT_OP_MAX_OUT && row->out[i].name; i++)
        snprintf(items[count++].text, sizeof(items[0].text), ".more[%u] = %s", i - 1,
                 row->out[i].name);
    gen_list(out, head, items, count, "\n", "});\n}\n\n");
}

bool gen_ops_c(FILE *out)
{
    const frit_op_info *row = NULL;
    struct gen_function f;

    fputs("/* SPDX-License-Identifier: Apache-2.0 */\n/* " GEN_MARK ".\n"
          " *\n"
          " * The C functions of the op rows.  Each writes its call down; checks and recording are "
          "api_op's. */\n"
          "#include \"api/call.h\"\n\n#include <string.h>\n\n"
          "/* clang-format off */\n\n"
          "/* A caller who forgot the size of his struct gets 0, which api_op refuses. */\n"
          "#define RECORD_SIZE(record, attrs) (!(attrs) || (attrs)->struct_size ? sizeof(record) : "
          "0)\n"
          "/* A named attribute, if the caller gives any and knew this one. */\n"
          "#define TAKE(record, attrs, type, field)                                      \\\n"
          "    do {                                                                      \\\n"
          "        if ((attrs) && FRIT_HAS(attrs, type, field))                          \\\n"
          "            memcpy(&(record).field, &(attrs)->field, sizeof((record).field)); \\\n"
          "    } while (0)\n\n",
          out);
    while ((row = gen_next(row)))
        for (enum gen_form form = GEN_PLAIN; form <= GEN_INTEGER; form++)
            if (gen_function(row, form, &f)) {
                gen_prototype(out, &f, ")\n{\n");
                uint32_t n_in = put_inputs(out, &f);
                put_record(out, &f);
                if (n_in || gen_record(row)->n_fields)
                    fputc('\n', out);
                put_call(out, &f, n_in);
            }
    return true;
}
