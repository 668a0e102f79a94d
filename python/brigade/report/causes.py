"""Why a look-up went to the real file system: the names in `src/view/state.h`, in words for a
table.
"""

CAUSES = {
    "UNKNOWN": "not looked up in the trial",
    "NO_CONTENT": "contents not in the image",
    "CHANGED": "changed during the job",
    "WRITE": "opened for writing",
    "DIRECTORY": "listing of a folder that may change",
    "UNSUPPORTED": "left to the kernel",
    "STAGE": "staged copy could not be used",
    "LATE": "the user's own file, after start-up",
}
