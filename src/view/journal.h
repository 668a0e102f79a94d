/* The file that a process's trial records go to: appending records, counting their repeats.
 *
 * The file usually lies on a shared file system, where each write would be a request, and nothing
 * may be lost when the process is killed. So it is written through shared mappings of it: windows
 * of 64 KiB. What a thread has stored in one belongs to the kernel, which writes it out in few big
 * requests, at the latest when the process is gone, however it ended. Where the file system
 * cannot map files for writing, windows are plain memory, and each record is written at once.
 *
 *   file    | window: records, NULs | window ... | one NUL a beat | window ...
 *   record  kind\0status\0by\0path\0extra\0time_ns\0pid*00000001\0 NULs up to a multiple of 8
 *
 * What must stay true: a record's first byte is stored last, so that a torn one is none; the eight
 * digits of its count are one aligned word, counted up in place for as long as the process lives;
 * windows are never unmapped nor the file cut, because another thread may be writing. No locks:
 * safe in signal handlers and between threads. Mappings do not reach a child of fork.
 */
#ifndef BRG_VIEW_JOURNAL_H
#define BRG_VIEW_JOURNAL_H

#include <linux/limits.h>
#include <stdint.h>

enum {
    JOURNAL_FIELDS = 7,  /* strings of a record; the last one is the pid */
    JOURNAL_COMPARED = 5 /* those that make it this record and no other */
};

struct journal_window;

struct journal {
    char path[PATH_MAX];
    int fd;
    uint64_t ino, dev;             /* to notice that the program has taken the descriptor */
    uint64_t end;                  /* atomic; of the file */
    uint64_t beat_ns;              /* atomic; CLOCK_MONOTONIC when the file last grew */
    struct journal_window *window; /* atomic; the newest */
};

/* Opens `path`, which is set, and prepares to append. 0 or -errno. */
int journal_open(struct journal *j);

/* Appends a record that has happened once. Returns where it lies, for the life of the process; NULL
 * if the file system does not take it. The file grows at least twice a second while there are
 * new records, so that who watches its size sees that there are. */
char *journal_add(struct journal *j, const char *const fields[JOURNAL_FIELDS]);

/* If `record` says the same as `fields`, counts it once more and returns 1; otherwise 0. */
int journal_repeat(char *record, const char *const fields[JOURNAL_FIELDS]);

/* Before the process ends or becomes another: what is not in the kernel's hands yet is written, and
 * the descriptor is there, so that the file system hands it over when the kernel closes it. */
void journal_flush(struct journal *j);

#endif
