/* Independent calls whose bytes lie together, one after another; the lines must be the same with
 * and without the library:
 *   rows    datatypes that are used often, freed, and made anew of another form
 *   ends    nothing at all, the end of the file, pointers, parts that are padded or begin later
 *   past    pointers when reading has come to the end of the file: of one rank, of all, with a type
 *           that is seen first there
 *   swaps   files that come and go in each other's place, one of them MPI's own
 *   views   records of a view, one by one, and more than one of them */
#include "late_driver.h"

static MPI_Offset part(void)
{
    return rank * 5000;
}

static void say_count(MPI_Status *status)
{
    int n;
    MPI_Get_elements(status, MPI_BYTE, &n);
    say("count", n);
}

static MPI_Datatype made(int blocks, int bytes, int pitch)
{
    MPI_Datatype type;
    MPI_Type_vector(blocks, bytes, pitch, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* A handle comes again: what was known of it must have gone. */
static void rows(const char *path)
{
    static const int forms[4][3] = {{1, 24, 24}, {2, 12, 30}, {3, 8, 8}, {6, 4, 40}};
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at = part();
    for (int i = 0; i < 16; i++) {
        MPI_Datatype type = made(forms[i % 4][0], forms[i % 4][1], forms[i % 4][2]), copy;
        for (int call = 0; call < 3; call++, at += 24 * (call + 1))
            MPI_File_write_at(f, at, buf + i * 100 + call, 1 + call % 2, type, MPI_STATUS_IGNORE);
        MPI_Type_dup(type, &copy);
        MPI_Type_free(&type);
        MPI_File_write_at(f, at, buf + i, 2, copy, MPI_STATUS_IGNORE);
        MPI_File_write_at(f, at + 48, buf + i, 1, copy, MPI_STATUS_IGNORE);
        at += 72;
        MPI_Type_free(&copy);
    }
    say("at", at - part());
    MPI_File_close(&f);
    say_bytes(path);
}

static void ends(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Datatype three = made(1, 3, 3), padded, later;
    MPI_Status status;
    MPI_Offset at;
    MPI_File_write_at(f, part(), buf, 4000, MPI_BYTE, &status);
    say_count(&status);
    MPI_File_write_at(f, part() + 10, buf, 0, MPI_BYTE, &status);
    say_count(&status);
    MPI_Type_create_resized(three, 0, 8, &padded);
    MPI_Type_create_hindexed_block(1, 3, (MPI_Aint[]){5}, MPI_BYTE, &later);
    MPI_Type_commit(&padded);
    MPI_Type_commit(&later);
    for (int call = 0; call < 2; call++) {
        MPI_File_write_at(f, part() + 100 * call, buf + 50, 1, padded, &status);
        say_count(&status);
        MPI_File_write_at(f, part() + 100 * call + 30, buf + 50, 3, padded, &status);
        say_count(&status);
        MPI_File_write_at(f, part() + 100 * call + 60, buf + 50, 1, later, &status);
        say_count(&status);
    }
    MPI_File_seek(f, part() + 1000, MPI_SEEK_SET);
    for (int call = 0; call < 3; call++)
        MPI_File_write(f, buf + call, 7, MPI_SHORT, MPI_STATUS_IGNORE);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(f, (size - 1) * 5000 + 3990, buf, 100, MPI_BYTE, &status);
    say_count(&status);
    MPI_File_read_at(f, size * 5000, buf, 100, MPI_BYTE, &status);
    say_count(&status);
    MPI_File_set_view(f, part(), MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read(f, buf, 9, MPI_INT, &status);
    say_count(&status);
    MPI_File_get_position(f, &at);
    say("position", at);
    say("refused", MPI_File_write_at(f, -4, buf, 4, MPI_BYTE, &status) != MPI_SUCCESS);
    MPI_Type_free(&three);
    MPI_Type_free(&padded);
    MPI_Type_free(&later);
    MPI_File_close(&f);
    say_bytes(path);
}

static void past(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Datatype four = made(1, 4, 4);
    MPI_Offset at;
    MPI_File_write_at_all(f, rank * 50, buf, 50, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int call = 0; call < 8; call++) {
        if (call % 2 == 0)
            MPI_File_seek(f, call == 6 ? 200 : 40, MPI_SEEK_SET);
        if (call / 2 == 0)
            MPI_File_read(f, buf, 16, four, MPI_STATUS_IGNORE);
        else if (call / 2 == 1)
            MPI_File_read_all(f, buf, 64, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_read(f, buf, 64, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_get_position(f, &at);
        say("position", at);
    }
    MPI_Type_free(&four);
    MPI_File_close(&f);
}

/* Runs that lie apart, in a file of this rank's own. */
static void write_turns_alone(const char *path, MPI_Info info)
{
    MPI_File f;
    if (MPI_File_open(MPI_COMM_SELF, path, FOR_ALL, info, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_File_write_at(f, 0, buf, 9000, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns(f, 400);
    MPI_File_write_at(f, 2, buf, 800, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
}

static void swaps(const char *path)
{
    char name[1000];
    MPI_Info off;
    MPI_File kept;
    MPI_Info_create(&off);
    MPI_Info_set(off, "brigade", "off");
    snprintf(name, sizeof name, "%s.kept", path);
    kept = open_file(name, FOR_ALL);
    for (int i = 0; i < 6; i++) {
        MPI_File f;
        snprintf(name, sizeof name, "%s.%d", path, i % 3);
        if (MPI_File_open(MPI_COMM_WORLD, name, FOR_ALL, i == 4 ? off : MPI_INFO_NULL, &f))
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_File_write_at(f, part() + i * 50, buf + i, 60, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_write_at(kept, part() + i * 50, buf + i, 60, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_write_at(f, part() + i * 50 + 60, buf + i, 20, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_close(&f);
        say_bytes(name);
    }
    MPI_File_close(&kept);
    snprintf(name, sizeof name, "%s.kept", path);
    say_bytes(name);
    for (int i = 0; i < 6; i++) { /* every other one has a handle that was another's */
        snprintf(name, sizeof name, "%s.own.%d.%d", path, rank, i);
        write_turns_alone(name, i % 2 ? off : MPI_INFO_NULL);
        say_bytes(name);
    }
    MPI_Info_free(&off);
}

static void views(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at;
    MPI_Status status;
    MPI_File_write_at_all(f, part(), buf, 5000, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns(f, 6);
    for (int call = 0; call < 5; call++) {
        MPI_File_write_at(f, 6 * call, buf + 9 * call, 6, MPI_INT, &status);
        say_count(&status);
    }
    for (int call = 0; call < 4; call++)
        MPI_File_read_at(f, 6 * call + 1, buf, call, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_seek(f, 30, MPI_SEEK_SET);
    for (int call = 0; call < 7; call++)
        MPI_File_read(f, buf + 24 * call, 6, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_read_at(f, 3, buf + 1000, 6, MPI_INT, &status); /* of two */
    say_count(&status);
    long sum = 0;
    for (int i = 0; i < 2000; i++)
        sum = sum * 31 + buf[i];
    say("read", sum >> 1);
    MPI_File_close(&f);
    say_bytes(path);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"rows", rows}, {"ends", ends}, {"past", past}, {"swaps", swaps}, {"views", views}};
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
