/* See exchange.h. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>

char *exchange_schedule(const char *path)
{
    char *text = NULL;
    long bytes = -1;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        FILE *file = fopen(path, "r");
        if (file && fseek(file, 0, SEEK_END) == 0 && (bytes = ftell(file)) >= 0) {
            rewind(file);
            text = malloc((size_t)bytes + 1);
            if (!text || fread(text, 1, (size_t)bytes, file) != (size_t)bytes)
                bytes = -1;
        }
        if (file)
            fclose(file);
    }
    MPI_Bcast(&bytes, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (bytes < 0) {
        free(text);
        return NULL;
    }
    if (!text)
        text = malloc((size_t)bytes + 1);
    MPI_Bcast(text, (int)bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    text[bytes] = '\0';
    return text;
}

void exchange_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text >= ' ')
            putchar(*text);
    putchar('"');
}
