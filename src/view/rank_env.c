/* Setting a rank's environment. See rank_env.h. */
#include "view/rank_env.h"
#include "view/handoff.h"
#include "view/program.h"
#include "view/record.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const changed[] = {"LD_AUDIT", "LD_PRELOAD", "GLIBC_TUNABLES", "PYTHONPATH"};
static const char *const own[] = {"BRIGADE_STAGE",   "BRIGADE_STATE",  "BRIGADE_SLOT",
                                  "BRIGADE_VIEW",    "BRIGADE_RECORD", BRG_RECORD_FORK,
                                  BRG_RECORD_SHARED, BRG_ROOT_VARIABLE};

/* Which of `changed` this process has changed. */
static int touched[sizeof changed / sizeof *changed];

static void touch(const char *name)
{
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
        if (text_same(changed[i], name))
            touched[i] = 1;
}

int rank_env_names(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return 1;
    }
    return 0;
}

/* Puts `ours` in front of the variable's value, whose own value is saved once. */
static int prepend(const char *name, const char *ours)
{
    char saved[64];
    char *joined = NULL;
    const char *value = getenv(name);
    snprintf(saved, sizeof saved, "BRIGADE_SAVED_%s", name);
    if (value && setenv(saved, value, 1) != 0)
        return -ENOMEM;
    if (!value)
        unsetenv(saved);
    touch(name);
    if (asprintf(&joined, "%s%s%s", ours, value && *value ? ":" : "", value ? value : "") < 0)
        return -ENOMEM;
    int err = setenv(name, joined, 1) == 0 ? 0 : -ENOMEM;
    free(joined);
    return err;
}

/* `second`, if there is one, is a library of the same folder that stands behind the first. */
static int prepend_library(const char *name, const char *folder, const char *library,
                           const char *second)
{
    char path[2 * PATH_MAX];
    if ((size_t)snprintf(path, PATH_MAX, "%s/%s", folder, library) >= PATH_MAX ||
        strpbrk(path, ": $") || access(path, R_OK) != 0)
        return -ENOENT;
    size_t n = strlen(path);
    if (second) {
        snprintf(path + n, sizeof path - n, ":%s/%s", folder, second);
        path[n] = access(path + n + 1, R_OK) == 0 ? ':' : '\0';
    }
    return prepend(name, path);
}

/* ld.so keeps the last of several values: ours counts unless the user asks for more. */
static int set_static_tls(void)
{
    const char *user = getenv("GLIBC_TUNABLES");
    const char *at = user ? strstr(user, BRG_STATIC_TLS "=") : NULL;
    char ours[64];
    if (at && strtoul(at + sizeof BRG_STATIC_TLS, NULL, 10) >= BRG_STATIC_TLS_BYTES)
        return 0;
    snprintf(ours, sizeof ours, "%s=%d", BRG_STATIC_TLS, BRG_STATIC_TLS_BYTES);
    if (!at)
        return prepend("GLIBC_TUNABLES", ours);
    char *joined = NULL;
    touch("GLIBC_TUNABLES");
    const char *rest = at + strcspn(at, ":");
    if (setenv("BRIGADE_SAVED_GLIBC_TUNABLES", user, 1) != 0 ||
        asprintf(&joined, "%.*s%s%s", (int)(at - user), user, ours, rest) < 0)
        return -ENOMEM;
    int err = setenv("GLIBC_TUNABLES", joined, 1) == 0 ? 0 : -ENOMEM;
    free(joined);
    return err;
}

int rank_env_set(const char *views, const char *libraries, const char *python, int watch)
{
    int err = 0;
    if (setenv("BRIGADE_VIEW", views, 1) != 0)
        return -ENOMEM;
    if (rank_env_names(views, "interpose")) {
        err = prepend_library("LD_AUDIT", libraries, BRG_AUDIT_NAME, NULL);
        if (err == 0)
            err = prepend_library("LD_PRELOAD", libraries, BRG_PRELOAD_NAME,
                                  watch ? BRG_WATCH_NAME : NULL);
        if (err == 0)
            err = set_static_tls();
    }
    if (err == 0 && rank_env_names(views, "python") && access(python, X_OK) == 0)
        err = prepend("PYTHONPATH", python);
    return err;
}

void rank_env_clear(void)
{
    char saved[64];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        unsetenv(own[i]);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        if (!touched[i])
            continue;
        snprintf(saved, sizeof saved, "BRIGADE_SAVED_%s", changed[i]);
        const char *value = getenv(saved);
        if (value)
            setenv(changed[i], value, 1);
        else
            unsetenv(changed[i]);
        unsetenv(saved);
    }
}
