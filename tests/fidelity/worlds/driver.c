/* The program of every world: does what its arguments say, and shows what it sees.
 *
 * An argument is a word and its operands, separated by '|'. All output goes straight to
 * descriptor 1, so that it keeps its order across forks and across copies of libc.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void world_start(void);           /* calls into the libraries that the program needs */
int world_catch(void (*f)(void)); /* what f threw, -1 if nothing; no C++ here: -2 */
void common(void);                /* every library has one */

enum {
    MAX = 32
};
static void *handles[MAX];
static int n_handles;

void common(void)
{
    dprintf(1, "common of the program\n");
}

static void where(const char *what, void *address)
{
    Dl_info info;
    if (!address)
        dprintf(1, "%s: nothing\n", what);
    else if (dladdr(address, &info))
        dprintf(1, "%s: %s %s\n", what, info.dli_fname, info.dli_sname ? info.dli_sname : "-");
    else
        dprintf(1, "%s: no dladdr\n", what);
}

static void show_error(const char *what)
{
    const char *error = dlerror();
    dprintf(1, "%s: error: %s\n", what, error ? error : "none");
}

static int mode_of(const char *letters)
{
    int mode = strchr(letters, 'L') ? RTLD_LAZY : RTLD_NOW;
    mode |= strchr(letters, 'G') ? RTLD_GLOBAL : 0;
    mode |= strchr(letters, 'D') ? RTLD_DEEPBIND : 0;
    mode |= strchr(letters, 'O') ? RTLD_NOLOAD : 0;
    mode |= strchr(letters, 'K') ? RTLD_NODELETE : 0;
    return mode;
}

static void keep(const char *name, void *handle)
{
    struct link_map *map;
    if (n_handles < MAX)
        handles[n_handles++] = handle;
    if (!handle) {
        show_error(name);
        return;
    }
    int same = 0;
    while (handles[same] != handle)
        same++;
    dlinfo(handle, RTLD_DI_LINKMAP, &map);
    dprintf(1, "%s: handle %d, %s\n", name, same, map->l_name);
    void (*hello)(void) = (void (*)(void))dlsym(handle, "hello");
    if (hello)
        hello();
    where("its common", dlsym(handle, "common"));
}

static void *handle_of(const char *number)
{
    int i = number ? atoi(number) : 0;
    return i < n_handles ? handles[i] : NULL;
}

static int each(struct dl_phdr_info *info, size_t size, void *count)
{
    (void)size;
    dprintf(1, "loaded %s\n", info->dlpi_name);
    ++*(int *)count;
    return 0;
}

static void *open_in_thread(void *name)
{
    return dlopen(name, RTLD_NOW);
}

static void open_in_threads(char **names, int n)
{
    pthread_t threads[MAX];
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, open_in_thread, names[i]);
    for (int i = 0; i < n; i++) {
        void *handle;
        struct link_map *map = NULL;
        pthread_join(threads[i], &handle);
        if (handle)
            dlinfo(handle, RTLD_DI_LINKMAP, &map);
        dprintf(1, "thread: %s %s\n", names[i], map ? map->l_name : "nothing");
    }
}

static void run(int argc, char **argv, const char *self);

/* A child that runs `n` words: in a new image of the program, or as it is. */
static void child(const char *self, int fresh, int n, char **words)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        if (fresh) {
            char *argv[MAX + 2] = {(char *)self};
            for (int i = 0; i < n && i < MAX; i++)
                argv[i + 1] = words[i];
            execv(self, argv);
            dprintf(1, "execv failed\n");
            _exit(99);
        }
        run(n, words, self);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    dprintf(1, "child: %d\n", status);
}

static void do_word(char **w, int n)
{
    const char *a = n > 1 ? w[1] : "", *b = n > 2 ? w[2] : "";
    if (!strcmp(w[0], "open")) {
        keep(b, dlopen(b, mode_of(a)));
    } else if (!strcmp(w[0], "mopen")) {
        keep(a, dlmopen(LM_ID_NEWLM, a, RTLD_NOW));
    } else if (!strcmp(w[0], "close")) {
        void *handle = handle_of(a);
        if (handle) {
            int gone = dlclose(handle);
            for (int i = 0; i < n_handles; i++)
                handles[i] = handles[i] == handle ? NULL : handles[i];
            dprintf(1, "close: %d\n", gone);
        }
    } else if (!strcmp(w[0], "sym")) {
        where(b, dlsym(*a == '-' ? RTLD_DEFAULT : handle_of(a), b));
    } else if (!strcmp(w[0], "vsym")) {
        void *handle = handle_of(a);
        int (*f)(void) = handle ? (int (*)(void))dlvsym(handle, b, n > 3 ? w[3] : "V1") : NULL;
        if (f)
            dprintf(1, "%s: %d\n", b, f());
        else if (handle)
            show_error(b);
    } else if (!strcmp(w[0], "next")) {
        where("next common", dlsym(RTLD_NEXT, "common"));
    } else if (!strcmp(w[0], "iterate")) {
        int count = 0;
        dl_iterate_phdr(each, &count);
    } else if (!strcmp(w[0], "threads")) {
        open_in_threads(w + 1, n - 1);
    } else if (!strcmp(w[0], "chdir")) {
        dprintf(1, "chdir: %d\n", chdir(a));
    } else if (!strcmp(w[0], "setenv")) {
        setenv(a, b, 1);
    } else if (!strcmp(w[0], "catch")) {
        void *f = dlsym(RTLD_DEFAULT, a);
        for (int i = 0; !f && i < n_handles; i++)
            f = handles[i] ? dlsym(handles[i], a) : NULL;
        if (f)
            dprintf(1, "caught %d\n", world_catch((void (*)(void))f));
    } else {
        dprintf(1, "no such word: %s\n", w[0]);
    }
}

static void run(int argc, char **argv, const char *self)
{
    for (int i = 0; i < argc; i++) {
        char *words[MAX], *text = strdup(argv[i]);
        int n = 0;
        for (char *at = text; at && n < MAX;)
            words[n++] = strsep(&at, "|");
        if (!strcmp(words[0], "child") || !strcmp(words[0], "fork")) {
            int count = atoi(words[1]);
            child(self, words[0][0] == 'c', count, argv + i + 1);
            i += count;
        } else {
            do_word(words, n);
        }
        free(text);
    }
}

int main(int argc, char **argv)
{
    const char *self = getenv("WORLD_PROGRAM");
    world_start();
    run(argc - 1, argv + 1, self ? self : argv[0]);
    return 40 + n_handles;
}
