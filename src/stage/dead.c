/* See dead.h. */
#include "stage/dead.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "stage/alive.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ID_LENGTH 32
#define STANDING "standing-" /* as brigade.job.standing names them */
#define MOMENT_S 20u         /* longer than a launcher may take from the list of jobs to our look */

static DIR *open_list(int parent, const char *name)
{
    int fd = openat(parent, name, OPEN_DIR);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static int is_named(const char *list, const char *job)
{
    size_t n = strlen(job);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, job, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return 1;
    return 0;
}

static int is_of_launcher(const struct dead_known *known, const char *job)
{
    size_t n = known->launcher ? strlen(known->launcher) : 0;
    return n && strncmp(job, known->launcher, n) == 0 && job[n] == '-' && job[n + 1] &&
           strspn(job + n + 1, "0123456789") == strlen(job + n + 1);
}

static uint64_t idle_of(const struct dead_known *known, const char *job)
{
    return is_of_launcher(known, job) && known->idle_s > MOMENT_S ? MOMENT_S : known->idle_s;
}

const char *dead_why_not(const struct dead_known *known, const char *id, int jobs_fd,
                         const char *job, char *room, size_t size)
{
    char tail[512];
    struct stat st;
    if (is_named(known->live, job))
        return "its brigade run is alive";
    if (strncmp(job, STANDING, strlen(STANDING)) == 0)
        return known->all || is_named(known->over, job)
                   ? ""
                   : "it stands until brigade unstage, or clean --all";
    snprintf(tail, sizeof tail, "%s/state", job);
    int fd = openat(jobs_fd, tail, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) { /* it is being made, or was cut off while it was removed */
        if (fd >= 0)
            close(fd);
        if (fstatat(jobs_fd, job, &st, AT_SYMLINK_NOFOLLOW))
            return "gone";
        fd = -1;
    }
    int young = time(NULL) - st.st_ctime < (time_t)idle_of(known, job);
    snprintf(tail, sizeof tail, "%s/jobs/%s/state", id, job);
    uint32_t pid = fd >= 0 && !young ? alive_user_of(fd, tail) : 0;
    if (fd >= 0)
        close(fd);
    if (young)
        return "younger than --idle";
    if (pid)
        snprintf(room, size, "process %" PRIu32 " uses it", pid);
    return pid ? room : "";
}

static int is_id(const char *name)
{
    return strlen(name) == ID_LENGTH && strspn(name, "0123456789abcdef") == ID_LENGTH;
}

void dead_each(struct folder *f,
               void (*on_job)(void *user, const char *id, int jobs_fd, const char *job), void *user)
{
    char path[ID_LENGTH + 8];
    DIR *images = open_list(f->fd, ".");
    for (struct dirent *d; images && (d = readdir(images));) {
        if (!is_id(d->d_name))
            continue;
        snprintf(path, sizeof path, "%.32s/jobs", d->d_name);
        DIR *jobs = open_list(f->fd, path);
        for (struct dirent *j; jobs && (j = readdir(jobs));)
            if (strcmp(j->d_name, ".") != 0 && strcmp(j->d_name, "..") != 0)
                on_job(user, d->d_name, dirfd(jobs), j->d_name);
        if (jobs)
            closedir(jobs);
    }
    if (images)
        closedir(images);
}

struct sweep {
    struct folder *folder;
    const struct dead_known *known; /* NULL: exactly the job `name` goes */
    const char *name;               /* otherwise this one stays */
};

static void sweep_job(void *user, const char *id, int jobs_fd, const char *job)
{
    struct sweep *s = user;
    char room[64];
    int went = 0, is_it = strcmp(job, s->name) == 0;
    if (s->known ? is_it || *dead_why_not(s->known, id, jobs_fd, job, room, sizeof room) : !is_it)
        return;
    folder_job_remove(s->folder, id, job, 0, NULL, NULL, &went, NULL);
}

void dead_sweep(struct folder *f, const struct dead_known *known, const char *own)
{
    struct sweep s = {.folder = f, .known = known, .name = own};
    dead_each(f, sweep_job, &s);
}

struct namesakes {
    struct folder *folder;
    const char *id, *start;
    int found;
};

static void drop_namesake(void *user, const char *id, int jobs_fd, const char *job)
{
    struct namesakes *s = user;
    int went;
    (void)jobs_fd;
    if (strcmp(id, s->id) != 0 || strncmp(job, s->start, strlen(s->start)) != 0)
        return;
    folder_job_remove(s->folder, id, job, 1, NULL, NULL, &went, NULL);
    s->found = 1;
}

int dead_drop(struct folder *f, const char *id, const char *start)
{
    struct namesakes s = {.folder = f, .id = id, .start = start};
    dead_each(f, drop_namesake, &s);
    return s.found;
}

void dead_forget(const char *base, const char *job)
{
    struct folder f;
    struct sweep s = {.folder = &f, .name = job};
    if (folder_open(&f, base, 0, NULL))
        return;
    dead_each(&f, sweep_job, &s);
    folder_sweep(&f, NULL);
    folder_close(&f);
}
