/* SPDX-License-Identifier: Apache-2.0 */
#include "ops_custom.h"

#include <inttypes.h>
#include <string.h>

#include "ops_row.h"
#include "term.h"

static const char *support_of(frit_device *device, const frit_custom_desc *op)
{
    static const char *const names[] = {
        [FRIT_SUPPORT_NONE] = "-",
        [FRIT_SUPPORT_NATIVE] = "native",
        [FRIT_SUPPORT_DECOMPOSED] = "decomposed",
        [FRIT_SUPPORT_HOST] = "host",
    };
    uint32_t support = frit_op_support(device, op->op);

    return support < sizeof(names) / sizeof(names[0]) ? names[support] : "?";
}

/* Describes a plugin's op like a row of the op table. */
static void row_of(const frit_custom_desc *op, frit_op_info *row, frit_record_info *record)
{
    frit_custom_slot_desc slot = {.struct_size = sizeof(slot)};
    frit_custom_attr_desc attr = {.struct_size = sizeof(attr)};

    *row = (frit_op_info){.name = op->name, .meaning = op->meaning};
    *record = (frit_record_info){.n_fields = op->n_attrs};
    for (uint32_t i = 0; frit_custom_slot_at(op->op, i, &slot) == FRIT_OK; i++)
        *(i < op->n_in ? &row->in[i] : &row->out[i - op->n_in]) =
            (frit_slot_info){slot.name, slot.role, slot.letter};
    for (uint32_t i = 0; frit_custom_attr_at(op->op, i, &attr) == FRIT_OK; i++)
        record->field[i] = (frit_field_info){.name = attr.name,
                                             .choices = "none",
                                             .meaning = attr.meaning,
                                             .type = attr.type,
                                             .place = attr.place};
}

bool custom_find(const struct session *session, const char *name, frit_custom_desc *out)
{
    *out = (frit_custom_desc){.struct_size = sizeof(*out)};
    for (uint64_t i = 0; frit_custom_at(session->host, i, out) == FRIT_OK; i++) {
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

void custom_show_list(const struct session *session)
{
    frit_custom_desc op = {.struct_size = sizeof(op)};

    for (uint64_t i = 0; frit_custom_at(session->host, i, &op) == FRIT_OK; i++) {
        if (i == 0) {
            term_paint(stdout, PAINT_HEAD, 0, "of plugins");
            fputc('\n', stdout);
        }
        printf("  %-26s %-10s", op.name, op.decomposes ? "composite" : "core");
        if (session->device)
            printf(" %-11s", support_of(session->device, &op));
        printf(" %s\n", op.meaning);
    }
}

void custom_show(const frit_custom_desc *op, const struct session *session)
{
    frit_device_desc desc = {.struct_size = sizeof(desc)};
    frit_record_info record;
    frit_op_info row;

    row_of(op, &row, &record);
    op_show(&row, &record);
    printf("\n%s, revision %" PRIu32 ", of plugin %s, %" PRIu32 " operands, %" PRIu32
           " results, %" PRIu32 " attributes%s\n",
           op->decomposes ? "composite" : "core", op->rev, op->plugin, op->n_in, op->n_out,
           op->n_attrs, op->traits & FRIT_OP_ORDERED ? ", has effects" : "");
    for (uint64_t i = 0; frit_device_info_at(session->host, i, &desc) == FRIT_OK; i++) {
        bool wanted = !session->device || !strcmp(desc.name, frit_device_name(session->device));
        frit_device *device;

        if (!wanted || desc.reason || frit_device_open(session->host, desc.name, &device, NULL))
            continue;
        printf("  %-14s %s\n", desc.name, support_of(device, op));
        frit_device_close(device);
    }
}

void custom_print(struct json *json, const struct session *session, const char *only)
{
    frit_custom_desc op = {.struct_size = sizeof(op)};
    frit_record_info record;
    frit_op_info row;

    json_list(json, "custom");
    for (uint64_t i = 0; frit_custom_at(session->host, i, &op) == FRIT_OK; i++) {
        if (only && strcmp(op.name, only) != 0)
            continue;
        json_object(json, NULL);
        json_text(json, "name", op.name);
        json_text(json, "plugin", op.plugin);
        json_uint(json, "rev", op.rev);
        json_text(json, "meaning", op.meaning);
        row_of(&op, &row, &record);
        op_print(json, &row, &record);
        if (session->device)
            json_text(json, "support", support_of(session->device, &op));
        json_close(json);
    }
    json_close(json);
}
