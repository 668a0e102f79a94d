/* What `put` tells: one JSON object from rank 0, or, when the nodes have lost each other, a line on
 * standard error from each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "stage/put.h"

#define NAME_BYTES 80u /* of a path that is named */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static uint64_t peak_bytes(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *in = fopen("/proc/self/status", "re");
    while (in && fgets(line, sizeof line, in))
        sscanf(line, "VmHWM: %" SCNu64, &kib);
    if (in)
        fclose(in);
    return kib * 1024;
}

static struct put_node describe(struct put *p)
{
    struct put_node node = {.already = (uint64_t)p->already,
                            .bytes = atomic_load(&p->tree.written),
                            .read_bytes = atomic_load(&p->read_bytes),
                            .peak_bytes = peak_bytes(),
                            .took_ns = brg_clock_ns() - p->options->start_ns,
                            .read_ns = atomic_load(&p->read_ns),
                            .decode_ns = atomic_load(&p->decode_ns),
                            .write_ns = atomic_load(&p->write_ns)};
    gethostname(node.host, sizeof node.host - 1);
    return node;
}

static void add_node(struct json *j, const struct put_node *n)
{
    json_add(j, "{\"host\":");
    json_add_string(j, n->host, strnlen(n->host, sizeof n->host));
    json_add(j,
             ",\"bytes\":%" PRIu64 ",\"already\":%s,\"seconds\":%.4f,\"read_bytes\":%" PRIu64
             ",\"peak_bytes\":%" PRIu64 ",\"busy\":{\"read\":%.4f,\"decode\":%.4f,\"write\":%.4f}}",
             n->bytes, n->already ? "true" : "false", seconds(n->took_ns), n->read_bytes,
             n->peak_bytes, seconds(n->read_ns), seconds(n->decode_ns), seconds(n->write_ns));
}

/* What --memory did. Long paths are cut at their start: launchers cut long lines. */
static void add_fit(const struct put *p, struct json *j)
{
    const struct brg_index *x = brg_head_index(p->head);
    json_add(j,
             ",\"memory\":{\"allowed\":%" PRIu64 ",\"whole\":%" PRIu64
             ",\"left_out_bytes\":%" PRIu64 ",\"left_out_files\":%" PRIu32 ",\"largest\":[",
             p->options->memory_bytes, p->fit.whole_bytes, p->fit.left_out_bytes,
             p->fit.left_out_files);
    for (uint32_t i = 0; i < FIT_NAMES && p->fit.largest[i] != BRG_NONE; i++) {
        struct brg_str path = brg_entries(x)[p->fit.largest[i]].path;
        uint32_t skip = path.len > NAME_BYTES ? path.len - NAME_BYTES : 0;
        json_add(j, "%s", i ? "," : "");
        json_add_string(j, brg_string(x, path) + skip, path.len - skip);
    }
    json_add(j, "]}");
}

/* In which order the nodes stood, and why. */
static void add_place(const struct put *p, struct json *j)
{
    const struct place_outcome *o = &p->placed;
    json_add(j, ",\"topology\":{\"from\":%s%s%s", o->from ? "\"" : "", o->from ? o->from : "null",
             o->from ? "\"" : "");
    if (o->from)
        json_add(j, ",\"crossings\":%" PRIu32 ",\"crossings_before\":%" PRIu32, o->crossings,
                 o->before);
    if (o->warning[0]) {
        json_add(j, ",\"warning\":");
        json_add_string(j, o->warning, strlen(o->warning));
    }
    json_add(j, "}");
}

static void print_success(struct put *p, const struct put_node *nodes)
{
    struct json j = {0};
    uint64_t read = 0, bytes = 0;
    for (uint32_t i = 0; i < p->net->size; i++) {
        read += nodes[i].read_bytes;
        bytes = nodes[i].bytes > bytes ? nodes[i].bytes : bytes;
    }
    json_add(&j, "{\"ok\":true,\"image_id\":\"%s\",\"nodes\":[", p->id);
    for (uint32_t i = 0; i < p->net->size; i++) {
        json_add(&j, "%s", i ? "," : "");
        add_node(&j, &nodes[i]);
    }
    json_add(&j,
             "],\"read_bytes\":%" PRIu64 ",\"seconds\":%.4f,\"bytes\":%" PRIu64
             ",\"image_bytes\":%" PRIu64 ",\"mpi_seconds\":%.4f",
             read, seconds(brg_clock_ns() - p->options->start_ns), bytes,
             put_header(p)->total_bytes, seconds(p->options->ready_ns - p->options->start_ns));
    if (p->options->memory_bytes != UINT64_MAX)
        add_fit(p, &j);
    add_place(p, &j);
    json_add(&j, "}");
    json_print(&j, STDOUT_FILENO);
}

static void print_failure(const struct put_failure *f)
{
    struct json j = {0};
    json_add(&j, "{\"ok\":false,\"reason\":");
    json_add_string(&j, f->reason, strnlen(f->reason, sizeof f->reason));
    json_add(&j, ",\"host\":");
    json_add_string(&j, f->host, strnlen(f->host, sizeof f->host));
    if (f->needed)
        json_add(&j, ",\"needed\":%" PRIu64 ",\"free\":%" PRIu64 "}", f->needed, f->free);
    else
        json_add(&j, ",\"needed\":null,\"free\":null,\"damaged\":%s}",
                 f->damaged ? "true" : "false");
    json_print(&j, STDOUT_FILENO);
}

static void print_early(const char *reason, const char *also)
{
    struct json j = {0};
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    json_add(&j, "{\"ok\":false,%s\"reason\":", also);
    json_add_string(&j, reason, strlen(reason));
    json_add(&j, ",\"host\":");
    json_add_string(&j, host, strlen(host));
    json_add(&j, ",\"needed\":null,\"free\":null,\"damaged\":false}");
    json_print(&j, STDOUT_FILENO);
}

void put_no_mpi(const char *reason)
{
    print_early(reason, "\"mpi\":false,");
}

void put_not_wanted(const char *why)
{
    char reason[1200];
    snprintf(reason, sizeof reason, "it was not told to begin: %s", why);
    print_early(reason, "");
}

static void gather_and_print(struct put *p)
{
    struct put_node mine = describe(p);
    struct put_node *all = p->net->rank ? NULL : calloc(p->net->size, sizeof *all);
    struct stream_request request = {0};
    struct relay_job patience = put_patience(p);
    int rc = p->net->gather(p->net, &mine, sizeof mine, all, &request);
    if (!rc)
        rc = relay_wait(&patience, &request);
    if (rc)
        p->stuck = 1; /* every node is staged all the same: rank 0 says what it knows */
    if (all)
        print_success(p, all);
    if (!rc)
        free(all);
}

void put_report(struct put *p, int failed, int stuck)
{
    if (!failed)
        gather_and_print(p);
    else if (p->net->rank == 0)
        print_failure(&p->failure);
    else if (stuck)
        fprintf(stderr, "brigade-stage: %s: %s\n", p->failure.host, p->failure.reason);
}
