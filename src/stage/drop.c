/* brigade-stage drop: ends a job on this node. Reads its counters, prints them, removes its folder,
 * and with the last job the staged folder.
 *
 * Launchers cut what they forward: Slurm's line buffer holds 1,024 bytes. So the result is one or
 * more JSON objects, one a line, none longer than LINE_BYTES; slots and misses are spread over
 * them, "host", "found" (the job was here) and "removed" are in each.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "stage/commands.h"
#include "stage/folder.h"
#include "base/json.h"
#include "view/state.h"

#define LINE_BYTES 1000u

static const char *const cause_names[] = {
#define X(name, words) #name,
    BRG_MISS_CAUSES(X)
#undef X
};

struct drop {
    struct json slots, misses; /* objects, each followed by a newline */
    struct json space, fork;   /* what became of the namespace view, of --fork, if asked for */
    struct json away;          /* how many programs were left alone in containers, if any */
    int found, removed;
};

static void add_slot(struct json *j, const struct brg_slot *s)
{
    json_add(j,
             "{\"rank\":%" PRId32 ",\"pid\":%" PRIu32 ",\"start_ns\":%" PRIu64
             ",\"last_load_ns\":%" PRIu64 ",\"ready_ns\":%" PRIu64 ",\"hits\":%" PRIu64
             ",\"loads\":%" PRIu64 ",\"processes\":%" PRIu64 ",\"misses\":{",
             s->rank, s->pid, s->start_ns, s->last_load_ns, s->ready_ns, s->hits, s->loads,
             s->processes);
    const char *comma = "";
    for (int c = 0; c < BRG_MISS_COUNT; c++) {
        if (!s->misses[c])
            continue;
        json_add(j, "%s\"%s\":%" PRIu64, comma, cause_names[c], s->misses[c]);
        comma = ",";
    }
    const char *forked = s->forked == BRG_FORK_DONE ? "true" : "false";
    json_add(j, s->forked ? "},\"forked\":%s}\n" : "}}\n", forked);
}

static int miss_compare(const void *a, const void *b)
{
    const struct brg_miss *x = a, *y = b;
    if (x->cause != y->cause)
        return x->cause < y->cause ? -1 : 1;
    int by_op = strncmp(x->op, y->op, sizeof x->op);
    return by_op ? by_op : strncmp(x->path, y->path, sizeof x->path);
}

static void add_misses(struct json *j, struct brg_miss *misses, uint32_t n)
{
    qsort(misses, n, sizeof *misses, miss_compare);
    for (uint32_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && miss_compare(&misses[i], &misses[next]) == 0;)
            next++;
        const struct brg_miss *m = &misses[i];
        if (m->cause >= BRG_MISS_COUNT || !m->op[0])
            continue; /* its rank died while it wrote */
        json_add(j, "{\"op\":");
        json_add_string(j, m->op, strnlen(m->op, sizeof m->op));
        json_add(j, ",\"cause\":\"%s\",\"count\":%" PRIu32 ",\"path\":", cause_names[m->cause],
                 next - i);
        json_add_string(j, m->path, strnlen(m->path, sizeof m->path));
        json_add(j, "}\n");
    }
}

static const char *why_words(uint32_t why)
{
    switch ((enum brg_namespace_why)why) {
#define BRG_X(name, words) \
    case BRG_NAMESPACE_##name: return words;
        BRG_NAMESPACE_WHYS(BRG_X)
#undef BRG_X
    case BRG_NAMESPACE_NONE: break;
    }
    return "";
}

static void add_namespace(struct json *j, const struct brg_state *s)
{
    const char *words = why_words(s->namespace_why);
    if (!s->namespace_ranks && !*words)
        return;
    json_add(j, "{\"ranks\":%" PRIu32 ",\"covers\":%" PRIu32 ",\"why\":", s->namespace_ranks,
             s->namespace_covers);
    if (*words)
        json_add_string(j, words, strlen(words));
    else
        json_add(j, "null");
    const char *error = s->namespace_errno ? strerror((int)s->namespace_errno) : "";
    json_add(j, ",\"error\":");
    json_add_string(j, error, strlen(error));
    json_add(j, "}");
}

static void add_fork(struct json *j, const struct brg_state *s)
{
    const struct brg_fork *f = &s->fork;
    if (!f->taken && !f->n_words && !f->warm_ns)
        return;
    json_add(j,
             "{\"forked\":%u,\"refused\":%u,\"saved_bytes\":%" PRIu64 ",\"warm_ns\":%" PRIu64
             ",\"why\":",
             f->forked, f->refused, f->saved_bytes, f->warm_ns);
    if (f->taken)
        json_add_string(j, f->why, strnlen(f->why, sizeof f->why));
    else
        json_add(j, "null");
    json_add(j, ",\"words\":");
    json_add_string(j, f->words, strnlen(f->words, sizeof f->words));
    json_add(j, "}");
}

