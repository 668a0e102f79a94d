/* What a process may ask MPI for: by the objects it has loaded. Each kind in a process of its own,
 * as what was found once stays found. */
#include "mpiio/asks.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../claim.h"

/* asks_for(what) before and after a load: two bits; -1 where it cannot be loaded. */
static int around(const char *library, enum asks what)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int before = asks_for(what);
        _exit(dlopen(library, RTLD_LAZY | RTLD_LOCAL) ? before << 1 | asks_for(what) : 99);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) != 99 ? WEXITSTATUS(status) : -1;
}

static void who_takes_a_call_asks_for_it(void)
{
    CHECK(around(TAKER_OFFERING, ASKS_HINTS) == 1, "by its symbols");
    CHECK(around(TAKER_HIDDEN, ASKS_HINTS) == 1, "by its relocations");
}

static void who_takes_one_call_does_not_ask_for_another(void)
{
    CHECK(around(TAKER_OFFERING, ASKS_SHARED) == 0, "by its symbols");
    CHECK(around(TAKER_HIDDEN, ASKS_SHARED) == 0, "by its relocations");
}

static void who_offers_a_call_does_not_ask_for_it(void)
{
    CHECK(around(OFFERER, ASKS_HINTS) == 0, "hints");
    CHECK(around(OFFERER, ASKS_SHARED) == 0, "a shared pointer");
}

int main(void)
{
    who_takes_a_call_asks_for_it();
    who_takes_one_call_does_not_ask_for_another();
    who_offers_a_call_does_not_ask_for_it();
    return failures != 0;
}
