/* A job that a process of its slots still runs is alive, also where that may not be looked into. */
#include "stage/alive.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "view/state.h"

#define SOMEBODY 65534

/* A state whose first slot is `pid`'s, which has started now or `before_s` seconds ago. */
static int state_of(pid_t pid, unsigned before_s)
{
    FILE *out = tmpfile();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct brg_state head = {.magic = BRG_STATE_MAGIC, .n_slots = BRG_STATE_SLOTS};
    struct brg_slot slots[BRG_STATE_SLOTS] = {
        {.pid = (uint32_t)pid,
         .start_ns = (uint64_t)(now.tv_sec - (time_t)before_s) * 1000000000u}};
    head.slots_off = sizeof head;
    if (!out || fwrite(&head, sizeof head, 1, out) != 1 || fwrite(slots, sizeof slots, 1, out) != 1)
        exit(9);
    fflush(out);
    return fileno(out);
}

/* A process that lives until it is killed, or until the test has ended: one of another user would
 * get no signal from that. */
static pid_t sleeper(int can_be_looked_into)
{
    int ready[2], ends[2];
    char c;
    if (pipe(ready) || pipe(ends))
        exit(9);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        prctl(PR_SET_DUMPABLE, can_be_looked_into);
        if (write(ready[1], "x", 1) != 1)
            _exit(9);
        _exit(read(ends[0], &c, 1) != 0);
    }
    close(ends[0]); /* and keeps the other, as long as it lives */
    if (read(ready[0], &c, 1) != 1)
        exit(9);
    return pid;
}

static int expect(const char *what, uint32_t found, pid_t wanted)
{
    if (found == (uint32_t)wanted)
        return 0;
    printf("%s: %u instead of %d\n", what, found, (int)wanted);
    return 1;
}

int main(void)
{
    const char *tail = "no/such/state";
    int failed = 0, root = geteuid() == 0;
    pid_t other = root ? sleeper(1) : 0;
    if (root && (setgid(SOMEBODY) || setuid(SOMEBODY)))
        return 9;
    prctl(PR_SET_DUMPABLE, 1);
    for (int can = 0; can < 2; can++) {
        pid_t pid = sleeper(can);
        failed += expect("it runs", alive_user_of(state_of(pid, 0), tail), pid);
        failed += expect("another of its number", alive_user_of(state_of(pid, 1000), tail), 0);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        failed += expect("it has ended", alive_user_of(state_of(pid, 0), tail), 0);
    }
    if (other)
        failed += expect("somebody else's", alive_user_of(state_of(other, 0), tail), 0);
    return failed != 0;
}
