"""How a template speaks with the preloaded library: by `readlink` of paths that do not exist.

    twins()           before the first wait: how many copies of this process are to serve beside it
    twin_forked()     in the template, of each
    twin()            in the copy
    wait()            the environment of the next request, as `name=value` with NUL after each;
                      None: none will come
    refuse(why)       the rank of that request is to be started in the ordinary way
    refuse_all(why)   and those of all that will come
    forked(pid)       in the template: its rank is this process; -1: it could not be forked
    child()           in the rank: become what the rank process is, with signals held back
    begin()           in the rank: all is as it must be; signals may come
    own()             what this process has that no child of fork would, but for threads, or ""
    otherwise(environ)   which of these variables C has otherwise, and how many more it has
    report(text)      what became warm, as JSON of less than REPORT_BYTES
    again()           {variable: value} for a template that this one executes in its own place;
                      None if that is not possible

What must stay true: the calls never reach the kernel (src/view/hooks_fork.c answers them). Where
nobody answers, wait() raises OSError, and the process is of no use.
"""

import sys

_posix = sys.modules["posix"]
_FOLDER = b"/.brigade/fork/"
_SOCKET = b"BRIGADE_FORK_SOCKET"
REPORT_BYTES = 360


class Channel:
    def twins(self):
        try:
            return int(_posix.readlink(_FOLDER + b"twins"))
        except (OSError, ValueError):
            return 0

    def twin_forked(self):
        self._tell(b"twin-forked", "")

    def twin(self):
        self._tell(b"twin", "")

    def wait(self):
        answer = _posix.readlink(_FOLDER + b"wait")
        if not answer:
            return None
        fd, offset, size = [int(word) for word in answer.split()]
        return _posix.pread(fd, size, offset)

    def refuse(self, why):
        self._tell(b"refuse/", why)

    def refuse_all(self, why):
        self._tell(b"refuse-all/", why)

    def forked(self, pid):
        self._tell(b"forked/", str(pid))

    def child(self):
        self._tell(b"child", "")

    def begin(self):
        self._tell(b"begin", "")

    def report(self, text):
        self._tell(b"report/", text)

    def own(self):
        try:
            return _posix.readlink(_FOLDER + b"own").decode()
        except OSError:
            return ""

    def otherwise(self, environ):
        try:
            count = int(_posix.readlink(_FOLDER + b"variables"))
            entries = [(name, _FOLDER + b"has/" + name + b"=" + environ[name]) for name in environ]
            names = {name for name, entry in entries if _posix.readlink(entry) == b"0"}
            return names, count - len(entries)
        except (OSError, ValueError):
            return set(), 0

    def again(self):
        try:
            value = _posix.readlink(_FOLDER + b"again")
        except OSError:
            return None
        return {_SOCKET: value} if value else None

    def _tell(self, word, text):
        data = text.encode("utf-8", "surrogateescape").replace(b"\0", b" ")
        try:
            _posix.readlink(_FOLDER + word + data)
        except OSError:
            pass  # the answer is the call itself
