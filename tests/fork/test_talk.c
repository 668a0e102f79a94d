/* What was sent comes before the end, whatever the other side has left unread. */
#include "fork/talk.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../claim.h"

int main(void)
{
    int ends[2], passed[FORK_PASSED];
    struct fork_message m = {0};
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "a pair of sockets");
    struct fork_message unread = fork_message(FORK_SIGNAL, SIGTERM, 0, NULL);
    struct fork_message ended = fork_message(FORK_ENDED, SIGTERM, 0, NULL);
    CHECK(fork_send(ends[0], &unread, NULL) == 0, "a signal is passed on");
    CHECK(fork_send(ends[1], &ended, NULL) == 0, "to one that has ended meanwhile");
    close(ends[1]);
    CHECK(fork_receive(ends[0], &m, passed, 0) == 1, "how it ended is heard");
    CHECK(m.kind == FORK_ENDED && m.value == SIGTERM, "as it was said");
    CHECK(fork_receive(ends[0], &m, passed, 0) == 0, "and then the end");
    return failures != 0;
}
