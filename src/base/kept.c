/* Variables that a shell loses. See kept.h. */
#include "base/kept.h"
#include "base/text.h"

#include <stdlib.h>

static const char name[] = "BRIGADE_KEPT", quote[] = "'\\''";

/* The first word of *text, its quotes taken off in place; *text is then what follows it. NULL if
 * there is none. */
static char *next_word(char **text)
{
    char *from = *text;
    while (*from == ' ')
        from++;
    if (*from++ != '\'')
        return NULL;
    char *word = from, *to = from;
    for (; *from; *to++ = *from++) {
        if (text_starts(from, quote))
            from += strlen(quote) - 1; /* its last letter is the one that is meant */
        else if (*from == '\'')
            break;
    }
    if (!*from)
        return NULL;
    *text = from + 1;
    *to = '\0';
    return word;
}

void kept_restore(void)
{
    const char *value = getenv(name);
    char *text = value ? strdup(value) : NULL, *rest = text, *word;
    unsetenv(name);
    while (rest && (word = next_word(&rest))) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = '\0';
        setenv(word, equals + 1, 0);
    }
    free(text);
}
