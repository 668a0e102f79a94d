/* `vfork_driver [threads]`: gives f.dat, which exec closes, to programs that are begun by vfork, by
 * each way to give it; between, it writes itself. With threads, another one writes all the time.
 * Prints the file, or how many lines are there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 20000

static int fd, done;

static void put(const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        exit(9);
}

static void give(int way)
{
    pid_t pid = vfork();
    if (pid == 0) {
        int to = fd;
        char name[40];
        if (way == 0)
            to = dup2(fd, 1);
        if (way == 1)
            fcntl(fd, F_SETFD, 0);
        if (way == 2)
            ioctl(fd, FIONCLEX);
        if (way == 3)
            to = dup(fd);
        if (way == 4)
            to = fcntl(fd, F_DUPFD, 50);
        if (way == 5 && write(fd, "child\n", 6) != 6) /* by the child itself */
            _exit(1);
        if (way == 6)
            lseek(fd, -2, SEEK_CUR);
        snprintf(name, sizeof name, way < 5 ? "echo given >&%d" : "exit 0", to);
        execl("/bin/bash", "bash", "-c", name, (char *)NULL);
        _exit(1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (status)
        exit(8);
}

static void *run(void *nothing)
{
    for (int i = 0; i < LINES; i++)
        put("thread\n");
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    return nothing;
}

static void show(void)
{
    char line[100];
    FILE *in = fopen("f.dat", "r");
    while (fgets(line, sizeof line, in))
        fputs(line, stdout);
    fclose(in);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 && strcmp(argv[1], "threads") == 0, n_given = 0;
    fd = open("f.dat", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    pthread_t thread;
    if (threads)
        pthread_create(&thread, NULL, run, NULL);
    for (int way = 0; way < 7 && !threads; way++) {
        put("before\n");
        give(way);
        put("after\n");
    }
    for (; threads && (!__atomic_load_n(&done, __ATOMIC_SEQ_CST) || !n_given); n_given++)
        give(0);
    if (threads)
        pthread_join(thread, NULL);
    close(fd);
    if (!threads)
        show();
    else {
        char text[100];
        snprintf(text, sizeof text, "test $(grep -cx thread f.dat) = %d || exit 7", LINES);
        int lost = system(text);
        snprintf(text, sizeof text, "test $(grep -cx given f.dat) = %d || exit 7", n_given);
        printf("lost %d\n", lost || system(text));
    }
    return 0;
}
