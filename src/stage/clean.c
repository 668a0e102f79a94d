/* brigade-stage clean: removes from this node what dead jobs of this user have left.
 *
 *   unfinished   a folder that a killed staging process was making: nobody holds its flock; or
 *                what was carried to the node, and not staged from there for --idle
 *   job          no process of this node uses its state, the caller does not know it as alive, and
 *                it is older than --idle; with its last job an image goes. A standing one
 *                ("standing-...", of `brigade stage`) has no processes: it is dead when the caller
 *                says that its allocation is over, and goes with --all
 *   image        a staged folder without jobs: --keep left it on purpose; only --all removes it
 *
 * One JSON line each: {"host", "what", "id", "job", "bytes", "removed", "why"}; "why" says why it
 * stays; "bytes" is memory that is given back. Then {"host", "done": true}. What must stay true:
 * when in doubt, it stays; an image with a live job is not touched.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "stage/commands.h"
#include "stage/dead.h"
#include "stage/folder.h"
#include "stage/incoming.h"
#include "base/json.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define ID_LENGTH 32

struct clean {
    const struct clean_options *options;
    struct folder *folder;
    char host[256];
    int failed;
};

static DIR *open_list(int parent, const char *name)
{
    int fd = openat(parent, name, OPEN_DIR);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static int is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Memory that a tree takes, in whole pages. */
static uint64_t tree_bytes(int parent, const char *name)
{
    struct stat st;
    uint64_t bytes = 0;
    DIR *dir = open_list(parent, name);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (is_dots(d->d_name) || fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        bytes += S_ISDIR(st.st_mode) ? tree_bytes(dirfd(dir), d->d_name)
                                     : (uint64_t)st.st_blocks * 512 / st.st_nlink;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static void tell(struct clean *c, const char *what, const char *id, const char *job, uint64_t bytes,
                 const char *why)
{
    struct json j = {0};
    json_add(&j, "{\"host\":");
    json_add_string(&j, c->host, strlen(c->host));
    json_add(&j, ",\"what\":\"%s\",\"id\":", what);
    json_add_string(&j, id, strlen(id));
    json_add(&j, ",\"job\":");
    if (job)
        json_add_string(&j, job, strlen(job));
    else
        json_add(&j, "null");
    json_add(&j, ",\"bytes\":%" PRIu64 ",\"removed\":%s,\"why\":\"%s\"}", bytes,
             *why || c->options->dry_run ? "false" : "true", why);
    json_print(&j, STDOUT_FILENO);
}

static void tell_unfinished(void *user, const char *name, int fd)
{
    tell(user, "unfinished", name, NULL, tree_bytes(fd, "."), "");
}

static void tell_incoming(void *user, int parent, const char *name)
{
    tell(user, "unfinished", name, NULL, tree_bytes(parent, name), "");
}

/* Ends a dead job; *went when the image has gone with it. */
static void end_job(struct clean *c, const char *id, const char *job, int *went)
{
    struct brg_error err;
    uint64_t before = tree_bytes(c->folder->fd, id);
    if (c->options->dry_run) {
        tell(c, "job", id, job, 0, "");
        return;
    }
    if (folder_job_remove(c->folder, id, job, 0, NULL, NULL, went, &err)) {
        fprintf(stderr, "brigade-stage: %s\n", err.text);
        c->failed = 1;
        return;
    }
    tell(c, "job", id, job, before - tree_bytes(c->folder->fd, id), "");
}

static void clean_image(struct clean *c, const char *id)
{
    char path[ID_LENGTH + 8], room[64];
    int jobs = 0, went = 0;
    snprintf(path, sizeof path, "%s/jobs", id);
    DIR *dir = open_list(c->folder->fd, path);
    for (struct dirent *d; dir && !went && (d = readdir(dir));) {
        if (is_dots(d->d_name))
            continue;
        const char *why =
            dead_why_not(&c->options->known, id, dirfd(dir), d->d_name, room, sizeof room);
        jobs++;
        if (*why)
            tell(c, "job", id, d->d_name, 0, why);
        else
            end_job(c, id, d->d_name, &went);
    }
    if (dir)
        closedir(dir);
    if (jobs)
        return;
    uint64_t bytes = tree_bytes(c->folder->fd, id);
    if (c->options->all && !c->options->dry_run)
        folder_job_remove(c->folder, id, "", 0, NULL, NULL, &went, NULL); /* if no job came */
    tell(c, "image", id, NULL, bytes,
         !c->options->all              ? "kept for later jobs"
         : went || c->options->dry_run ? ""
                                       : "in use again");
}

static void clean_folder(struct clean *c)
{
    struct folder_sweeper by = {tell_unfinished, c, c->options->dry_run};
    folder_sweep(c->folder, &by);
    incoming_sweep(c->folder, c->options->base, c->options->known.idle_s, c->options->dry_run,
                   tell_incoming, c);
    DIR *dir = open_list(c->folder->fd, ".");
    for (struct dirent *d; dir && (d = readdir(dir));)
        if (strlen(d->d_name) == ID_LENGTH && strspn(d->d_name, "0123456789abcdef") == ID_LENGTH)
            clean_image(c, d->d_name);
    if (dir)
        closedir(dir);
}

int clean_run(const struct clean_options *options)
{
    struct folder folder;
    struct brg_error err = {0};
    struct clean c = {.options = options, .folder = &folder};
    gethostname(c.host, sizeof c.host - 1);
    int rc = folder_open(&folder, options->base, 0, &err);
    if (!rc) {
        clean_folder(&c);
        folder_close(&folder);
    } else if (rc != -ENOENT)
        fprintf(stderr, "brigade-stage: %s\n", err.text);
    struct json j = {0};
    json_add(&j, "{\"host\":");
    json_add_string(&j, c.host, strlen(c.host));
    json_add(&j, ",\"done\":%s}", rc && rc != -ENOENT ? "false" : "true");
    json_print(&j, STDOUT_FILENO);
    return c.failed || (rc && rc != -ENOENT);
}
