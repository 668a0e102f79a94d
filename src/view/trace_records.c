/* From the kernel's calls to a trial's records. See trace_records.h. */
#include "view/trace_records.h"
#include "view/record.h"
#include "base/text.h"

#include <fcntl.h>

enum how {
    NOTHING,
    LOOKUP, /* its name is the record's kind */
    STAT,   /* `stat` or `lstat`, by a flag */
    ACCESS, /* with a mode */
    OPEN,   /* for reading, or a `write` */
    LIST,   /* of what a descriptor refers to */
    WRITE,  /* its name says what */
    MOVE    /* a `write` of the second path */
};

struct row {
    enum how how;
    const char *name;
};

static const struct row rows[TRACE_CALLS] = {
#ifdef SYS_open
    [TRACE_open] = {OPEN, "open"},           [TRACE_creat] = {WRITE, "open"},
    [TRACE_stat] = {LOOKUP, "stat"},         [TRACE_lstat] = {LOOKUP, "lstat"},
    [TRACE_access] = {ACCESS, "access"},     [TRACE_readlink] = {LOOKUP, "readlink"},
    [TRACE_mkdir] = {WRITE, "mkdir"},        [TRACE_rmdir] = {WRITE, "rmdir"},
    [TRACE_unlink] = {WRITE, "unlink"},      [TRACE_rename] = {MOVE, "rename"},
    [TRACE_symlink] = {WRITE, "symlink"},    [TRACE_link] = {MOVE, "link"},
#endif
    [TRACE_openat] = {OPEN, "open"},         [TRACE_newfstatat] = {STAT, "stat"},
    [TRACE_statx] = {STAT, "stat"},          [TRACE_faccessat] = {ACCESS, "access"},
    [TRACE_faccessat2] = {ACCESS, "access"}, [TRACE_readlinkat] = {LOOKUP, "readlink"},
    [TRACE_getdents64] = {LIST, "list"},     [TRACE_execve] = {LOOKUP, "exec"},
    [TRACE_execveat] = {LOOKUP, "exec"},     [TRACE_truncate] = {WRITE, "truncate"},
    [TRACE_mkdirat] = {WRITE, "mkdir"},      [TRACE_unlinkat] = {WRITE, "unlink"},
#ifdef SYS_renameat
    [TRACE_renameat] = {MOVE, "rename"},
#endif
    [TRACE_renameat2] = {MOVE, "rename"},    [TRACE_symlinkat] = {WRITE, "symlink"},
    [TRACE_linkat] = {MOVE, "link"},
};

void trace_record(const struct view *v, const struct trace_event *event)
{
    const struct trace_task *task = event->task;
    const struct row *row = &rows[task->call->id];
    const char *path = row->how == MOVE ? task->other : task->path, *kind = row->name;
    const uint64_t *args = task->args;
    char extra[24] = "";
    struct text t = text_in(extra, sizeof extra);
    if (row->how == NOTHING || *path != '/' || (task->by_fd && row->how != LIST))
        return;
    switch (row->how) {
    case OPEN:
        if ((task->flags & O_ACCMODE) != O_RDONLY || (task->flags & (O_CREAT | O_TRUNC))) {
            record_lookup(v, "write", event->error, AT_FDCWD, path, "open");
            return;
        }
        text_number(&t, (unsigned)task->flags, 8);
        break;
    case ACCESS: text_signed(&t, (int)task->flags); break;
    case STAT:
        if (args[task->call->id == TRACE_statx ? 2 : 3] & AT_SYMLINK_NOFOLLOW)
            kind = "lstat";
        break;
    case WRITE:
    case MOVE: record_lookup(v, "write", event->error, AT_FDCWD, path, row->name); return;
    case NOTHING:
    case LOOKUP:
    case LIST: break;
    }
    record_lookup(v, kind, event->error, AT_FDCWD, path, extra);
}
