/* What another process is asked for while it is stopped: strings, links and files in /proc. */
#ifndef BRG_TRACE_REMOTE_H
#define BRG_TRACE_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies n bytes of a stopped task's memory. Returns the bytes copied, fewer where nothing is
 * mapped, or -errno. */
long remote_read(pid_t tid, uint64_t at, void *buf, size_t n);

/* A string of a stopped task's memory; its length, or -errno. */
long remote_string(pid_t tid, uint64_t at, char *buf, size_t size);

/* What descriptor `fd` of a task (AT_FDCWD: its working directory) refers to, as the kernel says
 * it; of a file without a name the one that it had. `folder` is /proc/TID, opened, or -1. The
 * length, or -errno. */
long remote_link(pid_t tid, int folder, int fd, char *buf, size_t size);

/* A file of /proc/TID, cut at size - 1 bytes, with a NUL behind. The length, or -errno. */
long remote_file(pid_t tid, const char *name, char *buf, size_t size);

/* The number after "NAME:" in a /proc/TID/status, or -1. */
long long remote_status(const char *status, const char *name, int base);

/* Makes `path` what `given` means from `base` (length in n_base, in path already), in place.
 * Returns the length, or -ENAMETOOLONG. */
long remote_join(char *path, size_t n_base, const char *given, size_t n_given, size_t size);

#endif
