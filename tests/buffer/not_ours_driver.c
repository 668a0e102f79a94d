/* `not_ours_driver N`: N rounds of read, write, pread, pwrite and lseek on none.txt, after opening
 * other.dat. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char bytes[64] = {0};
    int fd = open("none.txt", O_RDWR | O_CREAT, 0644), other = -1;
    if (argc > 2)
        other = open("other.dat", O_RDWR | O_CREAT, 0644);
    for (long i = atol(argv[1]); i; i--) {
        ssize_t n = pwrite(fd, bytes, 64, 0) + pread(fd, bytes, 64, 0) + read(fd, bytes, 1) +
                    write(fd, bytes, 1) + lseek(fd, 0, SEEK_SET);
        if (n != 130)
            return 1;
    }
    return close(other) && argc > 2;
}
