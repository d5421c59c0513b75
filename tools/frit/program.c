/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "invocation.h"

/* Of a file, or of the recording in a folder. */
static frit_status load_graph(const char *path, frit_graph **out, frit_err *err)
{
    struct str recording = {0};
    struct stat about;
    frit_status status;

    if (stat(path, &about) || !S_ISDIR(about.st_mode))
        return frit_graph_load(path, out, err);
    str_addf(&recording, "%s/trace.frit", path);
    status = recording.failed ? FRIT_NO_HOST_MEMORY : frit_graph_load(recording.text, out, err);
    if (recording.failed)
        snprintf(err->text, sizeof(err->text), "no memory");
    str_fini(&recording);
    return status;
}

frit_status program_open(struct program *program, const char *path, frit_err *err)
{
    frit_port port = {.struct_size = sizeof(port)};
    frit_status status;
    uint64_t n = 0;

    *program = (struct program){0};
    status = load_graph(path, &program->graph, err);
    if (status)
        return status;
    while (frit_graph_input_at(program->graph, n, &port) == FRIT_OK)
        n++;
    program->inputs = calloc(n + 1, sizeof(*program->inputs));
    program->sources = calloc(n + 1, sizeof(*program->sources));
    program->tensors = calloc(n + 1, sizeof(frit_tensor *));
    if (!program->inputs || !program->sources || !program->tensors) {
        snprintf(err->text, sizeof(err->text), "no memory");
        return FRIT_NO_HOST_MEMORY;
    }
    program->n_inputs = n;
    for (uint64_t i = 0; i < n; i++) {
        program->inputs[i].struct_size = sizeof(frit_port);
        frit_graph_input_at(program->graph, i, &program->inputs[i]);
    }
    return FRIT_OK;
}

int program_begin(struct program *program, const struct invocation *in, const char *path,
                  int (*sources)(struct program *program, const struct invocation *in))
{
    frit_err err = {.struct_size = sizeof(err)};

    if (!program_open(program, path, &err))
        return sources(program, in);
    fprintf(stderr, "%s\n", err.text);
    return CLI_FAILED;
}

void program_drop(struct program *program)
{
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        frit_release(program->tensors[i]);
        program->tensors[i] = NULL;
    }
}

void program_close(struct program *program)
{
    program_drop(program);
    free(program->inputs);
    free(program->sources);
    free(program->tensors);
    frit_graph_free(program->graph);
}

/* Shapes of models may depend on the elements of short inputs.  NULL: too long, or not read. */
static void *short_elements(frit_tensor *tensor)
{
    enum { MOST = 1024 };
    uint64_t bytes = frit_tensor_bytes(tensor);
    void *elements = bytes <= MOST ? calloc(1, bytes + 1) : NULL;
    frit_err err = {.struct_size = sizeof(err)};

    if (elements && frit_read(tensor, elements, bytes, &err)) {
        free(elements);
        elements = NULL;
    }
    return elements;
}

/* All that keeps a model from running, where it is more than the error says. */
static void print_problems(const struct program *program)
{
    char *problems = frit_graph_problems(program->graph);

    if (problems && strchr(problems, '\n')[1])
        fputs(problems, stderr);
    frit_free(problems);
}

/* Where an extent is an assumption that nobody has made: so that it is not taken for the model's.
 */
static void print_assumed(const struct program *program)
{
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        const frit_port *port = &program->inputs[i];
        char type[128];
        bool open = false;

        for (int64_t k = 0; k < port->dims.rank; k++)
            open = open || (!program->tensors[i] && port->dims.dim[k] < 0);
        if (!open)
            continue;
        program_type(port, type, sizeof(type));
        fprintf(stderr,
                "Dims that %s %s leaves open are taken as 2; --in %s=zeros:DIMS gives others.\n",
                port->name, type, port->name);
    }
}

