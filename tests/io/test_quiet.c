/* A connection whose other end is gone does not end who writes to it, and that it is gone is told;
 * what a program does about SIGPIPE otherwise is left to it. */
#include "claim.h"
#include "mpi/quiet.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static int seen;

static void see(int number)
{
    seen = number;
}

static int write_to_nobody(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 0;
    close(ends[1]);
    int rc = write(ends[0], "x", 1) < 0 ? errno : 0;
    close(ends[0]);
    return rc;
}

/* Whether it was told of what was written to nobody. */
static int told(void)
{
    struct quiet quiet = quiet_begin();
    int rc = write_to_nobody();
    int came = quiet_end(&quiet);
    CHECK(rc == EPIPE, "%d", rc);
    return came;
}

static int is_blocked(void)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, SIGPIPE);
}

static void the_writer_lives_and_nothing_stays(void)
{
    CHECK(told(), "by default");
    CHECK(!is_blocked() && !quiet_pending(), "it stays");
    struct quiet quiet = quiet_begin();
    CHECK(!quiet_end(&quiet), "nobody was gone");
}

static void whatever_the_program_does_about_it(void)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK(told(), "where it is ignored");
    signal(SIGPIPE, see);
    CHECK(told() && !seen, "where there is a handler");
    raise(SIGPIPE);
    CHECK(seen == SIGPIPE, "the handler is the program's again");
    signal(SIGPIPE, SIG_DFL);
}

static void one_that_the_program_holds_back_stays(void)
{
    sigset_t pipe;
    struct timespec now = {.tv_sec = 0};
    quiet_only(&pipe);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    CHECK(told() && is_blocked() && !quiet_pending(), "held back, none there");
    raise(SIGPIPE);
    told();
    CHECK(is_blocked() && sigtimedwait(&pipe, NULL, &now) == SIGPIPE, "the program's is gone");
    pthread_sigmask(SIG_UNBLOCK, &pipe, NULL);
}

int main(void)
{
    the_writer_lives_and_nothing_stays();
    whatever_the_program_does_about_it();
    one_that_the_program_holds_back_stays();
    return failures != 0;
}
