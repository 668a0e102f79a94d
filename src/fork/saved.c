/* Shared memory of forked ranks. See saved.h. */
#include "fork/saved.h"
#include "base/sys.h"
#include "base/text.h"

/* The number behind `name` at the start of a line, in bytes; 0 if there is none. */
static uint64_t line_of(const char *text, const char *name)
{
    uint64_t kib = 0;
    while (*text && !text_starts(text, name)) {
        while (*text && *text != '\n')
            text++;
        text += *text == '\n';
    }
    if (!*text)
        return 0;
    for (text += strlen(name); *text == ' '; text++)
        ;
    for (; *text >= '0' && *text <= '9'; text++)
        kib = 10 * kib + (uint64_t)(*text - '0');
    return kib << 10;
}

uint64_t saved_by(int pid)
{
    char path[48], text[4096];
    struct text name = text_in(path, sizeof path);
    text_add(&name, "/proc/");
    text_number(&name, (uint64_t)pid, 10);
    text_add(&name, "/smaps_rollup");
    if (sys_read_text(path, text, sizeof text) <= 0)
        return 0;
    uint64_t used = line_of(text, "Anonymous:"), part = line_of(text, "Pss_Anon:");
    return part && used > part ? used - part : 0;
}
