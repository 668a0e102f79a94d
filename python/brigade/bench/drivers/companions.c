/* See companions.h. */
#define _GNU_SOURCE
#include "companions.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ROOM 4400 /* bytes of a path, and of a name in its folder */

void companions_each_hidden(const char *path, void (*act)(const char *path))
{
    char found[ROOM], hidden[ROOM];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(hidden, sizeof hidden, ".%s.brg-", name);
    snprintf(found, sizeof found, "%.*s", (int)(name - path), path);
    DIR *folder = opendir(*found ? found : ".");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strncmp(entry->d_name, hidden, strlen(hidden)) == 0) {
            snprintf(found, sizeof found, "%.*s%s", (int)(name - path), path, entry->d_name);
            act(found);
        }
    if (folder)
        closedir(folder);
}

void companions_remove_one(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    remove(path);
}

void companions_remove(const char *path)
{
    char sums[ROOM];
    companions_remove_one(path);
    companions_each_hidden(path, companions_remove_one);
    snprintf(sums, sizeof sums, "%s.sums", path);
    companions_remove_one(sums);
}
