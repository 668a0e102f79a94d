/* Hints: pairs of a key and a value, and what files make of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "shmemio/inside.h"

/* MPI's own names for what we have too. All other keys are those of docs/reference/io.md. */
static const struct {
    const char *mpi, *ours;
} other_names[] = {
    {"cb_nodes", "writers"},
    {"cb_buffer_size", "segment"},
    {"striping_unit", "stripe"},
    {"striping_factor", "stripe-count"},
};

int SHMEM_Info_create(SHMEM_Info *info)
{
    *info = calloc(1, sizeof **info);
    return *info ? SHMEM_SUCCESS : shmemio_refuse(-ENOMEM, "no memory for hints");
}

/* Where the pair of a key is linked, or the end. */
static struct info_pair **find(SHMEM_Info info, const char *key)
{
    struct info_pair **at = &info->first;
    while (*at && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    return at;
}

static int check(SHMEM_Info info, const char *key)
{
    if (!info || !key)
        return shmemio_refuse(-EINVAL, "no key, or SHMEM_INFO_NULL, where hints are meant");
    if (!*key || strlen(key) >= SHMEM_MAX_INFO_KEY)
        return shmemio_refuse(-ENOKEY, "a key of hints has 1 to %d bytes: \"%.80s\"",
                              SHMEM_MAX_INFO_KEY - 1, key);
    return SHMEM_SUCCESS;
}

int SHMEM_Info_set(SHMEM_Info info, const char *key, const char *value)
{
    int code = check(info, key);
    if (code)
        return code;
    if (!value || strlen(value) >= SHMEM_MAX_INFO_VAL)
        return shmemio_refuse(-EKEYREJECTED, "the value of hint %s has at most %d bytes", key,
                              SHMEM_MAX_INFO_VAL - 1);
    struct info_pair **at = find(info, key);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            return shmemio_refuse(-ENOMEM, "no memory for hint %s", key);
        snprintf((*at)->key, sizeof(*at)->key, "%s", key);
    }
    snprintf((*at)->value, sizeof(*at)->value, "%s", value);
    return SHMEM_SUCCESS;
}

int SHMEM_Info_get(SHMEM_Info info, const char *key, int room, char *value, int *found)
{
    int code = check(info, key);
    if (code)
        return code;
    const struct info_pair *pair = *find(info, key);
    *found = pair != NULL;
    if (pair && room >= 0)
        snprintf(value, (size_t)room + 1, "%s", pair->value);
    return SHMEM_SUCCESS;
}

int SHMEM_Info_delete(SHMEM_Info info, const char *key)
{
    int code = check(info, key);
    if (code)
        return code;
    struct info_pair **at = find(info, key), *pair = *at;
    if (!pair)
        return shmemio_refuse(-ENOKEY, "there is no hint %s to delete", key);
    *at = pair->next;
    free(pair);
    return SHMEM_SUCCESS;
}

int SHMEM_Info_free(SHMEM_Info *info)
{
    if (!*info)
        return shmemio_refuse(-EINVAL, "SHMEM_INFO_NULL cannot be freed");
    while ((*info)->first)
        SHMEM_Info_delete(*info, (*info)->first->key);
    free(*info);
    *info = SHMEM_INFO_NULL;
    return SHMEM_SUCCESS;
}

/* ---- what files make of them ---- */

/* Keys that nobody knows are no failure, as in MPI, nor is a value of MPI's that means nothing here
 * (a striping_unit that is no power of two); a value of our own is. */
static int take(struct io_hints *hints, const char *key, const char *value, struct brg_error *err)
{
    char text[SHMEM_MAX_INFO_KEY + SHMEM_MAX_INFO_VAL];
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (strcmp(key, other_names[i].mpi) == 0) {
            snprintf(text, sizeof text, "%s=%s", other_names[i].ours, value);
            hints_parse(hints, text, NULL);
            return 0;
        }
    if (!hints_knows(key))
        return 0;
    snprintf(text, sizeof text, "%s=%s", key, value);
    int rc = hints_parse(hints, text, err);
    if (rc == -EINVAL)
        rc = err->code = -EKEYREJECTED;
    return rc;
}

int info_read(SHMEM_Info info, const char *path, struct io_hints *hints, struct brg_error *err)
{
    int rc = 0;
    hints_default(hints);
    for (const struct info_pair *pair = info ? info->first : NULL; !rc && pair; pair = pair->next)
        rc = take(hints, pair->key, pair->value, err);
    rc = rc ? rc : hints_parse_environment(hints, getenv("BRIGADE_IO"), path, err);
    hints->async = 0;
    hints->layout = IO_SHARED;
    return rc;
}
