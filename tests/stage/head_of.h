/* The head of an image that a test makes: written, read into memory, and the file gone again. */
#ifndef TESTS_STAGE_HEAD_OF_H
#define TESTS_STAGE_HEAD_OF_H

#include <fcntl.h>
#include <unistd.h>

#include "brigade/image.h"
#include "image/format.h"
#include "../image/check.h"

/* Ends the writer `w` of the file `path`, which `fd` is open on. */
static void head_of(struct brg_image_writer *w, const char *path, int fd, char *head, size_t room)
{
    struct brg_error err = {0};
    char id[33];
    NEED(brg_image_writer_set_section(w, BRG_SECTION_META, "{}", 2, &err) == 0);
    NEED(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == 0);
    brg_image_writer_destroy(w);
    close(fd);
    fd = open(path, O_RDONLY);
    NEED(pread(fd, head, room, 0) >= BRG_PAGE);
    close(fd);
    unlink(path);
    NEED(brg_head_check(head, "the head", &err) == 0);
}

#endif
