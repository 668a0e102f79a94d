/* Linux system calls without a libc.
 *
 * What is loaded by ld.so before any libc (the auditor), and what may run inside a signal handler
 * or between vfork and exec (the hooks), calls the kernel through here: no errno, no thread-local
 * storage, no allocation. Every function returns the kernel's answer: a result, or -errno.
 */
#ifndef BRG_BASE_SYS_H
#define BRG_BASE_SYS_H

#include "base/newer.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#if defined(__x86_64__)
static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f)
{
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
static inline long sys_call(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the interpose view knows x86-64 and aarch64"
#endif

static inline int sys_open(const char *path, int flags, int mode)
{
    return (int)sys_call(SYS_openat, AT_FDCWD, (long)path, flags, mode, 0, 0);
}
static inline int sys_openat(int dirfd, const char *path, int flags)
{
    return (int)sys_call(SYS_openat, dirfd, (long)path, flags, 0, 0, 0);
}
static inline int sys_close(int fd)
{
    return (int)sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}
static inline long sys_read(int fd, void *buf, size_t n)
{
    return sys_call(SYS_read, fd, (long)buf, (long)n, 0, 0, 0);
}
static inline long sys_pread(int fd, void *buf, size_t n, int64_t offset)
{
    return sys_call(SYS_pread64, fd, (long)buf, (long)n, (long)offset, 0, 0);
}
/* What fits of a small file, as text with a NUL behind it. Its length, or -errno. */
static inline long sys_read_text(const char *path, char *buf, size_t size)
{
    size_t len = 0;
    long n = 1;
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    while (n > 0 && len < size - 1) {
        n = sys_read(fd, buf + len, size - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    sys_close(fd);
    buf[len] = '\0';
    return n < 0 ? n : (long)len;
}
static inline long sys_write(int fd, const void *buf, size_t n)
{
    return sys_call(SYS_write, fd, (long)buf, (long)n, 0, 0, 0);
}
static inline int sys_fstat(int fd, struct stat *st)
{
    return (int)sys_call(SYS_fstat, fd, (long)st, 0, 0, 0, 0);
}
static inline int sys_stat(const char *path, struct stat *st)
{
    return (int)sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)st, 0, 0, 0);
}
/* Whether the user may do `mode` with `path`; 0 or -errno. */
static inline int sys_access(const char *path, int mode)
{
    return (int)sys_call(SYS_faccessat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}
static inline long sys_readlink(const char *path, char *buf, size_t n)
{
    return sys_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)buf, (long)n, 0, 0);
}
static inline int sys_mkdir(const char *path, int mode)
{
    return (int)sys_call(SYS_mkdirat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}
/* Bytes written including the NUL, or -errno. */
static inline long sys_getcwd(char *buf, size_t n)
{
    return sys_call(SYS_getcwd, (long)buf, (long)n, 0, 0, 0, 0);
}
static inline int sys_fcntl(int fd, int what, long value)
{
    return (int)sys_call(SYS_fcntl, fd, what, value, 0, 0, 0);
}
static inline int sys_getpid(void)
{
    return (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}
static inline int sys_getppid(void)
{
    return (int)sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
}
static inline uint64_t sys_now_ns(int clock)
{
    struct timespec now = {0, 0};
    sys_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static inline void sys_exit(int status)
{
    for (;;)
        sys_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}
/* NULL if the kernel refuses. */
static inline void *sys_map(size_t bytes, int prot, int flags, int fd)
{
    long at = sys_call(SYS_mmap, 0, (long)bytes, prot, flags, fd, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}
static inline void sys_unmap(void *at, size_t bytes)
{
    sys_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}

#endif