static void add_away(struct json *j, const struct brg_state *s)
{
    if (s->away)
        json_add(j, "%" PRIu32, s->away);
}

static int state_is_sound(const struct brg_state *s, uint64_t bytes)
{
    return bytes >= sizeof *s && s->magic == BRG_STATE_MAGIC && s->version == BRG_STATE_VERSION &&
           s->bytes <= bytes && s->n_slots == BRG_STATE_SLOTS && s->n_misses == BRG_STATE_MISSES &&
           s->bytes == brg_state_bytes(s->n_entries) && s->slots_off == sizeof *s &&
           s->misses_off == s->bytes - (uint64_t)s->n_misses * sizeof(struct brg_miss);
}

/* Called with the folder locked. Ranks may still be counting: the mapping is a private copy. */
static void read_state(void *user, int fd)
{
    struct drop *d = user;
    struct stat st;
    d->found = 1;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct brg_state))
        return;
    struct brg_state *s =
        mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (s == MAP_FAILED)
        return;
    if (state_is_sound(s, (uint64_t)st.st_size)) {
        const struct brg_slot *slots = brg_state_slots(s);
        for (uint32_t i = 0; i < s->n_slots; i++)
            if (slots[i].pid)
                add_slot(&d->slots, &slots[i]);
        uint32_t n = s->next_miss < s->n_misses ? s->next_miss : s->n_misses;
        add_misses(&d->misses, brg_state_misses(s), n);
        add_namespace(&d->space, s);
        add_fork(&d->fork, s);
        add_away(&d->away, s);
    }
    munmap(s, (size_t)st.st_size);
}

static void begin_line(struct json *line, const char *list)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    json_add(line, "{\"host\":");
    json_add_string(line, host, strlen(host));
    json_add(line, ",\"%s\":[", list);
}

static void end_object(struct json *line, const struct drop *d)
{
    json_add(line, ",\"found\":%s,\"removed\":%s}", d->found ? "true" : "false",
             d->removed ? "true" : "false");
    json_print(line, STDOUT_FILENO);
}

static void end_line(struct json *line, const struct drop *d, const char *other)
{
    json_add(line, "],\"%s\":[]", other);
    end_object(line, d);
}

/* Prints the objects of one list, as many a line as fit. Returns the number of lines. */
static int print_list(const struct drop *d, const struct json *objects, const char *list,
                      const char *other)
{
    struct json line = {0};
    int lines = 0;
    for (size_t at = 0, length; at < objects->n; at += length + 1) {
        length = strcspn(objects->text + at, "\n");
        if (line.n && line.n + length + 64 > LINE_BYTES) {
            end_line(&line, d, other);
            lines++;
        }
        if (!line.n)
            begin_line(&line, list);
        else
            json_add(&line, ",");
        json_add(&line, "%.*s", (int)length, objects->text + at);
    }
    if (line.n) {
        end_line(&line, d, other);
        lines++;
    }
    return lines;
}

/* A line with an object under `name`, if there is one. Returns the number of lines. */
static int print_object(const struct drop *d, const struct json *object, const char *name)
{
    struct json line = {0};
    if (!object->n)
        return 0;
    begin_line(&line, "slots");
    json_add(&line, "],\"%s\":%s,\"misses\":[]", name, object->text);
    end_object(&line, d);
    return 1;
}

int drop_run(const struct drop_options *options)
{
    struct drop d = {0};
    struct folder f;
    struct brg_error err = {0};
    int rc = folder_job_check(options->job, &err);
    if (!rc)
        rc = folder_open(&f, options->base, 0, &err);
    if (!rc) {
        if (options->also)
            d.found = dead_drop(&f, options->id, options->also);
        rc = folder_job_remove(&f, options->id, options->job, options->keep, read_state, &d,
                               &d.removed, &err);
        folder_sweep(&f, NULL);
        dead_sweep(&f, &options->dead, options->job);
        folder_close(&f);
    }
    if (rc == -ENOENT)
        rc = 0; /* nothing was staged here, or another process has dropped it */
    if (rc)
        fprintf(stderr, "brigade-stage: %s\n", err.text);
    int lines = print_object(&d, &d.space, "namespace") + print_object(&d, &d.fork, "fork") +
                print_object(&d, &d.away, "away") + print_list(&d, &d.slots, "slots", "misses") +
                print_list(&d, &d.misses, "misses", "slots");
    if (!lines) {
        struct json line = {0};
        begin_line(&line, "slots");
        end_line(&line, &d, "misses");
    }
    free(d.away.text);
    free(d.fork.text);
    free(d.slots.text);
    free(d.misses.text);
    free(d.space.text);
    return rc ? 1 : 0;
}
