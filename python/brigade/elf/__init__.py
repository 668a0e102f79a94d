"""ELF files, and where ld.so looks for them: read and worked out, nothing is run.

`file` reads one file, `cache` reads /etc/ld.so.cache, `loader` asks ld.so which directories it
has by itself, `search` is ld.so's search, and `closure` everything a program is loaded with.
"""
