/* Mapping the counter page (see counters.h). */
#include "lab/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct lab_page *lab_page_open(const char *path, const struct lab_kind_name *names, unsigned n)
{
    if (n > LAB_MAX_KINDS) {
        errno = EINVAL;
        return NULL;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return NULL;
    struct lab_page *page = MAP_FAILED;
    if (ftruncate(fd, sizeof *page) == 0)
        page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int saved = errno;
    close(fd);
    errno = saved;
    if (page == MAP_FAILED)
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        snprintf(page->kinds[i].name, sizeof page->kinds[i].name, "%s", names[i].name);
        page->kinds[i].background = names[i].background != 0;
    }
    page->n_kinds = n;
    page->magic = LAB_MAGIC;
    return page;
}
