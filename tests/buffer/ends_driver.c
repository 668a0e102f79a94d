/* `ends_driver PATH HOW`: writes 1000 times "0123456789", then ends (or goes on) as HOW says. */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int *volatile nowhere;

static int overflow(volatile int n)
{
    volatile char page[4096];
    page[0] = (char)n;
    return n < 0 ? 0 : overflow(n + 1) + page[0];
}
static void *thread(void *how)
{
    if (how)
        *nowhere = 1;
    sleep(10);
    return NULL;
}
static void cleanup(void)
{
    int fd = open("late.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (write(fd, "late", 4) != 4)
        _exit(9);
}

static void fault(const char *how)
{
    pthread_t t;
    if (!strcmp(how, "segv"))
        *nowhere = 1;
    if (!strcmp(how, "overflow"))
        overflow(0);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "assert"))
        assert(how == NULL);
    if (!strcmp(how, "thread-segv")) {
        pthread_create(&t, NULL, thread, (void *)1);
        pthread_join(t, NULL);
    }
    if (!strcmp(how, "fpe"))
        raise(SIGFPE);
    if (!strcmp(how, "term"))
        kill(getpid(), SIGTERM);
    if (!strcmp(how, "int"))
        kill(getpid(), SIGINT);
    if (!strncmp(how, "signal ", 7)) /* of the real-time ones by their place: -1 is the last */
        raise(atoi(how + 7) < 0       ? SIGRTMAX + 1 + atoi(how + 7)
              : atoi(how + 7) >= 1000 ? SIGRTMIN + atoi(how + 7) - 1000
                                      : atoi(how + 7));
    if (!strcmp(how, "later-kill")) {
        usleep(700000);
        kill(getpid(), SIGKILL);
    }
}

static void quiet(const char *how)
{
    pthread_t t;
    if (!strcmp(how, "_exit"))
        _exit(3);
    if (!strcmp(how, "quick_exit"))
        quick_exit(3);
    if (!strcmp(how, "syscall"))
        syscall(SYS_exit_group, 3);
    char *words[] = {"sh", "-c", "exit 3", NULL};
    if (!strcmp(how, "execve-number"))
        syscall(SYS_execve, "/bin/sh", words, environ);
    if (!strcmp(how, "execveat-number"))
        syscall(SYS_execveat, AT_FDCWD, "/bin/sh", words, environ, 0);
    if (!strcmp(how, "exec"))
        execlp("true", "true", (char *)NULL);
    if (!strcmp(how, "atexit"))
        atexit(cleanup);
    if (!strcmp(how, "thread-exit"))
        pthread_create(&t, NULL, thread, NULL);
    if (!strcmp(how, "pthread_exit"))
        pthread_exit(NULL);
}

int main(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 1000; i++)
        if (write(fd, "0123456789", 10) != 10)
            return 9;
    if (argc < 3)
        return 0;
    fault(argv[2]);
    quiet(argv[2]);
    if (!strcmp(argv[2], "exec-shared")) { /* the next program goes on where this one is */
        dup2(fd, 1);
        execlp("sh", "sh", "-c", "printf more; printf less", (char *)NULL);
    }
    if (!strcmp(argv[2], "spawn-shared")) {
        pid_t pid;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fd, 1);
        char *words[] = {"sh", "-c", "printf more; printf less", NULL};
        posix_spawnp(&pid, "sh", &actions, NULL, words, environ);
        waitpid(pid, NULL, 0);
        if (write(fd, "end", 3) != 3)
            return 9;
    }
    return 0;
}
