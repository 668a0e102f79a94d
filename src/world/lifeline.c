/* See lifeline.h. The caller proves itself with `call`, the called one with `answer`: addresses may
 * be those of another machine (every node has a bridge of the same number), and such a connection
 * must never be taken for the neighbour's. */
#include "world/lifeline.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define MOST_CALLS 16 /* under way at a time, in and out */

/* ---- forked processes ---- */

/* Held where a connection is closed, too: no forked process shall close what took its number. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct lifeline *all; /* between lifeline_start and lifeline_close */

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void end_one(int *fd)
{
    pthread_mutex_lock(&lock);
    close_one(fd);
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Without a farewell: the rank itself stays connected. */
static void forked(void)
{
    for (struct lifeline *l = all; l; l = l->next) {
        close_one(&l->left);
        close_one(&l->right);
        close_one(&l->listener);
    }
    after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, forked);
}

static void enlist(struct lifeline *l)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    l->next = all;
    all = l;
    pthread_mutex_unlock(&lock);
}

static void delist(const struct lifeline *l)
{
    pthread_mutex_lock(&lock);
    for (struct lifeline **at = &all; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* ---- addresses ---- */

static void add_address(struct lifeline_card *card, const struct sockaddr *at)
{
    unsigned i = card->n_addresses;
    if (i == LIFELINE_ADDRESSES)
        return;
    card->addresses[i].family = at->sa_family;
    if (at->sa_family == AF_INET)
        memcpy(card->addresses[i].address,
               &((const struct sockaddr_in *)(const void *)at)->sin_addr, 4);
    else
        memcpy(card->addresses[i].address,
               &((const struct sockaddr_in6 *)(const void *)at)->sin6_addr, 16);
    card->n_addresses++;
}

static int is_loopback(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)at)->sin_addr.s_addr) >> 24) ==
               127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr);
}

/* Those that need no scope: first the ones that other machines can reach. */
static void list_addresses(struct lifeline_card *card)
{
    struct ifaddrs *all, *each;
    if (getifaddrs(&all))
        return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (each = all; each; each = each->ifa_next) {
            const struct sockaddr *at = each->ifa_addr;
            if (!at || (at->sa_family != AF_INET && at->sa_family != AF_INET6))
                continue;
            if (at->sa_family == AF_INET6 &&
                IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr))
                continue;
            if (is_loopback(at) == loopback)
                add_address(card, at);
        }
    freeifaddrs(all);
}

/* An IPv6 socket hears IPv4 callers too; where there is no IPv6, an IPv4 one. */
static int listen_anywhere(uint16_t *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    socklen_t bytes = sizeof six;
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) ||
                    bind(fd, (void *)&six, sizeof six))) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && bind(fd, (void *)&four, sizeof four)) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0 && (listen(fd, MOST_CALLS) || getsockname(fd, (void *)&six, &bytes))) {
        close(fd);
        fd = -1;
    }
    *port = fd < 0 ? 0 : ntohs(six.sin6_port); /* at the same place in both */
    return fd;
}

void lifeline_start(struct lifeline *l)
{
    memset(l, 0, sizeof *l);
    l->left = l->right = -1;
    l->listener = listen_anywhere(&l->card.port);
    if (getrandom(&l->card.call, sizeof l->card.call, 0) != sizeof l->card.call ||
        getrandom(&l->card.answer, sizeof l->card.answer, 0) != sizeof l->card.answer)
        l->card.port = 0;
    if (l->card.port)
        list_addresses(&l->card);
    enlist(l);
}

/* ---- calls ---- */

enum call_kind {
    CALL_IN,    /* somebody called: their proof is awaited */
    CALL_BEGUN, /* being connected */
    CALL_OUT    /* our proof is sent, theirs awaited */
};

enum {
    ENDED = POLLRDHUP | POLLHUP | POLLERR, /* nothing more comes: it would be told for ever */
    AWAITED = POLLIN | POLLRDHUP
};

struct calls {
    uint32_t n;
    struct pollfd fds[MOST_CALLS + 1]; /* the last: the listener */
    enum call_kind kinds[MOST_CALLS];
};

static void add_call(struct calls *c, int fd, enum call_kind kind)
{
    if (fd < 0)
        return;
    if (c->n == MOST_CALLS) {
        close(fd);
        return;
    }
    /* fewer bytes than a proof wake nobody: a stranger's would, again and again */
    int proof_bytes = sizeof(uint64_t);
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &proof_bytes, sizeof proof_bytes);
    c->kinds[c->n] = kind;
    c->fds[c->n++] = (struct pollfd){.fd = fd, .events = kind == CALL_BEGUN ? POLLOUT : AWAITED};
}

