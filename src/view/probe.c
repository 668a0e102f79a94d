/* Probing a node. See probe.h. Each thing is tried, by children where it would leave a trace. */
#include "view/probe.h"
#include "view/audited.h"
#include "view/namespace_probe.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    RECORD_MOST = 256 << 10
};

static const int there = 4711;

static int reads_memory(pid_t child)
{
    int word = there, copy = 0;
    struct iovec to = {&copy, sizeof copy}, from = {(void *)(uintptr_t)&there, sizeof word};
    return process_vm_readv(child, &to, 1, &from, 1, 0) == sizeof word && copy == word;
}

static int traces(pid_t child)
{
    return syscall(SYS_ptrace, PTRACE_SEIZE, child, 0, 0) == 0;
}

/* Tries something with a process that waits. 0 or errno. */
static int try_with_child(int (*works)(pid_t child))
{
    int gate[2];
    if (pipe2(gate, O_CLOEXEC) != 0)
        return errno;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    int err = child > 0 && works(child) ? 0 : errno;
    close(gate[0]);
    close(gate[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return err;
}

/* ---- the interpose view: a recorded program says that it ran under it ---- */

static int has_process(int folder, const char *name)
{
    static char text[RECORD_MOST];
    static const char word[] = "process";
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i + (ssize_t)sizeof word <= n; i++)
        if (memcmp(text + i, word, sizeof word) == 0)
            return 1;
    return 0;
}

/* Looks for a record that only the preloaded library writes, and removes all of them. */
static int take_records(const char *folder)
{
    DIR *dir = opendir(folder);
    int found = 0;
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        found |= has_process(dirfd(dir), d->d_name);
        unlinkat(dirfd(dir), d->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return found;
}

static int run_recorded(const char *program, const char *records)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execl("/proc/self/exe", "brigade-rank", "--record", records, "--view", "interpose", "--",
              program, (char *)NULL);
        _exit(126);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* Why there is no such view, or NULL; then *defects is what brigade-audited found. */
static const char *probe_interpose(const char *folder, const char *records, int *defects)
{
    char path[PATH_MAX];
    static const char *const parts[] = {"/libbrigade-audit.so", "/libbrigade-preload.so",
                                        "/brigade-audited"};
    for (int i = 0; i < 3; i++) {
        struct text t = text_in(path, sizeof path);
        text_add(&t, folder);
        text_add(&t, parts[i]);
        if (t.full || access(path, R_OK) != 0)
            return "Brigade's libraries are not beside brigade-rank";
    }
    if (!records)
        return "it could not be tried: no folder can be made in /tmp or in node memory";
    int status = run_recorded(path, records), found = take_records(records);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > (AUDITED_CALLS | AUDITED_NAMESPACES))
        return "a program under it did not end well";
    *defects = WEXITSTATUS(status);
    return found ? NULL : "ld.so does not load what LD_AUDIT and LD_PRELOAD name";
}

/* ---- output ---- */

static void print_one(const char *name, int err)
{
    printf(",\"%s\":", name);
    if (err < 0)
        printf("null");
    else if (err == 0)
        printf("true");
    else
        printf("\"%s\"", strerror(err));
}

/* What went wrong, or NULL. */
static void print_words(const char *name, const char *words)
{
    printf(words ? ",\"%s\":\"%s\"" : ",\"%s\":true", name, words);
}

static void print_memory(const char *base)
{
    struct statvfs room;
    if (statvfs(base, &room) != 0) {
        printf(",\"memory\":{\"error\":\"%s\"}", strerror(errno));
        return;
    }
    unsigned long long unit = room.f_frsize;
    printf(",\"memory\":{\"bytes\":%llu,\"free\":%llu,\"exec\":%s,\"writable\":%s}",
           unit * room.f_blocks, unit * room.f_bavail, room.f_flag & ST_NOEXEC ? "false" : "true",
           access(base, W_OK) == 0 ? "true" : "false");
}

/* Makes an empty folder to try things in: in /tmp, or where staged folders would lie. Returns path,
 * or NULL if there is none. */
static const char *make_folder(char path[PATH_MAX], const char *base)
{
    const char *const places[] = {"/tmp", base};
    for (int i = 0; i < 2; i++)
        if (snprintf(path, PATH_MAX, "%s/brigade-probe-XXXXXX", places[i]) < PATH_MAX &&
            mkdtemp(path))
            return path;
    return NULL;
}

int probe_print(const char *folder, const char *base)
{
    char path[PATH_MAX];
    struct namespace_found f;
    struct utsname host;
    const char *own = make_folder(path, base);
    namespace_probe(&f, own);
    int defects = 0;
    const char *interpose = probe_interpose(folder, own, &defects);
    if (own)
        rmdir(own);
    if (uname(&host) != 0)
        return 1;
    printf("{\"host\":\"%s\",\"kernel\":\"%s\",\"machine\":\"%s\",\"user\":%u", host.nodename,
           host.release, host.machine, (unsigned)geteuid());
    print_one("user_namespaces", f.user);
    print_one("ids", f.ids);
    print_one("all_ids", f.all_ids);
    print_one("mounts", f.mounts);
    print_one("overlay", f.overlay);
    print_one("userxattr", f.userxattr);
    print_one("whiteouts", f.whiteouts);
    print_one("opaque", f.opaque);
    print_one("bind", f.bind);
    /* As ranks of a node do, which are siblings: where Yama lets only a parent read its child, an
     * MPI that copies so allows it to all (PR_SET_PTRACER). */
    print_one("cma", try_with_child(reads_memory));
    print_one("trace", try_with_child(traces));
    print_words("interpose", interpose);
    if (interpose) {
        print_one("binds_calls", -1);
        print_one("new_namespaces", -1);
    } else {
        print_words("binds_calls", defects & AUDITED_CALLS ? "glibc bug 15533" : NULL);
        print_words("new_namespaces", defects & AUDITED_NAMESPACES ? "glibc bug 28062" : NULL);
    }
    print_memory(base);
    printf("}\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