/* Binds the types of input tensors that exist; others are left open. */
frit_status program_bind(struct program *program, frit_err *err)
{
    frit_status status;

    for (uint64_t i = 0; i < program->n_inputs; i++) {
        frit_port *port = &program->inputs[i];

        port->dtype = FRIT_NO_DTYPE;
        if (program->tensors[i]) {
            port->dtype = frit_tensor_dtype(program->tensors[i]);
            port->dims = frit_tensor_dims(program->tensors[i]);
            port->data = short_elements(program->tensors[i]);
        }
    }
    status = frit_graph_bind(program->graph, program->inputs, program->n_inputs, err);
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        free((void *)(uintptr_t)program->inputs[i].data);
        program->inputs[i].data = NULL;
    }
    if (status) {
        print_problems(program);
        print_assumed(program);
        return status;
    }
    for (uint64_t i = 0; i < program->n_inputs; i++)
        frit_graph_input_at(program->graph, i, &program->inputs[i]);
    program->n_outputs = 0;
    while (frit_graph_output_at(program->graph, program->n_outputs,
                                &(frit_port){.struct_size = sizeof(frit_port)}) == FRIT_OK)
        program->n_outputs++;
    return FRIT_OK;
}

/* ---- sources ---- */

static bool is_name(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* "there is no input 'y'; did you mean 'x'?" */
static int unknown_name(const struct invocation *in, const char *what, const char *const *names,
                        const char *word, size_t length)
{
    char name[64];
    const char *nearest;
    size_t n = 0;

    while (names[n])
        n++;
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    nearest = str_nearest(name, names, n);
    if (nearest)
        return fail_usage(in, "there is no %s '%s'; did you mean '%s'?", what, name, nearest);
    return fail_usage(in, "there is no %s '%s'", what, name);
}

/* A name has precedence over an archive that has other inputs, too. */
enum { NOT_TAKEN, TAKEN_FROM_ARCHIVE, TAKEN };

/* Who has been given a value by an option. */
struct taking {
    struct program *program;
    const struct invocation *in;
    unsigned char *taken; /* per input */
    uint64_t next;        /* the first input that a value without a name may be for */
};

static int unknown_input(const struct taking *t, const char *value, size_t length)
{
    const char **names = calloc(t->program->n_inputs + 1, sizeof(*names));
    int status;

    if (!names)
        return fail_command(t->in, "no memory");
    for (uint64_t k = 0; k < t->program->n_inputs; k++)
        names[k] = t->program->inputs[k].name;
    status = unknown_name(t->in, "input", names, value, length);
    free(names);
    return status;
}

static struct source read_source(const char *text)
{
    static const struct {
        const char *word;
        enum source_kind kind;
    } words[] = {{"random", SOURCE_RANDOM}, {"zeros", SOURCE_ZEROS}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i].word);

        if (strncmp(text, words[i].word, length) == 0 && !text[length])
            return (struct source){words[i].kind, NULL};
        if (strncmp(text, words[i].word, length) == 0 && text[length] == ':')
            return (struct source){words[i].kind, text + length + 1};
    }
    return (struct source){SOURCE_FILE, text};
}

/* The index of an input; n_inputs: none has this name. */
static uint64_t find_input(const struct program *program, const char *name, size_t length)
{
    uint64_t i = 0;

    while (i < program->n_inputs && !is_name(program->inputs[i].name, name, length))
        i++;
    return i;
}

static int take_named(const struct taking *t, const char *value, size_t length, const char *text)
{
    const struct program *program = t->program;
    uint64_t i = find_input(program, value, length);

    if (i == program->n_inputs)
        return unknown_input(t, value, length);
    if (t->taken[i] == TAKEN)
        return fail_usage(t->in, "input '%s' is given twice", program->inputs[i].name);
    t->taken[i] = TAKEN;
    program->sources[i] = read_source(text);
    return CLI_FINE;
}

