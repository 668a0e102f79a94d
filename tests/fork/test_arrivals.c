/* Which signals were for the group, by what a rank process read and its witness noted, and when. */
#include "fork/arrivals.h"

#include <signal.h>
#include <string.h>

#include "../claim.h"

#define MS UINT64_C(1000000)
enum {
    BEGAN = 1000 /* times are in milliseconds from it */
};

static struct arrivals a;
static char told[512];

static uint64_t at(int ms)
{
    return (uint64_t)(BEGAN + ms) * MS;
}

static void begin(void)
{
    memset(&a, 0, sizeof a);
    told[0] = '\0';
}

/* What is known now, as "10g 12a": for the group, alone. */
static const char *known(int ms)
{
    uint32_t number;
    int for_group;
    told[0] = '\0';
    while (arrivals_next(&a, at(ms), &number, &for_group)) {
        size_t n = strlen(told);
        snprintf(told + n, sizeof told - n, "%s%u%c", n ? " " : "", number, for_group ? 'g' : 'a');
    }
    return told;
}

#define KNOWN(ms, expected) CHECK(strcmp(known(ms), expected) == 0, "at %d ms: %s", ms, told)

/* This process reads all that there is; 0: nothing. */
static void reads(int ms, uint32_t number)
{
    if (number)
        arrivals_read(&a, number, at(ms));
    arrivals_had_all(&a, at(ms));
}

static void notes(int ms, uint32_t number)
{
    arrivals_noted(&a, number, at(ms));
}

static void one_without_a_note_was_for_the_process_alone(void)
{
    begin();
    reads(0, SIGUSR1);
    CHECK(arrivals_patience_ms(&a, at(0)) == 300, "%d", arrivals_patience_ms(&a, at(0)));
    KNOWN(299, "");
    KNOWN(300, "10a");
    CHECK(arrivals_patience_ms(&a, at(300)) == -1, "%d", arrivals_patience_ms(&a, at(300)));
}

static void a_note_before_or_after_says_that_it_was_for_the_group(void)
{
    begin();
    notes(0, SIGUSR1);
    reads(15, SIGUSR1);
    KNOWN(15, "10g");
    begin();
    reads(0, SIGUSR1);
    reads(0, SIGUSR2);
    notes(250, SIGUSR1);
    KNOWN(250, "10g");
    KNOWN(300, "12a");
}

static void a_note_counts_until_this_process_had_all_that_came_with_it(void)
{
    begin();
    notes(0, SIGUSR1);
    CHECK(arrivals_patience_ms(&a, at(0)) == 20, "%d", arrivals_patience_ms(&a, at(0)));
    reads(19, 0);
    reads(500, SIGUSR1); /* it was late: nothing says that it has read since */
    KNOWN(500, "10g");
    reads(510, SIGUSR1);
    KNOWN(810, "10a");
    CHECK(arrivals_patience_ms(&a, at(810)) == -1, "%d", arrivals_patience_ms(&a, at(810)));
}

static void a_note_stands_for_all_that_wait(void)
{
    begin();
    reads(0, SIGUSR1);
    reads(30, SIGUSR1);
    notes(60, SIGUSR1);
    KNOWN(60, "10g 10g");
}

/* The witness's SIGCONT was taken back by the stop, or its stop by the SIGCONT. */
static void what_the_last_stop_or_sigcont_took_back_was_for_the_group_too(void)
{
    static const uint32_t pairs[][2] = {
        {SIGCONT, SIGTSTP}, {SIGTSTP, SIGCONT}, {SIGTTIN, SIGCONT}, {SIGCONT, SIGTTOU}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char both[16];
        snprintf(both, sizeof both, "%ug %ug", pairs[i][0], pairs[i][1]);
        begin();
        reads(0, pairs[i][0]);
        reads(10, pairs[i][1]);
        notes(50, pairs[i][1]);
        KNOWN(50, both);
        begin();
        reads(0, pairs[i][0]);
        notes(50, pairs[i][1]);
        reads(100, pairs[i][1]); /* this process is later than the witness */
        KNOWN(100, both);
    }
}

