/* Shared memory of forked ranks. See saved.h. */
#include "fork/saved.h"
#include "base/sys.h"
#include "base/text.h"

uint64_t saved_by(int pid)
{
    char path[48], text[4096];
    struct text name = text_in(path, sizeof path);
    text_add(&name, "/proc/");
    text_number(&name, (uint64_t)pid, 10);
    text_add(&name, "/smaps_rollup");
    if (sys_read_text(path, text, sizeof text) <= 0)
        return 0;
    uint64_t used_kib = text_line_number(text, "Anonymous:");
    uint64_t part_kib = text_line_number(text, "Pss_Anon:");
    return part_kib && used_kib > part_kib ? (used_kib - part_kib) << 10 : 0;
}