/* A value without a name: of the next input that is no constant. */
static int take_next(struct taking *t, const char *text)
{
    while (t->next < t->program->n_inputs && t->program->inputs[t->next].is_const)
        t->next++;
    if (t->next == t->program->n_inputs)
        return fail_usage(t->in, "'%s' is one input too many", text);
    if (t->taken[t->next])
        return fail_usage(t->in, "'%s' would be input '%s', which is given by name", text,
                          t->program->inputs[t->next].name);
    t->taken[t->next] = TAKEN;
    t->program->sources[t->next++] = read_source(text);
    return CLI_FINE;
}

bool program_is_archive(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".npz") == 0;
}

/* An archive without a name: the inputs that it has tensors for. */
static int take_archive(const struct taking *t, const char *path)
{
    frit_npz_desc desc = {.struct_size = sizeof(desc)};
    frit_err err = {.struct_size = sizeof(err)};
    uint64_t found = 0;
    frit_npz *npz;

    if (frit_load_npz(path, &npz, &err))
        return fail_command(t->in, "%s", err.text);
    for (uint64_t i = 0; frit_npz_at(npz, i, &desc) == FRIT_OK; i++) {
        uint64_t k = find_input(t->program, desc.name, strlen(desc.name));

        if (k == t->program->n_inputs || t->taken[k])
            continue;
        t->program->sources[k] = (struct source){SOURCE_FILE, path};
        t->taken[k] = TAKEN_FROM_ARCHIVE;
        found++;
    }
    frit_npz_free(npz);
    return found ? CLI_FINE : fail_usage(t->in, "%s has no tensor named like an input", path);
}

static int take_source(struct taking *t, const char *value)
{
    const char *equals = strchr(value, '=');
    bool is_input = find_input(t->program, value, strlen(value)) < t->program->n_inputs;

    if (!equals && program_is_archive(value))
        return take_archive(t, value);
    if (!equals && *value && !is_input)
        return take_next(t, value);
    if (!equals || !equals[1] || equals == value)
        return fail_usage(t->in, "'%s' is not NAME=FILE.npy, NAME=random or NAME=zeros", value);
    return take_named(t, value, (size_t)(equals - value), equals + 1);
}

/* "*=random" and "*=zeros": all inputs that no other option names, but constants. */
static int take_others(const struct taking *t, const char *text)
{
    struct source source = read_source(text);

    if (source.kind == SOURCE_FILE)
        return fail_usage(t->in, "'*=%s' is not *=random or *=zeros", text);
    for (uint64_t i = 0; i < t->program->n_inputs; i++)
        if (!t->taken[i] && !t->program->inputs[i].is_const)
            t->program->sources[i] = source;
    return CLI_FINE;
}

void program_type(const frit_port *port, char *text, size_t capacity)
{
    size_t used = 0;

    text[0] = '\0';
    if (port->dtype != FRIT_NO_DTYPE)
        used += (size_t)snprintf(text, capacity, "%s", frit_dtype_name(port->dtype));
    for (int64_t i = 0; i < port->dims.rank && used + 24 < capacity; i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s", i ? ", " : "[");
        if (port->dims.dim[i] < 0)
            used += (size_t)snprintf(text + used, capacity - used, "?");
        else
            used += (size_t)snprintf(text + used, capacity - used, "%" PRId64, port->dims.dim[i]);
    }
    if (port->dims.rank > 0 && used + 2 < capacity)
        snprintf(text + used, capacity - used, "]");
}

/* Reports the inputs and their sources. */
static int missing_value(const struct program *program, const struct invocation *in)
{
    fail_command(in, "an input has no value; the inputs are:");
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        static const char *const words[] = {"no value", "", "", "random", "zeros"};
        const struct source *source = &program->sources[i];
        char type[128];

        if (program->inputs[i].is_const && source->kind != SOURCE_NONE)
            continue;
        program_type(&program->inputs[i], type, sizeof(type));
        fprintf(stderr, "  %-12s %-20s %s\n", program->inputs[i].name, type,
                source->file ? source->file : words[source->kind]);
    }
    fprintf(stderr,
            "Give it with --in NAME=FILE.npy, --in NAME=random or --in NAME=zeros, with dims where "
            "they are open (random:2,8), or all of them with --in '*=random'.\n");
    return CLI_MISUSED;
}

