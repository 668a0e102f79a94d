/* See static_start.h.
 *
 * A static program looks at LD_LIBRARY_PATH when it starts, for a dlopen that may come, and before
 * glibc 2.34 it crashes if $ORIGIN, $LIB or $PLATFORM is in it (bug 23462). So the variable has
 * another name until main: there is no dlopen here, and the program gets it as it was.
 *
 * What must stay true: the C library has not begun where the name is changed. No call of it, no
 * thread-local storage.
 */
#include "base/static_start.h"

#include <stddef.h>

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl brigade_start\n.type brigade_start, @function\nbrigade_start:\n"
        "    mov %rsp, %rdi\n"
        "    push %rdx\n"
        "    sub $8, %rsp\n"
        "    call static_start_hide\n"
        "    add $8, %rsp\n"
        "    pop %rdx\n"
        "    jmp _start\n"
        ".size brigade_start, . - brigade_start\n.popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".globl brigade_start\n.type brigade_start, %function\nbrigade_start:\n"
        "    mov x19, x0\n"
        "    mov x0, sp\n"
        "    bl static_start_hide\n"
        "    mov x0, x19\n"
        "    b _start\n"
        ".size brigade_start, . - brigade_start\n.popsection\n");
#endif

static const char name[] = "LD_LIBRARY_PATH=";
static char *hidden;

/* `stack` as the kernel makes it: a count, as many arguments, NULL, variables, NULL. */
__attribute__((used, visibility("hidden"))) void static_start_hide(char **stack);
void static_start_hide(char **stack)
{
    for (char **variable = stack + (size_t)stack[0] + 2; *variable; variable++) {
        const char *at = *variable;
        size_t n = 0;
        while (name[n] && at[n] == name[n])
            n++;
        if (name[n])
            continue;
        while (at[n] && at[n] != '$')
            n++;
        if (at[n] && !hidden) {
            hidden = *variable;
            *hidden = '-';
        }
    }
}

void static_start_show(void)
{
    if (hidden)
        *hidden = name[0];
}
