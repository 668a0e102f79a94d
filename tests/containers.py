"""A runtime of containers, for tests, and whether one works here."""

from __future__ import annotations

import subprocess

#: mount OTHER PATH [PROGRAM ...]: a mount namespace in which OTHER lies at PATH.
#: root OTHER PATH [PROGRAM ...]: OTHER for its root. Without a program it opens PATH/file itself.
RUNTIME = """
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
static int show(const char *folder)
{
    char path[4096], text[100] = "";
    snprintf(path, sizeof path, "%s/file", folder);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return 1;
    return write(1, text, strlen(text)) < 0;
}
int main(int argc, char **argv)
{
    int by_root = strcmp(argv[1], "root") == 0;
    if (unshare(CLONE_NEWUSER | (by_root ? 0 : CLONE_NEWNS)) != 0) return 10;
    if (by_root && (chroot(argv[2]) != 0 || chdir("/") != 0)) return 11;
    if (!by_root && mount(argv[2], argv[3], NULL, MS_BIND, NULL) != 0) return 12;
    if (argc == 4) return show(argv[3]);
    execvp(argv[4], argv + 4);
    return 13;
}
"""


def refusal() -> str:
    words = ["unshare", "--user", "--map-root-user", "--mount", "true"]
    return (
        ""
        if subprocess.run(words, capture_output=True).returncode == 0
        else "needs user namespaces"
    )
