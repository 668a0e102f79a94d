/* What lies beside a file while it is written, and how it goes away.
 *
 * Of a dead job's, only what certainly is dead is removed unasked: made on this host since it
 * started (the high half of the id), and its lock is free. `brigade file clean` does the rest. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <unistd.h>

#include <xxhash.h>

#include "store/store_inside.h"

#define SWEEP_NAMES 4096 /* a folder of more names is not searched: it would cost too much */
/* Of a longer name the temporary one has only so much, and can be made where NAME.sums cannot. */
#define NAME_TRUSTED 200

uint32_t store_host(void)
{
    static _Atomic uint32_t known;
    char text[256] = "";
    if (known)
        return known;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, 64);
    if (fd >= 0)
        close(fd);
    n = n < 0 ? 0 : n;
    gethostname(text + n, sizeof text - (size_t)n - 1);
    return known = (uint32_t)XXH3_64bits(text, strlen(text));
}

static int remove_if_there(const char *path)
{
    return unlink(path) && errno != ENOENT ? -errno : 0;
}

int store_remove_temporary(const char *base)
{
    static const char *const suffixes[] = {".sums", ".blocks", NULL};
    char path[STORE_NAME_BYTES];
    int first = 0;
    for (const char *const *suffix = suffixes; *suffix; suffix++) {
        store_name(path, base, *suffix);
        int rc = remove_if_there(path);
        first = first ? first : rc;
    }
    int rc = remove_if_there(base); /* last: as long as it is there, the rest has an owner */
    return first ? first : rc;
}

void store_remove_rest(const struct io_store *s)
{
    if (s->checksums && (!s->page || s->page[SUMS_PAGE_FILE]))
        unlink(s->working);
    if (strcmp(s->token.temporary, s->token.base)) /* written in place of the old file */
        unlink(s->token.base);
}

void store_parts_folder(char folder[STORE_NAME_BYTES], const char *base)
{
    store_name(folder, base, ".parts");
}

void store_parts_of(char folder[STORE_PATH + PARTS_FOLDER], const char *path)
{
    struct parts_head head;
    folder[0] = '\0';
    if (parts_head_read(path, &head, NULL))
        return;
    /* only if made for this name: a copy of an index has the parts of another */
    char own[256];
    int n = snprintf(own, sizeof own, ".%.200s.brg-", strrchr(path, '/') + 1);
    if (strncmp(head.folder, own, (size_t)n))
        return;
    snprintf(folder, STORE_PATH + PARTS_FOLDER, "%.*s%s", (int)(strrchr(path, '/') - path) + 1,
             path, head.folder);
}

void store_remove_all(const struct store_token *token)
{
    char folder[STORE_NAME_BYTES];
    store_parts_folder(folder, token->base);
    if (token->layout == IO_PARTS && parts_remove(folder))
        return; /* parts without an owner nobody would find again */
    store_remove_temporary(token->base);
}

/* NFS gives the lock only to who may write. */
enum owner store_owner(const char *base)
{
    int fd = open(base, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        fd = open(base, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? OWNER_GONE : OWNER_UNKNOWN;
    int held = flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
    close(fd);
    return !held ? OWNER_DEAD : held == EWOULDBLOCK ? OWNER_LIVES : OWNER_UNKNOWN;
}

/* Parts whose index is not there any more may be those of a published file, whatever it is called
 * now: they stay. */
static void remove_dead(const char *base)
{
    char folder[STORE_NAME_BYTES];
    enum owner owner = store_owner(base);
    store_parts_folder(folder, base);
    if (owner == OWNER_DEAD && parts_remove(folder))
        return;
    if (owner == OWNER_DEAD || owner == OWNER_GONE)
        store_remove_temporary(base);
}

int store_sweep(const char *path, uint32_t host, const char *own)
{
    char folder[STORE_PATH], prefix[256], base[STORE_PATH], sums[STORE_NAME_BYTES];
    const char *name = strrchr(path, '/') + 1;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    int length = snprintf(prefix, sizeof prefix, ".%.200s.brg-%08x", name, host);
    store_name(sums, name, ".sums");
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    int n_names = 0, is_free = dir && strlen(name) <= NAME_TRUSTED;
    errno = 0;
    while (dir && n_names < SWEEP_NAMES && (entry = readdir(dir))) {
        n_names++;
        if (strcasecmp(entry->d_name, sums) == 0) /* some file systems take them for one */
            is_free = 0;
        if (strncmp(entry->d_name, prefix, (size_t)length) ||
            strspn(entry->d_name + length, "0123456789abcdef") != 8)
            continue;
        if (snprintf(base, sizeof base, "%s%.*s", folder, length + 8, entry->d_name) >= STORE_PATH)
            continue;
        if (strcmp(base, own) == 0)
            continue;
        remove_dead(base);
        errno = 0;
    }
    is_free = is_free && !entry && !errno; /* or else there are names that were not seen */
    if (dir)
        closedir(dir);
    return is_free;
}
