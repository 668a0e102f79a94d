! A matrix written by columns of each rank through a view, collectively, in one of Fortran's three
! bindings (BINDING 1: mpif.h, 2: use mpi, 3: use mpi_f08), read back with what all of them have to
! translate: a status, none, MPI_BOTTOM, and a part of an array that does not lie together.
program bindings
#if BINDING == 3
  use mpi_f08
#elif BINDING == 2
  use mpi
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
#if BINDING == 3
#define HANDLE(t) type(t)
  type(MPI_Status) :: status
#else
#define HANDLE(t) integer
  integer :: status(MPI_STATUS_SIZE)
#endif
  integer, parameter :: rows = 50, mine = 8
  HANDLE(MPI_File) :: file
  HANDLE(MPI_Datatype) :: columns, memory
  integer :: rank, ranks, ierror, count, i, j, wrong
  integer(MPI_ADDRESS_KIND) :: place(1)
  integer(MPI_OFFSET_KIND) :: zero = 0, position
  integer, target, asynchronous :: block(rows, mine), back(rows, mine)
  character(1000) :: path

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, path)
  do j = 1, mine
    do i = 1, rows
      block(i, j) = i + rows * (j - 1 + mine * rank)
    end do
  end do
  call MPI_Type_create_subarray(2, [rows, mine * ranks], [rows, mine], [0, mine * rank], &
                                MPI_ORDER_FORTRAN, MPI_INTEGER, columns, ierror)
  call MPI_Type_commit(columns, ierror)
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &
                     file, ierror)
  call MPI_File_set_view(file, zero, MPI_INTEGER, columns, 'native', MPI_INFO_NULL, ierror)
  wrong = 0

  call MPI_File_write_all(file, block, rows * mine, MPI_INTEGER, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, count, ierror)
  call MPI_File_get_position(file, position, ierror)
  if (count /= rows * mine .or. position /= rows * mine) wrong = wrong + 1

  back = 0
  call MPI_File_read_at_all(file, zero, back, rows * mine, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
  if (any(back /= block)) wrong = wrong + 2

  back = 0
  call MPI_Get_address(back, place(1), ierror)
  call MPI_Type_create_hindexed(1, [rows * mine], place, MPI_INTEGER, memory, ierror)
  call MPI_Type_commit(memory, ierror)
  call MPI_File_read_at_all_begin(file, zero, MPI_BOTTOM, 1, memory, ierror)
  call MPI_File_read_at_all_end(file, MPI_BOTTOM, status, ierror)
  call MPI_Get_count(status, memory, count, ierror)
  call look_again(back)
  if (any(back /= block) .or. count /= 1) wrong = wrong + 4

  call MPI_File_close(file, ierror)
  call MPI_Type_free(columns, ierror)
  call MPI_Type_free(memory, ierror)
  print '(a,i0,a,i0)', 'rank ', rank, ' wrong ', wrong
  call MPI_Finalize(ierror)

contains

  ! The compiler does not see that MPI_BOTTOM changes it.
  subroutine look_again(array)
    integer, volatile :: array(:, :)
    if (array(1, 1) < 0) print *, 'negative'
  end subroutine
end program
