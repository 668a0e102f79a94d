/* What each rank of a brigade-ior test moves: ior_offsets (write | check | read) FIELD=NUMBER...
 * prints a line for each rank: offsets, in transfers. Fields are those of options.def, and of
 * struct test. */
#include <stdlib.h>
#include <string.h>

#include "ior.h"

static void set(struct test *t, const char *word)
{
    const char *value = strchr(word, '=') + 1;
    size_t length = (size_t)(value - 1 - word);
#define SET_FLAG(field) t->o.field = atoi(value);
#define SET_INT SET_FLAG
#define SET_LONG SET_FLAG
#define SET_SIZE SET_FLAG
#define SET_TEXT(field) (void)0;
#define OPTION(letter, name, other, kind, field, unless_said, help)     \
    if (strlen(#field) == length && strncmp(word, #field, length) == 0) \
    SET_##kind(field)
#include "options.def"
#undef OPTION
    if (strncmp(word, "ranks=", 6) == 0)
        t->ranks = atoi(value);
}

static void print_rank(const struct test *t, int shift, int64_t bytes)
{
    struct walk walk;
    int64_t offset;
    if (walk_start(&walk, t, (t->rank + shift) % t->ranks, bytes))
        abort();
    while ((offset = walk_next(&walk)) >= 0)
        printf("%lld ", (long long)(offset / t->o.transfer));
    puts("");
    walk_end(&walk);
}

int main(int argc, char **argv)
{
    struct test t = {.by_block = 1, .o = {.segments = 1, .offset_tasks = 1}};
    int repetition = 0;
    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], "repetition=", 11) == 0)
            repetition = atoi(argv[i] + 11);
        else
            set(&t, argv[i]);
    t.on_node0 = t.o.tasks_on_node0 ? t.o.tasks_on_node0 : t.ranks;
    t.nodes = t.o.nodes ? t.o.nodes : 1;
    int64_t bytes = t.o.block * t.o.segments * (t.o.own_file ? 1 : t.ranks);
    for (t.rank = 0; t.rank < t.ranks; t.rank++) {
        int shift = argv[1][0] == 'r'   ? read_shift(&t, repetition)
                    : argv[1][0] == 'c' ? check_shift(&t)
                                        : 0;
        print_rank(&t, shift, bytes);
    }
    return 0;
}
