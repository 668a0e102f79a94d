/* Trial records: what this process looked up, appended to its own file.
 *
 * The record is the one of docs/design/0002-start-up-contracts.md. How they reach the file, and why
 * kill -9 loses none, is in journal.h. What has been recorded and happens again is counted in its
 * record (found by a small table, which may forget: then it is recorded again). A child of fork
 * gets a file of its own when it first records something: all that is known about the file lies in
 * pages that the kernel wipes in the child. Freestanding, async-signal-safe, no lock.
 *
 * The wrapper and the program it becomes share a file: the wrapper leaves its name in
 * BRIGADE_SAVED_RECORD ("<pid>.<start_ns>"), which counts for that pid only, so that what was tried
 * before the program was found stands in front of the program's own records.
 */
#ifndef BRG_VIEW_RECORD_H
#define BRG_VIEW_RECORD_H

#include "view/view.h"

#define BRG_RECORD_SHARED "BRIGADE_SAVED_RECORD"

/* Set (to a salt for digests of the environment): what modules do while they are imported is
 * recorded, too; docs/design/0023-fork.md. */
#define BRG_RECORD_FORK "BRIGADE_RECORD_FORK"

/* A message is this, then kind, status, by, path and extra with U+001F between them. The kind
 * `importing` is no record: `path` is the module that from now on does what is done. */
#define BRG_RECORD_MESSAGE "/.brigade/record/"

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

/* What the module that is being imported does (`event` of 0023), or "" outside any; nothing unless
 * BRG_RECORD_FORK is set, and nothing in a child of fork. */
void record_event(const struct view *v, const char *what, const char *detail);

/* The module that would be named, for record_event_of(); the string stays. */
const char *record_importing(const struct view *v);
void record_event_of(const struct view *v, const char *by, const char *what, const char *detail);

/* How the Python view's recorder, which has no way to call C, gives its records: as the path of a
 * readlink. Returns 1 if `path` was a message, which is then recorded. */
int record_message(const struct view *v, const char *path);

/* Before the process becomes another program; see journal_flush(). */
void record_flush(const struct view *v);

/* The `end` record, if this process has recorded anything. */
void record_end(const struct view *v, int status);

#endif
