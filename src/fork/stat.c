/* Reading /proc/self/stat. See stat.h. */
#include "fork/stat.h"
#include "base/sys.h"

#include <errno.h>

int stat_read(uint64_t fields[STAT_FIELDS])
{
    char text[2048];
    long n = sys_read_text("/proc/self/stat", text, sizeof text);
    if (n <= 0)
        return n < 0 ? (int)n : -EIO;
    const char *at = text + n;
    while (at > text && *at != ')') /* the program's name may hold anything */
        at--;
    for (int i = 3; i < STAT_FIELDS; i++) {
        while (*at && *at != ' ')
            at++;
        at += *at == ' ';
        fields[i] = 0;
        int negative = *at == '-';
        for (const char *digit = at + negative; *digit >= '0' && *digit <= '9'; digit++)
            fields[i] = 10 * fields[i] + (uint64_t)(*digit - '0');
        if (negative)
            fields[i] = -fields[i];
    }
    return 0;
}
