/* What was asked for: words of the command line, directives (-O), and files of tests (-f). */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ior.h"

enum kind {
    FLAG,
    INT,
    LONG,
    SIZE,
    TEXT
};

static const struct entry {
    int letter;
    const char *name, *other;
    enum kind kind;
    size_t place;
    const char *unless_said, *help;
} entries[] = {
#define OPTION(letter, name, other, kind, field, unless_said, help) \
    {letter, name, other, kind, offsetof(struct options, field), unless_said, help},
#include "options.def"
#undef OPTION
};
#define ENTRIES (sizeof entries / sizeof *entries)

static const struct entry *by_letter(int letter)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (entries[i].letter == letter)
            return &entries[i];
    return NULL;
}

static const struct entry *by_name(const char *name, size_t length)
{
    for (size_t i = 0; i < ENTRIES; i++) {
        const char *names[] = {entries[i].name, entries[i].other};
        for (int k = 0; k < 2; k++)
            if (length && strlen(names[k]) == length && strncasecmp(names[k], name, length) == 0)
                return &entries[i];
    }
    return NULL;
}

static int parse_number(const char *text, int with_unit, int64_t *number)
{
    static const char units[] = "kmgtp";
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || errno)
        return -1;
    const char *unit = *end && with_unit ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        int shift = 10 * (int)(unit - units + 1);
        if (value > INT64_MAX >> shift)
            return -1;
        value <<= shift;
        end++;
    }
    *number = value;
    return *end ? -1 : 0;
}

/* Sets an option to a value that was said; the options keep what text they need. */
static int option_set(struct options *o, const struct entry *entry, const char *value, char *why)
{
    void *place = (char *)o + entry->place;
    int64_t number;
    if (entry->kind == TEXT) {
        *(const char **)place = strdup(value);
        return 0;
    }
    int wide = entry->kind == LONG || entry->kind == SIZE;
    if (parse_number(value, wide, &number) || (!wide && (number > INT_MAX || number < INT_MIN)))
        return why_not(why, "%s: '%s' is no %s", entry->name, value,
                       entry->kind == SIZE ? "size (8, 4k, 2m, 1g)" : "number");
    if (wide)
        *(int64_t *)place = number;
    else
        *(int *)place = (int)number;
    return 0;
}

static int set_defaults(struct options *o, char *why)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (option_set(o, &entries[i], entries[i].unless_said, why))
            return -1;
    return 0;
}

/* "name=value, name=value # comment", as on a line of a file of tests. */
static int parse_directives(struct options *o, const char *line, char *why)
{
    char *text = strdup(line), *rest = NULL;
    int rc = 0;
    text[strcspn(text, "#")] = '\0';
    for (char *word = strtok_r(text, ",\n", &rest); word && !rc;
         word = strtok_r(NULL, ",\n", &rest)) {
        char name[64], value[PATH_ROOM];
        if (sscanf(word, " %63[^= \t\r] = %4095[^ \t\r]", name, value) != 2) {
            if (strspn(word, " \t\r") < strlen(word))
                rc = why_not(why, "'%s': an option and its value are written name=value", word);
            continue;
        }
        const struct entry *entry = by_name(name, strlen(name));
        rc = entry ? option_set(o, entry, value, why)
                   : why_not(why, "'%s': there is no such option", name);
    }
    free(text);
    return rc;
}

static int found(struct options *o, const struct entry *entry, const char *value, char *why)
{
    if (entry->kind == FLAG && !value) {
        ++*(int *)((char *)o + entry->place);
        return 0;
    }
    if (!value)
        return why_not(why, "-%c (%s) needs a value", entry->letter ? entry->letter : '-',
                       entry->name);
    if (entry->letter == 'O')
        return parse_directives(o, value, why);
    return option_set(o, entry, value, why);
}

/* --name, --name=value or --name value; *used: the next word as well. */
static int parse_long(struct options *o, const char *word, const char *next, int *used, char *why)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    const struct entry *entry = by_name(word, length);
    if (!entry)
        return why_not(why, "no option --%s; --help has them all", word);
    *used = !value && entry->kind != FLAG;
    return found(o, entry, value ? value + 1 : *used ? next : NULL, why);
}

