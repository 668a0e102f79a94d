/* What a template must know of a rank process. See request.h. */
#include "fork/request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int fork_list_open(struct fork_open *open)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t room = 0;
    *open = (struct fork_open){NULL, 0};
    if (!folder)
        return -errno;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end || number == dirfd(folder))
            continue;
        int flags = fcntl((int)number, F_GETFD);
        if (flags < 0 || (flags & FD_CLOEXEC))
            continue;
        if (open->n == room) {
            room = room ? 2 * room : 64;
            int *larger = realloc(open->numbers, room * sizeof *larger);
            if (!larger) {
                closedir(folder);
                return -ENOMEM;
            }
            open->numbers = larger;
        }
        open->numbers[open->n++] = (int)number;
    }
    closedir(folder);
    return 0;
}

static int write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0)
            return -errno;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* The file in memory; its descriptor, or -errno. */
static int write_request(const struct fork_self *self, const struct fork_open *open,
                         char *const *env)
{
    struct fork_request r = {.magic = FORK_MAGIC, .self = *self, .n_descriptors = open->n};
    for (; env[r.n_variables]; r.n_variables++)
        r.environment_bytes += strlen(env[r.n_variables]) + 1;
    r.descriptors_off = sizeof r;
    r.environment_off = r.descriptors_off + open->n * sizeof(int32_t);
    r.bytes = r.environment_off + r.environment_bytes;
    int fd = memfd_create("brigade-rank", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, &r, sizeof r);
    err = err ? err : write_all(fd, open->numbers, open->n * sizeof(int32_t));
    for (uint32_t i = 0; err == 0 && i < r.n_variables; i++)
        err = write_all(fd, env[i], strlen(env[i]) + 1);
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

int fork_ask(int to, int line, const struct fork_self *self, const struct fork_open *open,
             char *const *env)
{
    int file = write_request(self, open, env);
    if (file < 0)
        return file;
    struct fork_message m = fork_message(FORK_REQUEST, (int32_t)open->n, 0, NULL);
    int passed[] = {file, line};
    m.n_passed = 2;
    int err = fork_send(to, &m, passed);
    close(file);
    for (uint32_t sent = 0; err == 0 && sent < open->n; sent += m.n_passed) {
        m = fork_message(FORK_DESCRIPTORS, (int32_t)sent, 0, NULL);
        m.n_passed = open->n - sent < FORK_PASSED ? open->n - sent : FORK_PASSED;
        err = fork_send(to, &m, open->numbers + sent);
    }
    return err;
}
