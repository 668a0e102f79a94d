/* Preloaded into mfsmount: counts its requests to the metadata server, by kind, and its data bytes.
 *
 * The client's own file `.stats` gives only the sum of all packets, in which what programs asked
 * for cannot be told from the client's keep-alives (about 0.4 a second), and no bytes of data at
 * all. So the client's sockets are watched from inside: connect() says which of them lead to the
 * metadata server (by its port) and which to chunk servers; what is written to the first is a
 * stream of packets
 *
 *   +-------------+-------------+-- length bytes --+
 *   | request, BE | length, BE  | ...              |
 *   +-------------+-------------+------------------+
 *
 * of which only the headers are looked at. Nothing is changed, delayed or copied; if the page
 * cannot be opened nothing is counted. The sums equal the client's own (a test compares them).
 *
 *   BRIGADE_LAB_COUNTERS     the page's file (counters.h)
 *   BRIGADE_LAB_MASTER_PORT  the metadata server's port
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lab/counters.h"
#include "lab/mfs_requests.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_FD 131072 /* mfsmount allows itself 100000 */
#define MAX_REQUEST 1024

enum peer {
    PEER_OTHER = 0,
    PEER_MASTER,
    PEER_CHUNK
};

/* Where in the stream of packets to the metadata server we are. The client writes to it under a
 * lock of its own and has one such connection at a time. */
struct parser {
    unsigned char header[8];
    unsigned have;
    uint64_t skip;
};

static struct lab_page *page;
static uint16_t master_port;
static uint8_t peers[MAX_FD];
static uint8_t kind_of[MAX_REQUEST];
static struct parser parser;

#define NAME_OF(number, name, background) {name, background},
static const struct lab_kind_name names[] = {{"other", 0}, MFS_REQUESTS(NAME_OF)};
#undef NAME_OF

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("BRIGADE_LAB_COUNTERS");
    const char *port = getenv("BRIGADE_LAB_MASTER_PORT");
    uint8_t next = 1;
#define KIND_OF(number, name, background) kind_of[number] = next++;
    MFS_REQUESTS(KIND_OF)
#undef KIND_OF
    if (path && port) {
        master_port = (uint16_t)atoi(port);
        page = lab_page_open(path, names, sizeof names / sizeof *names);
    }
    unsetenv("LD_PRELOAD");
}

static enum peer peer_of(int fd)
{
    if (!page || fd < 0 || fd >= MAX_FD)
        return PEER_OTHER;
    return (enum peer)__atomic_load_n(&peers[fd], __ATOMIC_RELAXED);
}

static void set_peer(int fd, enum peer peer)
{
    if (fd >= 0 && fd < MAX_FD)
        __atomic_store_n(&peers[fd], (uint8_t)peer, __ATOMIC_RELAXED);
}

static void count_request(void)
{
    uint32_t number, length;
    memcpy(&number, parser.header, 4);
    memcpy(&length, parser.header + 4, 4);
    number = ntohl(number);
    lab_count(&page->kinds[number < MAX_REQUEST ? kind_of[number] : 0].count, 1);
    parser.have = 0;
    parser.skip = ntohl(length);
}

static void parse(const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        if (parser.skip > 0) {
            size_t step = parser.skip < n ? (size_t)parser.skip : n;
            parser.skip -= step;
            bytes += step;
            n -= step;
            continue;
        }
        parser.header[parser.have++] = *bytes++;
        n--;
        if (parser.have == sizeof parser.header)
            count_request();
    }
}

static void sent(int fd, const void *bytes, ssize_t n)
{
    enum peer peer = n > 0 ? peer_of(fd) : PEER_OTHER;
    if (peer == PEER_MASTER)
        parse(bytes, (size_t)n);
    else if (peer == PEER_CHUNK)
        lab_count(&page->bytes_written, (uint64_t)n);
}

static void received(int fd, ssize_t n)
{
    if (n > 0 && peer_of(fd) == PEER_CHUNK)
        lab_count(&page->bytes_read, (uint64_t)n);
}

/* The libc function behind a hook; looked up once, racing threads find the same. */
#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real)                     \
    real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    REAL(connect);
    if (address->sa_family == AF_INET) {
        int is_master = ntohs(((const struct sockaddr_in *)address)->sin_port) == master_port;
        if (is_master)
            memset(&parser, 0, sizeof parser);
        set_peer(fd, is_master ? PEER_MASTER : PEER_CHUNK);
    }
    return real(fd, address, length);
}

EXPORT int close(int fd)
{
    REAL(close);
    set_peer(fd, PEER_OTHER);
    return real(fd);
}

EXPORT ssize_t write(int fd, const void *bytes, size_t n)
{
    REAL(write);
    ssize_t done = real(fd, bytes, n);
    sent(fd, bytes, done);
    return done;
}

EXPORT ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    REAL(send);
    ssize_t done = real(fd, bytes, n, flags);
    sent(fd, bytes, done);
    return done;
}

EXPORT ssize_t sendto(int fd, const void *bytes, size_t n, int flags,
                      const struct sockaddr *address, socklen_t length)
{
    REAL(sendto);
    ssize_t done = real(fd, bytes, n, flags, address, length);
    sent(fd, bytes, done);
    return done;
}

/* Used for data only: packets to the metadata server are written whole. */
EXPORT ssize_t writev(int fd, const struct iovec *parts, int n)
{
    REAL(writev);
    ssize_t done = real(fd, parts, n);
    if (done > 0 && peer_of(fd) == PEER_CHUNK)
        lab_count(&page->bytes_written, (uint64_t)done);
    return done;
}

EXPORT ssize_t read(int fd, void *bytes, size_t n)
{
    REAL(read);
    ssize_t done = real(fd, bytes, n);
    received(fd, done);
    return done;
}

EXPORT ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    REAL(recv);
    ssize_t done = real(fd, bytes, n, flags);
    received(fd, done);
    return done;
}

EXPORT ssize_t recvfrom(int fd, void *bytes, size_t n, int flags, struct sockaddr *address,
                        socklen_t *length)
{
    REAL(recvfrom);
    ssize_t done = real(fd, bytes, n, flags, address, length);
    received(fd, done);
    return done;
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int n)
{
    REAL(readv);
    ssize_t done = real(fd, parts, n);
    received(fd, done);
    return done;
}
