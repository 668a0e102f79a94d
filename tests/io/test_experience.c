/* Which transport is taken next. */
#include "world/experience.h"

#include <string.h>

#include "../claim.h"

#define MIB (UINT64_C(1) << 20)
#define ALL (1u << IO_DIRECT | 1u << IO_SIMPLE | 1u << IO_ROTATE)

static void the_rule_is_tried_first_then_each_other_once_then_the_fastest_stays(void)
{
    struct experience e = {0};
    CHECK(experience_choose(&e, IO_ROTATE, ALL) == IO_ROTATE, "see there");
    experience_note(&e, IO_ROTATE, 64 * MIB, 1.0);
    CHECK(experience_choose(&e, IO_ROTATE, ALL) == IO_DIRECT, "see there");
    experience_note(&e, IO_DIRECT, 64 * MIB, 2.0);
    CHECK(experience_choose(&e, IO_ROTATE, ALL) == IO_SIMPLE, "see there");
    experience_note(&e, IO_SIMPLE, 64 * MIB, 0.5);
    CHECK(experience_choose(&e, IO_ROTATE, ALL) == IO_SIMPLE, "see there");
    for (int i = 0; i < 8; i++)
        experience_note(&e, IO_SIMPLE, 64 * MIB, 4.0); /* it has become slow */
    CHECK(experience_choose(&e, IO_ROTATE, ALL) == IO_ROTATE, "see there");
}

static void what_is_no_candidate_is_not_tried(void)
{
    struct experience e = {0};
    experience_note(&e, IO_SIMPLE, 64 * MIB, 1.0);
    CHECK(experience_choose(&e, IO_SIMPLE, 1u << IO_SIMPLE) == IO_SIMPLE, "see there");
}

static void small_files_tell_nothing(void)
{
    struct experience e = {0};
    experience_note(&e, IO_DIRECT, EXPERIENCE_LEAST_BYTES - 1, 1.0);
    experience_note(&e, IO_DIRECT, 64 * MIB, 0.0);
    CHECK(experience_choose(&e, IO_DIRECT, ALL) == IO_DIRECT && e.bytes_s[IO_DIRECT] == 0,
          "see there");
}

static void places_are_kept_apart_and_the_oldest_is_given_away(void)
{
    struct experiences all = {0};
    struct experience *first = experience_of(&all, 1, 0);
    experience_note(first, IO_DIRECT, 64 * MIB, 1.0);
    CHECK(experience_of(&all, 1, 1)->bytes_s[IO_DIRECT] == 0, "see there");
    CHECK(experience_of(&all, 1, 0) == first, "see there");
    for (uint64_t device = 2; device < 2 + EXPERIENCE_PLACES; device++)
        experience_of(&all, device, 0);
    CHECK(experience_of(&all, 1, 0)->bytes_s[IO_DIRECT] == 0, "see there");
}

static void it_is_told_in_words(void)
{
    struct experience e = {0};
    char text[64];
    experience_tell(&e, text, sizeof text);
    CHECK(text[0] == '\0', "see there");
    experience_note(&e, IO_DIRECT, 500000000, 1.0);
    experience_note(&e, IO_ROTATE, 250000000, 1.0);
    experience_tell(&e, text, sizeof text);
    CHECK(strcmp(text, "direct 500 MB/s, rotate 250 MB/s") == 0, "see there");
    char small[8];
    experience_tell(&e, small, sizeof small);
    CHECK(strlen(small) < sizeof small, "see there");
}

int main(void)
{
    the_rule_is_tried_first_then_each_other_once_then_the_fastest_stays();
    what_is_no_candidate_is_not_tried();
    small_files_tell_nothing();
    places_are_kept_apart_and_the_oldest_is_given_away();
    it_is_told_in_words();
    return failures != 0;
}
