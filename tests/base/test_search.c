/* Whatever PATH and the name are, search_path() tries, finds and refuses what glibc's execvp does:
 * both are asked, in a child each. */
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../claim.h"

enum {
    SAID = PATH_MAX + 64
};

/* What a name can meet in a folder; `deep` is a path that is too long for the kernel. */
static const char *const folders[] = {"good", "other",  "none", "file",  "denied",
                                      "dir",  "circle", "",     "./good"};
enum {
    N_FOLDERS = sizeof folders / sizeof *folders
};

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) || chmod(path, mode)) {
        perror(path);
        exit(2);
    }
}

/* In a new folder. A program says under which path it was started. */
static void make_world(void)
{
    static const char *const make[] = {"good", "other", "denied", "dir", "dir/prog", "circle"};
    static char base[] = "/tmp/search-XXXXXX";
    if (!mkdtemp(base) || chdir(base)) {
        perror(base);
        exit(2);
    }
    for (size_t i = 0; i < sizeof make / sizeof *make; i++)
        mkdir(make[i], 0755);
    put("good/prog", "#!/bin/sh\necho \"$0\"\n", 0755);
    put("other/prog", "#!/bin/sh\necho \"$0\"\n", 0755);
    put("file", "", 0644);
    put("denied/prog", "#!/bin/sh\necho no\n", 0644);
    if (symlink("prog", "circle/prog"))
        perror("circle");
}

static void remove_world(void)
{
    char here[PATH_MAX], command[PATH_MAX + 16];
    if (getcwd(here, sizeof here) && strncmp(here, "/tmp/search-", 12) == 0) {
        snprintf(command, sizeof command, "rm -r %s", here);
        if (system(command))
            printf("%s is left\n", here);
    }
}

static int execute(void *context, const char *path)
{
    char *words[] = {(char *)path, NULL};
    (void)context;
    execv(path, words);
    return -errno;
}

static void search_ours(const char *name)
{
    char path[PATH_MAX];
    errno = -search_path(name, getenv("PATH"), path, execute, NULL);
}

static void search_theirs(const char *name)
{
    char *words[] = {(char *)name, NULL};
    execvp(name, words);
}

/* What comes of a search for `name` in `list`: the path that was started, or the error. */
static const char *outcome(void search(const char *), const char *name, const char *list,
                           char said[SAID])
{
    int pipes[2];
    size_t n = 0;
    ssize_t got;
    if (pipe(pipes))
        exit(2);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        setenv("PATH", list, 1);
        search(name);
        dprintf(1, "errno %d\n", errno);
        _exit(1);
    }
    close(pipes[1]);
    while ((got = read(pipes[0], said + n, SAID - 1 - n)) > 0)
        n += (size_t)got;
    close(pipes[0]);
    waitpid(pid, NULL, 0);
    said[n] = '\0';
    return said;
}

static void check_same(const char *name, const char *list)
{
    char ours[SAID], theirs[SAID];
    outcome(search_ours, name, list, ours);
    outcome(search_theirs, name, list, theirs);
    CHECK(strcmp(ours, theirs) == 0, "%.40s in %.80s: %.80s, not %.80s", name, list, ours, theirs);
    CHECK(*theirs, "%.40s in %.80s says nothing", name, list);
}

struct tried {
    char text[256];
    int err;
};

static int note(void *context, const char *path)
{
    struct tried *t = context;
    strcat(strcat(t->text, path), " ");
    return t->err;
}

static void any_three_folders_are_searched_as_execvp_does(void)
{
    char list[256];
    for (int i = 0; i < N_FOLDERS * N_FOLDERS * N_FOLDERS; i += 1 + i % 3) {
        const char *a = folders[i % N_FOLDERS], *b = folders[i / N_FOLDERS % N_FOLDERS];
        snprintf(list, sizeof list, "%s:%s:%s", a, b, folders[i / N_FOLDERS / N_FOLDERS]);
        check_same("prog", list);
    }
    for (int i = 0; i < N_FOLDERS; i++)
        check_same("prog", folders[i]);
}

static void nothing_between_colons_is_the_working_directory(void)
{
    put("prog", "#!/bin/sh\necho \"$0\"\n", 0755);
    for (int i = 0; i < 5; i++)
        check_same("prog", (const char *[]){"", ":none", "none:", "none::good", "good:"}[i]);
    unlink("prog");
}

