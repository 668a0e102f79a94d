/* What cannot be, said before anything is done; IOR's rules, and those of the back ends. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ior.h"

static char why[WHY];

static const char *refuse(const char *format, const char *word)
{
    why_not(why, format, word);
    return why;
}

static const char *parse_hints(struct way *way, char *hints)
{
    char *rest = NULL;
    for (char *hint = strtok_r(hints, ":", &rest); hint; hint = strtok_r(NULL, ":", &rest)) {
        size_t used = strlen(way->hints);
        if (strcmp(hint, "view") != 0) {
            snprintf(way->hints + used, sizeof way->hints - used, "%s%s", used ? ":" : "", hint);
            continue;
        }
        if (!way->back->views)
            return refuse("-a: %s has no view of the file", way->back->name);
        way->view = 1;
        snprintf(way->name, sizeof way->name, "%s:view", way->back->name);
    }
    return NULL;
}

/* "MPIIO:view:cb_nodes=2" */
static const char *parse_way(const struct test *t, const char *word, int length, struct way *way)
{
    char names[512], copy[sizeof way->hints];
    if (length >= (int)sizeof copy)
        return refuse("-a: a word is too long: %.40s...", word);
    snprintf(copy, sizeof copy, "%.*s", length, word);
    int name = (int)strcspn(copy, ":");
    way->back = back_end_find(copy, name);
    if (!way->back) {
        back_end_names(names, sizeof names);
        why_not(why, "-a: no back end '%.*s'; there are\n%s", name, copy, names);
        return why;
    }
    way->view = t->o.view && way->back->views;
    snprintf(way->name, sizeof way->name, "%s", way->back->name);
    const char *no = parse_hints(way, copy + name);
    return no ? no : way->back->refuse ? way->back->refuse(t, way) : NULL;
}

static const char *parse_ways(struct test *t)
{
    const char *word = t->o.api, *no = NULL;
    for (t->nways = 0; *word && !no; word += *word == ',') {
        int length = (int)strcspn(word, ",");
        if (t->nways == MAX_WAYS)
            return refuse("-a: too many back ends: %s", t->o.api);
        no = parse_way(t, word, length, &t->ways[t->nways++]);
        word += length;
    }
    return no ? no : t->nways ? NULL : "-a: no back end is named";
}

static const char *check_sizes(const struct test *t)
{
    const struct options *o = &t->o;
    int64_t all;
    if (o->block <= 0 || o->block % 8 || o->transfer <= 0 || o->transfer % 8)
        return "block size (-b) and transfer size (-t) must be multiples of 8, and not 0";
    if (o->block % o->transfer)
        return "block size (-b) must be a multiple of transfer size (-t)";
    if (o->segments < 1)
        return "segment count (-s) must be at least 1";
    if (__builtin_mul_overflow(o->block, o->segments, &all) ||
        __builtin_mul_overflow(all, (int64_t)t->ranks, &all))
        return "the file would have more than 2^63 bytes: fewer segments (-s)";
    if (o->repetitions < 1)
        return "repetitions (-i) must be at least 1";
    if (o->delay < 0 || o->deadline < 0 || o->minutes < 0 || o->least_seconds < 0)
        return "-d, -D, -T and minTimeDuration must not be negative";
    if (o->offset_tasks < 0)
        return "task offset (-Q) must not be negative";
    return NULL;
}

static const char *check_order(const struct test *t)
{
    const struct options *o = &t->o;
    int elsewhere = o->reorder || o->reorder_random;
    if (o->reorder && o->reorder_random)
        return "tasks are reordered by a constant (-C) or at random (-Z), not both";
    if (o->reorder_random == 1 && least_random_shift(t) >= t->ranks)
        return "-Z reads what was written so many nodes away (-Q), and no task is as far: -Q, "
               "numNodes or numTasksOnNode0 is too large for the tasks that there are";
    if (o->random_offset && elsewhere && !o->own_file)
        return "in a shared file, order transfers (-z) or tasks (-C, -Z) at random, not both";
    if (o->random_offset == 1 && o->block == o->transfer)
        return "-z orders the transfers of a block: it must have several (-b larger than -t)";
    if (o->random_offset == 1 && o->check_read && !o->write && o->random_seed < 0)
        return "to check (-R) what another run wrote at random (-z), give both its seed: "
               "--random-offset-seed";
    if (o->random_offset > 1 && (o->write || o->check_write || o->check_read))
        return "blocks at random places (-z -z) can be read only, and not checked: nobody knows "
               "who wrote them; write without (-k) before";
    return NULL;
}

static const char *check_rest(const struct test *t)
{
    const struct options *o = &t->o;
    if ((o->check_read || o->check_write) && !o->write && !o->signature)
        return "to check (-R, -W) what another run wrote, give both its signature: -G";
    if (o->unique_dir && !o->own_file)
        return "a folder for each task (-u) needs a file for each task (-F)";
    if (strlen(o->path) > PATH_ROOM - 64)
        return "-o: the name is too long";
    if (o->unique_dir && file_names(t) > 1)
        return "several files (-o A@B) cannot have a folder for each task (-u)";
    if (o->wear_out && !o->deadline)
        return "stoneWallingWearOut needs a deadline (-D)";
    if (*o->status_file && o->write && !o->wear_out)
        return "stoneWallingStatusFile keeps what stoneWallingWearOut (and -D) led all tasks to: a "
               "write needs both";
    if (*o->status_file && !o->keep)
        return "stoneWallingStatusFile is for a later run: keep the file (-k)";
    if (!packet_known(o->packet))
        return refuse("-l: no kind of bytes '%s': timestamp, offset, incompressible or random",
                      o->packet);
    if (strcasecmp(o->format, "default") && strcasecmp(o->format, "csv") &&
        strcasecmp(o->format, "json") && strcasecmp(o->format, "events"))
        return refuse("summaryFormat: '%s' is none of default, CSV and JSON", o->format);
    return NULL;
}

/* -z gives the tasks of a shared file different numbers of transfers, and who has none left must not
 * wait for the others where these wait for it. */
static const char *check_meetings(const struct test *t)
{
    const struct options *o = &t->o;
    int collective = o->collective;
    for (int i = 0; i < t->nways; i++)
        collective |= t->ways[i].back->collective;
    if (collective && o->random_offset == 1 && !o->own_file &&
        (o->deadline || o->least_seconds || o->barriers))
        return "in a shared file, random order (-z) gives tasks different numbers of transfers: "
               "where "
               "these are collective (-c, LAMINAR) there is no -D, minTimeDuration or -g";
    return NULL;
}

const char *test_check(struct test *t)
{
    struct options *o = &t->o;
    const char *no;
    if (!o->write && !o->read && !o->check_write && !o->check_read)
        o->write = o->read = 1;
    if ((no = check_sizes(t)) || (no = check_order(t)) || (no = check_rest(t)) ||
        (no = parse_ways(t)) || (no = check_meetings(t)))
        return no;
    if (o->random_seed < 0) {
        o->random_seed = (int)(time(NULL) & 0x3fffffff);
        MPI_Bcast(&o->random_seed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return NULL;
}
