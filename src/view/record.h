/* Trial records: what this process looked up, appended to its own file.
 *
 * The record is the one of docs/design/0002-start-up-contracts.md: seven NUL-terminated strings.
 * Each is one write(2) to a file opened with O_APPEND, so that threads, the auditor and the
 * preloaded library can share the file without a lock, and kill -9 loses nothing. A child of fork
 * gets a file of its own when it first records something: the descriptor lives in a page that the
 * kernel wipes in the child. The same record is written once a process (a small table of hashes,
 * which may forget). Freestanding, async-signal-safe, no allocation.
 *
 * The wrapper and the program it becomes share a file: the wrapper leaves its name in
 * BRIGADE_SAVED_RECORD ("<pid>.<start_ns>"), which counts for that pid only, so that what was tried
 * before the program was found stands in front of the program's own records.
 */
#ifndef BRG_VIEW_RECORD_H
#define BRG_VIEW_RECORD_H

#include "view/view.h"

#define BRG_RECORD_SHARED "BRIGADE_SAVED_RECORD"

/* Sets v->recorder and v->mode = VIEW_RECORD, and writes the `process`, `argv` and `env` records;
 * leaves VIEW_OFF if the folder cannot be written. */
void record_start(struct view *v, const char *folder);

/* The same for the wrapper, which is no process of its own: no such records, and *start_ns is
 * what the name of the file says. */
void record_start_wrapper(struct view *v, const char *folder, uint64_t *start_ns);

/* One record; does nothing unless v->mode is VIEW_RECORD. `by` NULL: the executable. */
void record_add(const struct view *v, const char *kind, int64_t status, const char *by,
                const char *path, const char *extra);

/* A look-up by path, made absolute first; `err` is an errno or 0. Paths below /proc, /sys and
 * /dev are left out: they are never on a shared file system. */
void record_lookup(const struct view *v, const char *kind, int err, int dirfd, const char *path,
                   const char *extra);

/* The `end` record, if this process has recorded anything. */
void record_end(const struct view *v, int status);

#endif
