/* SPDX-License-Identifier: Apache-2.0 */
/* Models as text programs with their constants beside them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "api/graph.h"
#include "api/report.h"
#include "api/source.h"
#include "base/fail.h"
#include "base/file.h"
#include "file/npy.h"
#include "graph/dtype.h"
#include "graph/text/text.h"

/* NumPy has no packed types: their bytes are written. */
static frit_status save_constant(const char *folder, const struct graph_value *value, frit_err *err)
{
    struct op_type type = value->type;
    struct str path = {0};
    frit_status st;

    if (dtype_class(type.dtype) == FRIT_DTYPE_PACKED)
        source_bytes_type(&type);
    str_addf(&path, "%s/%s", folder, value->file);
    st = path.failed ? fail_memory(err, 0) : npy_write_file(path.text, &type, value->data, err);
    str_fini(&path);
    return st;
}

/* The name of the program: the model's without its folder and ending. */
static void add_name(const char *model, struct str *out)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model;
    const char *dot = strrchr(name, '.');

    str_add(out, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
    str_addf(out, ".frit");
}

static frit_status save_text(const frit_graph *graph, const char *folder, frit_err *err)
{
    struct str text = {0}, path = {0};
    frit_status st = FRIT_OK;
    int cause = 0;

    graph_print(&graph->graph, &text);
    str_addf(&path, "%s/", folder);
    add_name(graph->name, &path);
    if (text.failed || path.failed) {
        st = fail_memory(err, 0);
    } else {
        const struct file_part part = {text.text, text.length};

        cause = file_replace(AT_FDCWD, path.text, FILE_SHARED, &part, 1);
        if (cause)
            st = fail(err, FRIT_IO, "%s: cannot be written: %s", path.text, strerror(cause));
    }
    str_fini(&text);
    str_fini(&path);
    return st;
}

frit_status frit_graph_save(const frit_graph *graph, const char *folder, frit_err *err)
{
    HOLD_CANCEL;

    if (process_is_barred())
        return report_barred(err, "graph_save");
    if (!graph || !folder)
        return fail(err, FRIT_INVALID, "graph_save: the %s is NULL", graph ? "folder" : "graph");
    if (!graph->bound || !graph->model)
        return fail(err, graph->bound ? FRIT_UNSUPPORTED : FRIT_INVALID, "graph_save: %s",
                    graph->bound ? "the program is text already" : "bind the graph first");
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail(err, FRIT_IO, "%s: cannot be made: %s", folder, strerror(errno));
    for (uint32_t i = 0; i < graph->graph.n_values; i++) {
        const struct graph_value *value = &graph->graph.values[i];

        if (value->kind == GRAPH_CONST && value->data && value->file)
            TRY(save_constant(folder, value, err));
    }
    return save_text(graph, folder, err);
}
