/* See report.h. Text for people goes to standard error where a rule says verbose; a line of JSON is
 * appended to the process's own file in the folder that BRIGADE_BUFFER_REPORT names, as appending
 * to one file from several nodes loses lines on some file systems. */
#include "buffer/report.h"
#include "base/decimal.h"
#include "base/json.h"
#include "buffer/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define RECORDS_MOST 1024
#define RECORD_TEXT_MOST 8192 /* of one in JSON: a path 6 bytes a byte, 40 numbers */

int report_wanted;
static struct record *records, unwatched;
static unsigned n_records;
static struct lock records_lock;
static const char *report_path;
static int pid; /* whose the records are: a clone has its parent's memory, and no part in them */
static int written;

void report_start(void)
{
    report_path = getenv("BRIGADE_BUFFER_REPORT");
}

void report_forked(void)
{
    for (unsigned i = 0; i < n_records; i++)
        records[i] = (struct record){0};
    n_records = 0;
    pid = 0;
    records_lock = (struct lock){0};
    written = 0;
}

struct record *report_of(const char *path, int verbose)
{
    if (!verbose && !report_path)
        return &unwatched;
    lock_take(&records_lock);
    if (!records)
        records = sys_map(RECORDS_MOST * sizeof *records, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1);
    report_wanted = 1;
    pid = pid ? pid : sys_getpid();
    struct record *r = NULL;
    for (unsigned i = 0; records && i < n_records && !r; i++)
        if (strncmp(records[i].path, path, sizeof records->path - 1) == 0)
            r = &records[i];
    if (!r && records && n_records < RECORDS_MOST) {
        r = &records[n_records++];
        snprintf(r->path, sizeof r->path, "%s",
                 n_records < RECORDS_MOST ? path : "(all further files)");
        r->verbose = (char)verbose;
    } else if (!r)
        r = records ? &records[n_records - 1] : &unwatched;
    lock_leave(&records_lock);
    return r;
}

static struct decimal seconds(uint64_t ns)
{
    return decimal_seconds(ns, 3);
}

static struct decimal percent(uint64_t part, uint64_t whole)
{
    return decimal_of(whole ? (part * 1000 + whole / 2) / whole : 0, 1);
}

static void say(const struct record *r)
{
    char text[1200];
    int n = snprintf(
        text, sizeof text,
        "brigade buffer: %s\n"
        "  read   %8llu calls %12llu bytes %6s%% from memory %9s s\n"
        "  write  %8llu calls %12llu bytes %6s%% into memory %9s s\n"
        "  behind %8llu writes, %llu reads ahead (%llu used), %s s; waited %llu times, %s s\n",
        r->path, (unsigned long long)r->reads, (unsigned long long)r->read_bytes,
        percent(r->read_hits, r->reads).text, seconds(r->read_ns).text,
        (unsigned long long)r->writes, (unsigned long long)r->write_bytes,
        percent(r->writes - r->direct_writes, r->writes).text, seconds(r->write_ns).text,
        (unsigned long long)r->flushes, (unsigned long long)r->ahead,
        (unsigned long long)r->ahead_used, seconds(r->background_ns).text,
        (unsigned long long)r->waits, seconds(r->wait_ns).text);
    if (r->dropped && strcmp(r->dropped, "exit") != 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "  left to the kernel: %s\n", r->dropped);
    if (r->error)
        n += snprintf(text + n, sizeof text - (size_t)n, "  failed in the background: %s\n",
                      strerror(r->error));
    sys_write(2, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void add_sizes(struct json *j, const char *name, const uint64_t *sizes)
{
    json_add(j, ",\"%s\":[", name);
    for (int i = 0; i < REPORT_SIZES; i++)
        json_add(j, "%s%llu", i ? "," : "", (unsigned long long)sizes[i]);
    json_add(j, "]");
}

#define ADD(name) json_add(j, ",\"" #name "\":%llu", (unsigned long long)r->name)
#define ADD_S(name) json_add(j, ",\"" #name "_s\":%s", decimal_seconds(r->name##_ns, 6).text)

static void add_all(struct json *j, const struct utsname *host)
{
    json_add(j, "{\"host\":");
    json_add_string(j, host->nodename, strlen(host->nodename));
    json_add(j, ",\"pid\":%d,\"files\":[", sys_getpid());
    for (unsigned i = 0; i < n_records; i++) {
        const struct record *r = &records[i];
        json_add(j, "%s{\"path\":", i ? "," : "");
        json_add_string(j, r->path, strlen(r->path));
        json_add(j, ",\"left\":");
        if (r->dropped && strcmp(r->dropped, "exit") != 0)
            json_add_string(j, r->dropped, strlen(r->dropped));
        else
            json_add(j, "null");
        ADD(opens);
        ADD(reads);
        ADD(read_bytes);
        ADD(read_hits);
        ADD(writes);
        ADD(write_bytes);
        ADD(write_hits);
        ADD(seeks);
        ADD(syncs);
        ADD(waits);
        ADD(fills);
        ADD(fill_bytes);
        ADD(fills_past_cache);
        ADD(ahead);
        ADD(ahead_used);
        ADD(flushes);
        ADD(flush_bytes);
        ADD(direct_reads);
        ADD(direct_writes);
        ADD(errors);
        json_add(j, ",\"error\":%d", r->error);
        ADD_S(read);
        ADD_S(write);
        ADD_S(wait);
        ADD_S(background);
        add_sizes(j, "read_sizes", r->read_sizes);
        add_sizes(j, "write_sizes", r->write_sizes);
        json_add(j, "}");
    }
    json_add(j, "]}\n");
}

static void write_all(int fd, const char *text, size_t n)
{
    while (n) {
        long r = sys_write(fd, text, n);
        if (r <= 0 && r != -EINTR)
            return;
        text += r > 0 ? r : 0;
        n -= r > 0 ? (size_t)r : 0;
    }
}

/* Into memory of its own: _exit may have interrupted the C library's malloc. */
static void append_json(void)
{
    struct utsname host;
    char path[4096];
    uname(&host);
    snprintf(path, sizeof path, "%s/%s.%d.json", report_path, host.nodename, sys_getpid());
    struct json j = {.room = (1 + (size_t)n_records) * RECORD_TEXT_MOST};
    j.text = sys_map(j.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!j.text)
        return;
    add_all(&j, &host);
    int fd = sys_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        write_all(fd, j.text, j.n);
        sys_close(fd);
    }
    sys_unmap(j.text, j.room);
}

void report_write(void)
{
    if (pid != sys_getpid())
        return;
    if (__atomic_exchange_n(&written, 1, __ATOMIC_ACQ_REL))
        return;
    for (unsigned i = 0; i < n_records; i++)
        if (records[i].verbose)
            say(&records[i]);
    if (report_path && n_records)
        append_json();
}