static void a_name_with_a_slash_is_not_searched(void)
{
    for (int i = 0; i < 5; i++) {
        const char *name = (const char *[]){"good/prog", "./prog", "good/", "/", "denied/prog"}[i];
        check_same(name, "good:other");
    }
}

static void what_is_too_long_ends_the_search(void)
{
    static char name[PATH_MAX + 8], list[2 * PATH_MAX];
    memset(name, 'n', sizeof name - 1);
    char path[PATH_MAX];
    for (int i = 0; i < 5; i++) {
        name[(size_t[]){PATH_MAX + 7, PATH_MAX - 1, NAME_MAX + 1, NAME_MAX, 0}[i]] = '\0';
        check_same(name, "good:other");
    }
    name[0] = name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    struct tried t = {.err = 0}; /* whoever answers in the kernel's place need not know */
    CHECK(search_path(name, "good", path, note, &t) == -ENAMETOOLONG && !*t.text, "%s", t.text);
    for (size_t n = PATH_MAX - 8; n < PATH_MAX; n++) {
        for (size_t at = 0; at < n; at++)
            list[at] = at % 200 ? 'd' : '/';
        strcpy(list + n, ":good");
        check_same("prog", list);
    }
}

static void a_folder_that_is_too_long_is_passed_over(void)
{
    static char list[2 * PATH_MAX];
    char path[PATH_MAX];
    struct tried t = {.err = 0};
    memset(list, 'd', PATH_MAX);
    strcpy(list + PATH_MAX, ":good");
    CHECK(search_path("prog", list, path, note, &t) == 0, "%s", path);
    CHECK(strcmp(t.text, "good/prog ") == 0 && strcmp(path, "good/prog") == 0, "%s", t.text);
}

static void without_a_list_the_systems_folders_are_searched(void)
{
    char path[PATH_MAX], list[64], expected[80] = "";
    struct tried t = {.err = -ENOENT};
    confstr(_CS_PATH, list, sizeof list);
    for (char *folder = strtok(list, ":"); folder; folder = strtok(NULL, ":"))
        strcat(strcat(expected, folder), "/prog ");
    CHECK(search_path("prog", NULL, path, note, &t) == -ENOENT, "%s", path);
    CHECK(strcmp(t.text, expected) == 0, "%s, not %s", t.text, expected);
}

static void a_program_is_searched_past_what_is_none(void)
{
    char path[PATH_MAX];
    CHECK(search_program("prog", "none:dir:denied:other:good", path) == 0, "%s", path);
    CHECK(strcmp(path, "other/prog") == 0, "%s", path);
    CHECK(search_program("prog", "none:dir", path) == -EACCES, "%s", path);
}

static void only_what_says_that_there_is_no_program_leads_on(void)
{
    static const int lead_on[] = {EACCES, ENOENT, ENOTDIR, ESTALE, ENODEV, ETIMEDOUT};
    for (int err = 1; err < 134; err++) {
        char path[PATH_MAX];
        struct tried t = {.err = -err};
        int goes_on = 0;
        for (size_t i = 0; i < sizeof lead_on / sizeof *lead_on; i++)
            goes_on |= err == lead_on[i];
        CHECK(search_path("prog", "a:b", path, note, &t) == -err, "%d", err);
        CHECK(strcmp(t.text, goes_on ? "a/prog b/prog " : "a/prog ") == 0, "%d: %s", err, t.text);
    }
}

static void a_program_is_a_file_that_may_be_executed(void)
{
    CHECK(search_is_program("good/prog") == 0, "%d", search_is_program("good/prog"));
    CHECK(search_is_program("denied/prog") == -EACCES, "%d", search_is_program("denied/prog"));
    CHECK(search_is_program("good") == -EACCES, "%d", search_is_program("good"));
    CHECK(search_is_program("none") == -ENOENT, "%d", search_is_program("none"));
}

int main(void)
{
    make_world();
    any_three_folders_are_searched_as_execvp_does();
    nothing_between_colons_is_the_working_directory();
    a_name_with_a_slash_is_not_searched();
    what_is_too_long_ends_the_search();
    a_folder_that_is_too_long_is_passed_over();
    without_a_list_the_systems_folders_are_searched();
    only_what_says_that_there_is_no_program_leads_on();
    a_program_is_a_file_that_may_be_executed();
    a_program_is_searched_past_what_is_none();
    remove_world();
    return failures != 0;
}