/* -wrc, -b1m or -b 1m. */
static int parse_letters(struct options *o, const char *word, const char *next, int *used,
                         char *why)
{
    for (; *word; word++) {
        const struct entry *entry = by_letter(*word);
        if (!entry)
            return why_not(why, "no option -%c; --help has them all", *word);
        if (entry->kind != FLAG) {
            *used = !word[1];
            return found(o, entry, word[1] ? word + 1 : next, why);
        }
        if (found(o, entry, NULL, why))
            return -1;
    }
    return 0;
}

static int parse_words(struct options *o, int argc, char **argv, char *why)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        int used = 0, rc;
        if (word[0] != '-' || !word[1])
            return why_not(why, "'%s' is no option; --help has them all", word);
        rc = word[1] == '-' ? parse_long(o, word + 2, next, &used, why)
                            : parse_letters(o, word + 1, next, &used, why);
        if (rc)
            return rc;
        i += used;
    }
    return 0;
}

/* The contents of rank 0's file, on all ranks; freed by the caller. NULL: `why`. */
static char *read_script(const char *path, char *why)
{
    int rank, length = -1;
    char *text = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *file = rank == 0 ? fopen(path, "r") : NULL;
    if (file) {
        size_t room = 0;
        ssize_t n = getdelim(&text, &room, '\0', file);
        length = n < 0 ? 0 : (int)n;
        fclose(file);
    } else if (rank == 0) {
        why_not(why, "%s: %s", path, strerror(errno));
    }
    MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(why, WHY, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (length < 0)
        return NULL;
    text = realloc(text, (size_t)length + 1);
    MPI_Bcast(text, length, MPI_CHAR, 0, MPI_COMM_WORLD);
    text[length] = '\0';
    return text;
}

static int is_line(const char *line, const char *words)
{
    size_t start = strspn(line, " \t"), length = strlen(words);
    return strncasecmp(line + start, words, length) == 0 &&
           strspn(line + start + length, " \t\r") == strlen(line + start + length);
}

static struct test *add_test(struct test *tests, int *ntests, const struct options *o)
{
    tests = realloc(tests, (size_t)(*ntests + 1) * sizeof *tests);
    tests[*ntests] = (struct test){.o = *o, .id = *ntests};
    ++*ntests;
    return tests;
}

/* Lines after IOR START: options, which the tests that follow keep; RUN ends a test, IOR STOP all.
 * Options after the last RUN are a test as well. */
static struct test *parse_script(const char *path, struct options o, int *ntests, char *why)
{
    char *text = read_script(path, why), *rest = NULL;
    struct test *tests = NULL;
    int started = 0, open = 0, rc = text ? 0 : -1;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !rc;
         line = strtok_r(NULL, "\n", &rest)) {
        if (is_line(line, "ior start")) {
            started = 1;
        } else if (!started) {
            continue;
        } else if (is_line(line, "ior stop")) {
            break;
        } else if (is_line(line, "run")) {
            tests = add_test(tests, ntests, &o);
            open = 0;
        } else {
            rc = parse_directives(&o, line, why);
            open = 1;
        }
    }
    if (!rc && (open || (started && !*ntests)))
        tests = add_test(tests, ntests, &o);
    if (!rc && !started)
        rc = why_not(why, "%s: there is no line IOR START", path);
    free(text);
    return rc ? NULL : tests;
}

struct test *options_parse(int argc, char **argv, int *ntests, char *why)
{
    struct options o;
    *ntests = 0;
    if (set_defaults(&o, why) || parse_words(&o, argc, argv, why))
        return NULL;
    return *o.script ? parse_script(o.script, o, ntests, why) : add_test(NULL, ntests, &o);
}

void options_help(void)
{
    static const char *const values[] = {"", " N", " N", " SIZE", " WORD"};
    char names[512];
    back_end_names(names, sizeof names);
    printf("brigade-ior: IOR's options, semantics and table; under an MPI launcher\n\n");
    for (size_t i = 0; i < ENTRIES; i++) {
        const struct entry *e = &entries[i];
        char letter[] = {'-', (char)e->letter, ',', '\0'}, left[80];
        snprintf(left, sizeof left, "  %-3s --%s%s", e->letter ? letter : "", e->name,
                 values[e->kind]);
        int said = e->kind != FLAG && *e->unless_said && *e->unless_said != '0' &&
                   *e->unless_said != '-' && !strstr(e->help, "[default");
        printf("%-40s %s", left, e->help);
        printf(said ? "  [%s]\n" : "\n", e->unless_said);
    }
    printf("\nBack ends:\n%s", names);
}