/* The template's SIGCONT took the last one back here, or came instead of it. */
static void what_this_process_lost_to_the_template_tells_of_those_before_it(void)
{
    static const uint32_t pairs[][2] = {
        {SIGCONT, SIGTSTP}, {SIGCONT, SIGTTIN}, {SIGCONT, SIGTTOU}, {SIGTSTP, SIGCONT}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char one[16];
        snprintf(one, sizeof one, "%ug", pairs[i][0]);
        begin();
        reads(0, pairs[i][0]);
        arrivals_woken(&a, at(10));
        notes(50, pairs[i][1]);
        KNOWN(50, one);
        begin();
        reads(0, pairs[i][0]);
        notes(5, pairs[i][1]);
        arrivals_woken(&a, at(10));
        KNOWN(10, one);
    }
    begin();
    reads(0, SIGCONT); /* after a stop of the group that the witness notes late */
    notes(5, SIGTSTP);
    KNOWN(300, "18a");
    begin();
    reads(0, SIGUSR1);
    arrivals_woken(&a, at(10));
    notes(50, SIGTSTP);
    KNOWN(310, "10a");
}

static void a_stop_after_the_last_noted_sigcont_is_judged_by_itself(void)
{
    begin();
    reads(0, SIGCONT);
    reads(5, SIGTSTP);
    notes(10, SIGCONT);
    KNOWN(10, "18g");
    KNOWN(304, "");
    KNOWN(305, "20a");
}

static void other_signals_take_nothing_back_and_are_not_taken_back(void)
{
    begin();
    reads(0, SIGUSR1);
    reads(10, SIGTSTP);
    notes(20, SIGTSTP);
    KNOWN(20, "20g");
    KNOWN(310, "10a");
    begin();
    reads(0, SIGCONT);
    reads(10, SIGUSR1);
    notes(20, SIGUSR1);
    KNOWN(20, "10g");
    KNOWN(300, "18a");
}

static void what_waits_waits_anew_with_a_stop_or_a_sigcont(void)
{
    begin();
    reads(0, SIGCONT);
    reads(290, SIGTSTP);
    KNOWN(300, "");
    notes(340, SIGTSTP);
    KNOWN(340, "18g 20g");
    begin();
    reads(0, SIGUSR1);
    arrivals_woken(&a, at(4000)); /* the witness may have been stopped, too */
    KNOWN(4000, "");
    notes(4010, SIGUSR1);
    KNOWN(4010, "10g");
}

static void stops_and_sigconts_keep_their_order(void)
{
    begin();
    reads(0, SIGCONT);
    reads(100, SIGTSTP);
    reads(200, SIGCONT);
    CHECK(arrivals_has(&a, SIGCONT) && !arrivals_has(&a, SIGTTIN), "%u", a.n);
    KNOWN(499, "");
    KNOWN(500, "18a 20a 18a");
}

static void no_more_is_read_than_there_is_room_for(void)
{
    begin();
    for (int i = 0; i < ARRIVALS_WAITING; i++) {
        CHECK(!arrivals_full(&a), "%d", i);
        arrivals_read(&a, 40, at(0));
    }
    CHECK(arrivals_full(&a), "%u", a.n);
    notes(1, SIGUSR2); /* nothing is read, so it counts on, and there is nothing to wake up for */
    CHECK(arrivals_patience_ms(&a, at(1)) == 299, "%d", arrivals_patience_ms(&a, at(1)));
    known(300);
    CHECK(a.n == 0, "%u", a.n);
}

int main(void)
{
    one_without_a_note_was_for_the_process_alone();
    a_note_before_or_after_says_that_it_was_for_the_group();
    a_note_counts_until_this_process_had_all_that_came_with_it();
    a_note_stands_for_all_that_wait();
    what_the_last_stop_or_sigcont_took_back_was_for_the_group_too();
    what_this_process_lost_to_the_template_tells_of_those_before_it();
    a_stop_after_the_last_noted_sigcont_is_judged_by_itself();
    other_signals_take_nothing_back_and_are_not_taken_back();
    what_waits_waits_anew_with_a_stop_or_a_sigcont();
    stops_and_sigconts_keep_their_order();
    no_more_is_read_than_there_is_room_for();
    return failures != 0;
}