/* Sets sources from --in options. */
static int take_sources(struct program *program, const struct invocation *in)
{
    struct taking t = {
        .program = program, .in = in, .taken = calloc(program->n_inputs + 1, sizeof(*t.taken))};
    const char *value, *others = NULL;
    int status = CLI_FINE, at = 0;

    if (!t.taken)
        return fail_command(in, "no memory");
    while ((value = invocation_next(in, "--in", &at)) && status == CLI_FINE) {
        if (strncmp(value, "*=", 2) == 0)
            others = value + 2;
        else
            status = take_source(&t, value);
    }
    if (others && status == CLI_FINE)
        status = take_others(&t, others);
    free(t.taken);
    return status;
}

int program_sources(struct program *program, const struct invocation *in)
{
    int status;

    for (uint64_t i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].file || program->inputs[i].is_const)
            program->sources[i] = (struct source){SOURCE_DEFAULT, program->inputs[i].file};
    status = take_sources(program, in);
    for (uint64_t i = 0; i < program->n_inputs && status == CLI_FINE; i++)
        if (program->sources[i].kind == SOURCE_NONE)
            status = missing_value(program, in);
    return status;
}

int program_shapes(struct program *program, const struct invocation *in)
{
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        const frit_port *port = &program->inputs[i];
        bool in_text = port->is_const && !port->file;

        program->sources[i] = (struct source){in_text ? SOURCE_DEFAULT : SOURCE_ZEROS, NULL};
    }
    return take_sources(program, in);
}

int64_t program_output(const struct program *program, const struct invocation *in, const char *name,
                       size_t length)
{
    const char **names = calloc(program->n_outputs + 1, sizeof(*names));
    int64_t found = -1;

    if (!names) {
        fail_command(in, "no memory");
        return -1;
    }
    for (uint64_t i = 0; i < program->n_outputs; i++) {
        frit_port port = {.struct_size = sizeof(port)};

        frit_graph_output_at(program->graph, i, &port);
        names[i] = port.name;
        if (is_name(port.name, name, length))
            found = (int64_t)i;
    }
    if (found < 0)
        unknown_name(in, "output", names, name, length);
    free(names);
    return found;
}

/* ---- tensors ---- */

/* A tensor of a packed type; files that `bytes` comes from do not know which. */
static frit_tensor *packed_tensor(frit_tensor *bytes, const frit_port *port)
{
    return frit_as_packed(frit_take(bytes), port->dtype, port->dims);
}

static bool is_packed(const frit_port *port)
{
    return frit_dtype_info_of(port->dtype).cls == FRIT_DTYPE_PACKED;
}

/* Random bits, or zeros. */
static frit_tensor *make_packed(frit_device *device, const frit_port *port, bool random)
{
    frit_dims dims = {.rank = 1};
    int64_t count = 1;
    frit_tensor *bytes;

    for (int64_t i = 0; i < port->dims.rank; i++)
        count *= port->dims.dim[i];
    dims.dim[0] = (int64_t)frit_storage_bytes(port->dtype, count);
    if (!random)
        return packed_tensor(frit_zeros(device, FRIT_U8, dims), port);
    bytes = frit_random_int_i(device, FRIT_I16, dims, 0, 256);
    return packed_tensor(frit_cast(frit_take(bytes), FRIT_U8), port);
}

/* Uniform in 0..1 for floats, 0..99 for integers, either for bool. */
static frit_tensor *random_tensor(frit_device *device, uint32_t dtype, frit_dims dims)
{
    switch (frit_dtype_info_of(dtype).cls) {
    case FRIT_DTYPE_FLOAT:
        return frit_random_uniform(device, dtype, dims, 0, 1);
    case FRIT_DTYPE_BOOL:
        return frit_random_bernoulli(device, dtype, dims, 0.5);
    default:
        return frit_random_int_i(device, dtype, dims, 0, 100);
    }
}

