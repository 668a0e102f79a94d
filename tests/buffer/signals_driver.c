/* Signals whose handlers write to the files that the program writes, or leave by siglongjmp: prints
 * what is there in the end, which may not depend on whether the files are buffered. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static int fd;
static volatile sig_atomic_t rings, value, code;
static sigjmp_buf away;

static void ring(int sig)
{
    int saved = errno;
    (void)sig;
    rings++;
    if (write(fd, "R", 1) != 1)
        _exit(9);
    errno = saved;
}
static void leave(int sig)
{
    (void)sig;
    siglongjmp(away, 1);
}
static void told(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    value = info->si_value.sival_int;
    code = info->si_code;
}
static void every(long us)
{
    struct itimerval t = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &t, NULL);
}

/* Every byte of the program's and of the handler's is there, each once. */
static void counted(void)
{
    char piece[64];
    long mine = 0, theirs = 0, written = 0, n;
    struct stat st;
    memset(piece, 'p', sizeof piece);
    signal(SIGALRM, ring);
    every(300);
    for (; written < 20000000 || rings <= 50; written += 50)
        if (write(fd, piece, 50) != 50)
            _exit(9);
    every(0);
    fstat(fd, &st);
    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, piece, sizeof piece)) > 0)
        for (long i = 0; i < n; i++) {
            mine += piece[i] == 'p';
            theirs += piece[i] == 'R';
        }
    printf("mine as written %d, theirs as rings %d, size as both %d, rang %d\n", mine == written,
           theirs == rings, st.st_size == mine + theirs, rings > 50);
}

/* A handler that never returns leaves nothing locked. */
static void away_from_calls(void)
{
    volatile long jumps = 0;
    char piece[64] = {0};
    if (sigsetjmp(away, 1) == 0) {
        signal(SIGALRM, leave);
        every(500);
    }
    for (volatile int i = 0; i < 300000 || jumps <= 20; i++) {
        if (sigsetjmp(away, 1)) {
            jumps++;
            continue;
        }
        if (write(fd, piece, 40) < 0 || (i % 100 == 0 && pread(fd, piece, 40, i) < 0))
            _exit(9);
    }
    signal(SIGALRM, SIG_IGN);
    every(0);
    printf("jumped %d, writes on %d\n", jumps > 20, write(fd, "x", 1) == 1);
}

static void settings(void)
{
    struct sigaction act = {.sa_sigaction = told, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
    sigaddset(&act.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &act, NULL);
    sigaction(SIGUSR1, NULL, &old);
    printf("mine %d, flags %d, masks %d\n", old.sa_sigaction == told,
           (old.sa_flags & (SA_SIGINFO | SA_RESTART)) == (SA_SIGINFO | SA_RESTART),
           sigismember(&old.sa_mask, SIGUSR2));
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42});
    printf("value %d, code %d\n", value, code);
    act.sa_flags = (int)SA_RESETHAND | SA_SIGINFO;
    sigaction(SIGUSR1, &act, NULL);
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 43});
    sigaction(SIGUSR1, NULL, &old);
    printf("value %d, default again %d\n", value, old.sa_handler == SIG_DFL);
    int was_default = signal(SIGTERM, ring) == SIG_DFL, was_ring = signal(SIGTERM, SIG_DFL) == ring;
    printf("was default %d, was mine %d\n", was_default, was_ring);
    signal(SIGINT, SIG_IGN);
    printf("ignored %d\n", signal(SIGINT, SIG_DFL) == SIG_IGN);
    int refused = sigaction(SIGKILL, &act, NULL);
    printf("kill %d %d\n", refused, errno);
}

int main(int argc, char **argv)
{
    fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (argc > 1 && fd < 0)
        return 1;
    settings();
    counted();
    away_from_calls();
    return close(fd);
}
