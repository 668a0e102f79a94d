/* An object that refers to a call of MPI's. OFFERS: and has a symbol of its own for others, so that
 * its hash table says where those that it takes end. */
int MPI_File_get_info(void *file, void *info);

#ifdef OFFERS
__attribute__((visibility("default"))) int taker(void *file);

int taker(void *file)
#else
static __attribute__((used)) int taker(void *file)
#endif
{
    return MPI_File_get_info(file, 0);
}
