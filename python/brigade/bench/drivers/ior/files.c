/* Names of files, as IOR makes them, and who removes them. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ior.h"

static char watched[PATH_ROOM];
static volatile sig_atomic_t watching;

/* The first name of a list A@B, in which @@ is an @ of a name, into `name`; what follows it, or
 * NULL. */
static const char *take_name(const char *list, char *name)
{
    while (*list && (*list != '@' || list[1] == '@')) {
        list += *list == '@';
        *name++ = *list++;
    }
    *name = '\0';
    return *list ? list + 1 : NULL;
}

int file_names(const struct test *t)
{
    char name[PATH_ROOM];
    int names = 0;
    for (const char *list = t->o.path; list; list = take_name(list, name))
        names++;
    return names;
}

/* With several names task i has the i-th, and begins again. */
static void name_of(const struct test *t, int as, char *name)
{
    const char *list = take_name(t->o.path, name);
    for (int skip = t->o.own_file ? as % file_names(t) : 0; skip; skip--)
        list = take_name(list, name);
}

void file_name(const struct test *t, int way, int as, int repetition, char *path)
{
    char name[PATH_ROOM];
    name_of(t, as, name);
    const char *last = strrchr(name, '/');
    int folder = last ? (int)(last + 1 - name) : 0;
    int n = snprintf(path, PATH_ROOM, "%.*s", folder, name);
    if (t->o.unique_dir)
        n += snprintf(path + n, (size_t)(PATH_ROOM - n), "%d/", as);
    n += snprintf(path + n, (size_t)(PATH_ROOM - n), "%s", name + folder);
    if (t->nways > 1)
        n += snprintf(path + n, (size_t)(PATH_ROOM - n), ".a%d", way);
    if (t->o.own_file)
        n += snprintf(path + n, (size_t)(PATH_ROOM - n), ".%08d", as);
    if (t->o.multi_file)
        snprintf(path + n, (size_t)(PATH_ROOM - n), ".%d", repetition);
}

static void folder_of(const char *path, char *folder)
{
    snprintf(folder, PATH_ROOM, "%s", path);
    *strrchr(folder, '/') = '\0';
}

void file_make_folder(const char *path)
{
    char folder[PATH_ROOM];
    if (!strchr(path, '/'))
        return;
    folder_of(path, folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        fail("%s: making the folder: %s", folder, strerror(errno));
}

void file_remove(const struct test *t, int way, int repetition)
{
    char path[PATH_ROOM], folder[PATH_ROOM], text[WHY];
    file_name(t, way, t->rank, repetition, path);
    file_watch(NULL);
    if (!t->o.own_file && t->rank != 0)
        return;
    if (t->ways[way].back->remove(path, text))
        warn("%s", text);
    if (t->o.unique_dir) {
        folder_of(path, folder);
        rmdir(folder); /* what others have put there stays */
    }
}

void file_give_up(void)
{
    if (watching)
        unlink(watched);
    watching = 0;
}

static void ended(int number)
{
    file_give_up();
    signal(number, SIG_DFL);
    raise(number);
}

void file_watch(const char *path)
{
    watching = 0;
    if (!path)
        return;
    snprintf(watched, sizeof watched, "%s", path);
    watching = 1;
    struct sigaction action = {.sa_handler = ended};
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++)
        sigaction(signals[i], &action, NULL);
}

void fail(const char *format, ...)
{
    char text[WHY];
    int rank;
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    file_give_up();
    if (rank != 0)
        sleep(2); /* what all ranks meet, rank 0 says, and its abort ends the others */
    report_failed(text, rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}