/* Of a file, or of an archive the tensor that is named like the input. */
static frit_tensor *load_tensor(frit_device *device, const char *file, const char *name)
{
    struct str member = {0};
    frit_tensor *loaded;

    if (!program_is_archive(file))
        return frit_load_npy(device, file);
    str_addf(&member, "%s:%s", file, name);
    loaded = frit_load_npy(device, member.failed ? file : member.text);
    str_fini(&member);
    return loaded;
}

static frit_tensor *make_tensor(const struct program *program, uint64_t i, frit_device *device)
{
    const frit_port *port = &program->inputs[i];
    frit_tensor *loaded;

    if (is_packed(port) && program->sources[i].kind > SOURCE_FILE)
        return make_packed(device, port, program->sources[i].kind == SOURCE_RANDOM);
    switch (program->sources[i].kind) {
    case SOURCE_DEFAULT:
        return frit_graph_default(program->graph, i, device);
    case SOURCE_FILE:
        loaded = load_tensor(device, program->sources[i].file, port->name);
        return is_packed(port) && !frit_tensor_status(loaded) ? packed_tensor(loaded, port)
                                                              : loaded;
    case SOURCE_RANDOM:
        return random_tensor(device, port->dtype, port->dims);
    default:
        return frit_zeros(device, port->dtype, port->dims);
    }
}

/* Whether the dims are known before binding: of a file, or given. */
static bool has_dims(const struct source *source)
{
    return source->kind <= SOURCE_FILE || source->file;
}

/* "1,3,224,224"; CLI_MISUSED after a message. */
static int read_dims(const struct invocation *in, const char *text, frit_dims *out)
{
    const char *at = text;

    *out = (frit_dims){0};
    while (*at && out->rank < FRIT_MAX_RANK) {
        char *end;
        long long extent = strtoll(at, &end, 10);

        if (end == at || extent < 0 || (*end && *end != ','))
            break;
        out->dim[out->rank++] = extent;
        at = *end ? end + 1 : end;
    }
    return *at ? fail_usage(in, "'%s' are no dims, such as 1,3,224,224", text) : CLI_FINE;
}

/* Creates the tensors that have a value of their own, or those whose dims follow from these. */
static int make_tensors(struct program *program, const struct invocation *in, frit_device *device,
                        bool known)
{
    for (uint64_t i = 0; i < program->n_inputs; i++) {
        const struct source *source = &program->sources[i];

        if (has_dims(source) != known)
            continue;
        if (known && source->kind > SOURCE_FILE &&
            read_dims(in, source->file, &program->inputs[i].dims))
            return CLI_MISUSED;
        program->tensors[i] = make_tensor(program, i, device);
        if (frit_tensor_status(program->tensors[i]))
            return fail_command(in, "input %s: %s", program->inputs[i].name,
                                frit_tensor_error(program->tensors[i]));
    }
    return CLI_FINE;
}

int program_feed(struct program *program, const struct invocation *in,
                 const struct session *session)
{
    frit_err err = {.struct_size = sizeof(err)};
    int status = make_tensors(program, in, session->device, true);

    /* Files determine dims, and binding infers those of generated inputs. */
    if (status == CLI_FINE && program_bind(program, &err)) {
        fprintf(stderr, "%s\n", err.text);
        status = CLI_FAILED;
    }
    if (status == CLI_FINE)
        status = make_tensors(program, in, session->device, false);
    if (status == CLI_FINE && frit_sync(session->device, &err))
        status = fail_command(in, "inputs: %s", err.text);
    return status;
}

int program_run(const struct program *program, const struct invocation *in,
                const struct session *session, frit_tensor **outputs)
{
    frit_err err = {.struct_size = sizeof(err)};

    if (frit_graph_run(program->graph, session->device, program->tensors, program->n_inputs,
                       outputs, program->n_outputs, &err))
        return fail_command(in, "%s", err.text);
    return frit_sync(session->device, &err) ? fail_command(in, "%s", err.text) : CLI_FINE;
}
