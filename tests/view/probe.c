/* Asks everything that can be asked about each path given, and prints the answers.
 *
 *   probe PATH...     lines "call path: answer"; no times of access (reading changes them)
 *   probe -d DIR NAME...   the same relative to a descriptor of DIR
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __open_2(const char *, int);
int __openat_2(int, const char *, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);

static const char *path;
static int at = AT_FDCWD;

static void say_stat(const char *call, int result, const struct stat *s)
{
    if (result)
        printf("%s %s: %s\n", call, path, strerror(errno));
    else
        printf("%s %s: %lx %lu %o %lu %u %u %lx %ld %ld %ld %ld.%09ld %ld.%09ld\n", call, path,
               (long)s->st_dev, (long)s->st_ino, s->st_mode, (long)s->st_nlink, s->st_uid,
               s->st_gid, (long)s->st_rdev, (long)s->st_size, (long)s->st_blksize,
               (long)s->st_blocks, s->st_mtim.tv_sec, s->st_mtim.tv_nsec, s->st_ctim.tv_sec,
               s->st_ctim.tv_nsec);
}

static void say(const char *call, long result)
{
    if (result < 0)
        printf("%s %s: %s\n", call, path, strerror(errno));
    else
        printf("%s %s: %ld\n", call, path, result);
}

static void say_text(const char *call, const char *text, long n)
{
    if (!text || n < 0)
        printf("%s %s: %s\n", call, path, strerror(errno));
    else
        printf("%s %s: %.*s\n", call, path, (int)n, text);
}

static void say_fd(const char *call, int fd)
{
    char bytes[256];
    struct stat s;
    say(call, fd < 0 ? -1 : 0);
    if (fd < 0)
        return;
    ssize_t n = read(fd, bytes, sizeof bytes);
    say_text("  read", bytes, n);
    say_stat("  fstat", fstat(fd, &s), &s);
    say_stat("  fstatat", fstatat(fd, "", &s, AT_EMPTY_PATH), &s);
    struct statx x;
    say("  statx", statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x) ? -1 : (long)x.stx_ino);
    close(fd);
}

static void stats(void)
{
    struct stat s;
    struct statx x;
    say_stat("stat", stat(path, &s), &s);
    say_stat("lstat", lstat(path, &s), &s);
    say_stat("__xstat", __xstat(1, path, &s), &s);
    say_stat("__lxstat", __lxstat(1, path, &s), &s);
    for (int flags = 0; flags <= AT_SYMLINK_NOFOLLOW; flags += AT_SYMLINK_NOFOLLOW) {
        say_stat("fstatat", fstatat(at, path, &s, flags), &s);
        say_stat("__fxstatat", __fxstatat(1, at, path, &s, flags), &s);
        int result = statx(at, path, flags, STATX_BASIC_STATS, &x);
        say("statx", result);
        if (!result)
            printf("  %x:%x %lu %o %u %u %u %lu %lu %u %ld.%09u %ld.%09u\n", x.stx_dev_major,
                   x.stx_dev_minor, (long)x.stx_ino, x.stx_mode, x.stx_nlink, x.stx_uid, x.stx_gid,
                   (long)x.stx_size, (long)x.stx_blocks, x.stx_blksize, (long)x.stx_mtime.tv_sec,
                   x.stx_mtime.tv_nsec, (long)x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec);
    }
}

static void accesses(void)
{
    for (int mode = 0; mode < 8; mode++) {
        if (mode & W_OK)
            continue;
        say("access", access(path, mode));
        say("euidaccess", euidaccess(path, mode));
        say("faccessat", faccessat(at, path, mode, 0));
        say("faccessat e", faccessat(at, path, mode, AT_EACCESS));
        say("faccessat n", faccessat(at, path, mode, AT_SYMLINK_NOFOLLOW));
    }
}

static void opens(void)
{
    say_fd("open", open(path, O_RDONLY));
    say_fd("open nofollow", open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    say_fd("open directory", open(path, O_RDONLY | O_DIRECTORY));
    say_fd("openat", openat(at, path, O_RDONLY));
    say_fd("__open_2", __open_2(path, O_RDONLY));
    say_fd("__openat_2", __openat_2(at, path, O_RDONLY));
    FILE *f = fopen(path, "re");
    say("fopen", f ? 0 : -1);
    if (f)
        say_fd("  fileno", dup(fileno(f)));
    if (f)
        fclose(f);
    f = freopen(path, "r", fopen("/dev/null", "r"));
    say("freopen", f ? 0 : -1);
    if (f)
        fclose(f);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void lists(void)
{
    char *lines[512];
    int n = 0;
    DIR *d = opendir(path);
    say("opendir", d ? 0 : -1);
    for (struct dirent *e; d && n < 512 && (e = readdir(d));)
        if (strcmp(e->d_name, "..")) /* its inode is that of something outside */
            (void)!asprintf(&lines[n++], "%s %lu %d", e->d_name, (long)e->d_ino, e->d_type);
    qsort(lines, n, sizeof *lines, by_name);
    for (int i = 0; i < n; i++)
        printf("  %s\n", lines[i]);
    if (d) {
        rewinddir(d);
        struct dirent *first = readdir(d), room, *got;
        long here = telldir(d);
        char second[256];
        snprintf(second, sizeof second, "%s%s", first->d_name, readdir(d)->d_name);
        seekdir(d, here);
        int same = 0 == readdir_r(d, &room, &got) && got &&
                   !strcmp(second + strlen(second) - strlen(got->d_name), got->d_name);
        printf("  seekdir comes back: %d\n", same);
        say("closedir", closedir(d));
    }
    struct dirent **list;
    n = scandir(path, &list, NULL, alphasort);
    say("scandir", n);
    for (int i = 0; i < n; i++)
        printf("  %s\n", list[i]->d_name);
    say("scandirat", scandirat(at, path, &list, NULL, NULL));
}

static void links(void)
{
    char buf[4096];
    say_text("readlink", buf, readlink(path, buf, sizeof buf));
    say_text("readlink 3", buf, readlink(path, buf, 3));
    say_text("readlinkat", buf, readlinkat(at, path, buf, sizeof buf));
    say_text("__readlink_chk", buf, __readlink_chk(path, buf, sizeof buf, sizeof buf));
    say_text("__readlinkat_chk", buf, __readlinkat_chk(at, path, buf, sizeof buf, sizeof buf));
    const char *real = realpath(path, buf);
    say_text("realpath", real, real ? (long)strlen(real) : -1);
    real = __realpath_chk(path, buf, sizeof buf);
    say_text("__realpath_chk", real, real ? (long)strlen(real) : -1);
    real = canonicalize_file_name(path);
    say_text("canonicalize_file_name", real, real ? (long)strlen(real) : -1);
}

int main(int argc, char **argv)
{
    argv++;
    if (argc > 2 && !strcmp(*argv, "-d")) {
        at = open(argv[1], O_RDONLY | O_DIRECTORY);
        argv += 2;
    }
    for (; *argv; argv++) {
        path = *argv;
        stats();
        accesses();
        opens();
        lists();
        links();
    }
    return 0;
}
