/* An object that offers a call of MPI's by its name, as tools that watch programs do, and many
 * others. */
int MPI_File_get_info(void *file, void *info);
int MPI_File_read_shared(void *file);

int MPI_File_get_info(void *file, void *info)
{
    return file == info;
}

int MPI_File_read_shared(void *file)
{
    return !file;
}