static void begin_calls(struct calls *c, const struct lifeline_card *card)
{
    for (unsigned i = 0; card->port && i < card->n_addresses && i < LIFELINE_ADDRESSES; i++) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(card->port)};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(card->port)};
        int is_six = card->addresses[i].family == AF_INET6;
        memcpy(&four.sin_addr, card->addresses[i].address, 4);
        memcpy(&six.sin6_addr, card->addresses[i].address, 16);
        int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        if (connect(fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof six : sizeof four) &&
            errno != EINPROGRESS)
            close(fd);
        else
            add_call(c, fd, CALL_BEGUN);
    }
}

/* Whether the other end has proved itself: 1, 0 not yet, -1 it is somebody else. */
static int proved(int fd, uint64_t want)
{
    uint64_t word;
    ssize_t n = recv(fd, &word, sizeof word, MSG_PEEK);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0 || (n == sizeof word && word != want))
        return -1;
    return n == sizeof word && recv(fd, &word, sizeof word, 0) == sizeof word;
}

/* One that fell silent without a word: its machine is gone. Late, so that no busy network is. */
static void keep_alive(int fd)
{
    int on = 1, idle_s = 5, every_s = 2, times = 10;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
}

/* Returns -1 when the call has ended, as a connection of ours or otherwise. */
static int advance_call(struct lifeline *l, struct calls *c, uint32_t i,
                        const struct lifeline_card *right)
{
    int fd = c->fds[i].fd, error = 0, answer;
    socklen_t bytes = sizeof error;
    if (c->kinds[i] == CALL_BEGUN) {
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
        if (error || send(fd, &right->call, sizeof right->call, MSG_NOSIGNAL) != sizeof right->call)
            return close(fd), -1;
        c->kinds[i] = CALL_OUT;
        c->fds[i].events = AWAITED;
        return 0;
    }
    int *side = c->kinds[i] == CALL_IN ? &l->left : &l->right;
    answer = proved(fd, side == &l->left ? l->card.call : right->answer);
    if (answer == 0 && !(c->fds[i].revents & ENDED))
        return 0;
    if (answer <= 0 || *side >= 0 ||
        (side == &l->left &&
         send(fd, &l->card.answer, sizeof l->card.answer, MSG_NOSIGNAL) != sizeof l->card.answer))
        return close(fd), -1;
    keep_alive(fd);
    *side = fd;
    return -1;
}

static int still_calling(const struct lifeline *l, const struct calls *c)
{
    int out = 0;
    for (uint32_t i = 0; i < c->n; i++)
        out |= c->kinds[i] != CALL_IN;
    return (l->right < 0 && out) || (l->left < 0 && l->listener >= 0);
}

void lifeline_connect(struct lifeline *l, const struct lifeline_card *right, uint64_t limit_ns)
{
    struct calls c = {.n = 0};
    uint64_t end = brg_clock_ns() + limit_ns;
    begin_calls(&c, right);
    while (still_calling(l, &c) && brg_clock_ns() < end) {
        c.fds[c.n] = (struct pollfd){.fd = l->listener, .events = POLLIN};
        if (poll(c.fds, c.n + 1, 20) <= 0)
            continue;
        int called = c.fds[c.n].revents & POLLIN;
        for (uint32_t i = c.n; i-- > 0;)
            if (c.fds[i].revents && advance_call(l, &c, i, right)) {
                c.n--;
                c.fds[i] = c.fds[c.n];
                c.kinds[i] = c.kinds[c.n];
            }
        if (called)
            add_call(&c, accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), CALL_IN);
    }
    while (c.n > 0)
        close(c.fds[--c.n].fd);
    end_one(&l->listener);
}

/* ---- afterwards ---- */

/* All that is ever sent, by both. */
struct word {
    uint32_t farewell, rank;
};

static int news_of(int *fd, uint32_t *rank)
{
    struct word word = {.farewell = 0};
    if (*fd < 0)
        return 0;
    ssize_t n = recv(*fd, &word, sizeof word, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == sizeof word && !word.farewell) {
        *rank = word.rank;
        return LIFELINE_DEATH;
    }
    end_one(fd);
    return n == sizeof word ? 0 : LIFELINE_ENDED;
}

void lifeline_forget(struct lifeline *l, int side)
{
    end_one(side < 0 ? &l->left : &l->right);
}

int lifeline_look(struct lifeline *l, int *side, uint32_t *rank)
{
    *side = -1;
    int news = news_of(&l->left, rank);
    if (news)
        return news;
    *side = 1;
    return news_of(&l->right, rank);
}

/* The room of an idle connection takes a word without waiting. */
static void say(int fd, struct word word)
{
    if (fd >= 0)
        send(fd, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void lifeline_tell(struct lifeline *l, uint32_t rank)
{
    say(l->left, (struct word){.rank = rank});
    say(l->right, (struct word){.rank = rank});
}

void lifeline_close(struct lifeline *l)
{
    int *fds[] = {&l->left, &l->right, &l->listener};
    say(l->left, (struct word){.farewell = 1});
    say(l->right, (struct word){.farewell = 1});
    for (int i = 0; i < 3; i++)
        end_one(fds[i]);
    delist(l);
}
