/* See topology.h. */
#include "stage/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "stage/hostlist.h"

#define MAX_BYTES (16 << 20)
#define MAX_LEVELS 16u
#define MAX_NAME 256u
#define BLANKS " \t\r\f\v"

static int read_text(struct topology *t, struct brg_error *err)
{
    struct stat st;
    int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = fd < 0 || fstat(fd, &st) ? -errno : 0;
    if (!rc && (!S_ISREG(st.st_mode) || st.st_size > MAX_BYTES))
        rc = -EINVAL;
    if (!rc && !(t->text = malloc((size_t)st.st_size + 1)))
        rc = -ENOMEM;
    if (!rc) {
        ssize_t got = brg_io_pread(fd, t->text, (size_t)st.st_size, 0);
        rc = got < 0 ? (int)got : 0;
        t->text[got < 0 ? 0 : got] = '\0';
    }
    if (fd >= 0)
        close(fd);
    return rc ? brg_error_system(err, rc, "cannot read the topology %s", t->path) : 0;
}

/* Cuts one line off, in place: comments go, continued lines become one. *lines counts them. */
static char *next_line(char **rest, unsigned *lines)
{
    char *line = *rest;
    while (*rest && **rest) {
        char *end = *rest + strcspn(*rest, "\n");
        int more = end > *rest && end[-1] == '\\' && *end;
        *rest = *end ? end + 1 : end;
        ++*lines;
        if (!more) {
            *end = '\0';
            break;
        }
        end[-1] = end[0] = ' ';
    }
    line[strcspn(line, "#")] = '\0';
    return line;
}

static int read_switch(char *line, struct topology_switch *s)
{
    char *state = NULL;
    *s = (struct topology_switch){"", "", ""};
    for (char *word = strtok_r(line, BLANKS, &state); word; word = strtok_r(NULL, BLANKS, &state)) {
        char *value = strchr(word, '=');
        if (!value)
            return -EINVAL;
        *value++ = '\0';
        if (strcasecmp(word, "SwitchName") == 0 || strcasecmp(word, "BlockName") == 0)
            s->name = value;
        else if (strcasecmp(word, "Nodes") == 0)
            s->nodes = value;
        else if (strcasecmp(word, "Switches") == 0)
            s->switches = value;
    }
    return *s->name ? 0 : -EINVAL;
}

static int is_setting(const char *line) /* of topology/block, about no single block */
{
    return strncasecmp(line, "BlockSizes", strlen("BlockSizes")) == 0;
}

/* Adds the switch of a line; `number` is the line's. */
static int add_switch(struct topology *t, char *line, unsigned number, struct brg_error *err)
{
    struct topology_switch *grown = realloc(t->switches, (t->n + 1) * sizeof *grown);
    if (!grown)
        return brg_error_set(err, -ENOMEM, "no memory for the topology");
    t->switches = grown;
    if (read_switch(line, &t->switches[t->n]))
        return brg_error_set(err, -EINVAL,
                             "line %u of the topology %s names no switch: it should read "
                             "SwitchName=... with Nodes=... or Switches=...",
                             number, t->path);
    t->n++;
    return 0;
}

int topology_read(struct topology *t, const char *path, struct brg_error *err)
{
    unsigned lines = 0;
    *t = (struct topology){.path = path};
    int rc = read_text(t, err);
    char *rest = t->text;
    while (!rc && *rest) {
        unsigned first = lines + 1;
        char *line = next_line(&rest, &lines);
        line += strspn(line, BLANKS);
        if (*line && !is_setting(line))
            rc = add_switch(t, line, first, err);
    }
    if (!rc && !t->n)
        rc = brg_error_set(err, -EINVAL, "the topology %s is empty", path);
    if (rc)
        topology_free(t);
    return rc;
}

void topology_free(struct topology *t)
{
    free(t->text);
    free(t->switches);
    *t = (struct topology){.path = t->path};
}

static const struct topology_switch *leaf_of(const struct topology *t, const char *host)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (*t->switches[i].nodes && hostlist_has(t->switches[i].nodes, host))
            return &t->switches[i];
    return NULL;
}

static const struct topology_switch *above(const struct topology *t, const char *name)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (*t->switches[i].switches && hostlist_has(t->switches[i].switches, name))
            return &t->switches[i];
    return NULL;
}

int topology_address(const struct topology *t, const char *host, char *out, size_t room,
                     struct brg_error *err)
{
    const struct topology_switch *chain[MAX_LEVELS];
    char cut[MAX_NAME];
    uint32_t n = 0;
    size_t used = 0;
    const struct topology_switch *s = leaf_of(t, host);
    if (!s && strchr(host, '.') && strcspn(host, ".") < sizeof cut) {
        memcpy(cut, host, strcspn(host, "."));
        cut[strcspn(host, ".")] = '\0';
        s = leaf_of(t, cut);
    }
    if (!s)
        return brg_error_set(err, -ENOENT, "node %s is in no switch of the topology %s", host,
                             t->path);
    for (; s; s = above(t, s->name)) {
        if (n == MAX_LEVELS)
            return brg_error_set(err, -ELOOP, "switches of the topology %s contain each other",
                                 t->path);
        chain[n++] = s;
    }
    while (n--) {
        size_t length = strlen(chain[n]->name);
        if (used + length + 2 > room)
            return brg_error_set(err, -ENAMETOOLONG,
                                 "names of switches above %s in the topology "
                                 "%s are too long",
                                 host, t->path);
        memcpy(out + used, chain[n]->name, length);
        used += length;
        out[used++] = n ? '.' : '\0';
    }
    return 0;
}
