/* The requests that a MooseFS 3 or 4 client sends to its metadata server, by number.
 *
 * X(number, name, background). Numbers as in MooseFS' protocol; a request that is not listed is
 * counted as "other". Background requests go out by the clock or when a connection is made: keep-
 * alive (0), registration (400), inodes held open (499, 700), access times in bulk (701), clock
 * (704), numbers of operations (710), whether anything waits to be written (711).
 */
#define MFS_REQUESTS(X)          \
    X(0, "keep-alive", 1)        \
    X(400, "register", 1)        \
    X(402, "statfs", 0)          \
    X(404, "access", 0)          \
    X(406, "lookup", 0)          \
    X(408, "getattr", 0)         \
    X(410, "setattr", 0)         \
    X(412, "readlink", 0)        \
    X(414, "symlink", 0)         \
    X(416, "mknod", 0)           \
    X(418, "mkdir", 0)           \
    X(420, "unlink", 0)          \
    X(422, "rmdir", 0)           \
    X(424, "rename", 0)          \
    X(426, "link", 0)            \
    X(428, "readdir", 0)         \
    X(430, "open", 0)            \
    X(432, "read-chunk", 0)      \
    X(434, "write-chunk", 0)     \
    X(436, "write-chunk-end", 0) \
    X(464, "truncate", 0)        \
    X(478, "getxattr", 0)        \
    X(480, "setxattr", 0)        \
    X(482, "create", 0)          \
    X(488, "getfacl", 0)         \
    X(490, "setfacl", 0)         \
    X(492, "flock", 0)           \
    X(494, "posix-lock", 0)      \
    X(498, "fsync", 0)           \
    X(499, "held-inodes-old", 1) \
    X(700, "held-inodes", 1)     \
    X(701, "access-times", 1)    \
    X(704, "clock", 1)           \
    X(710, "operations", 1)      \
    X(711, "write-flags", 1)
