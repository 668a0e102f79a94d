! Barriers and sums from Fortran, while their times are taken: prints how many were seen, and
! whether their results were right.
program yield_driver
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine busy(change) bind(c, name="brg_pmpi_busy")
      import :: c_int
      integer(c_int), value :: change
    end subroutine
    subroutine get_sums(sums) bind(c, name="brg_pmpi_sums")
      import :: c_double
      real(c_double) :: sums(7)
    end subroutine
  end interface
  real(c_double) :: sums(7)
  integer :: i, turn, error, rank, ranks, total
  logical :: right
  right = .true.
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  do turn = 0, 1
    call busy(int(turn, c_int))
    do i = 1, 10
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Allreduce(rank + i, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
      right = right .and. total == ranks * (ranks - 1) / 2 + ranks * i
      total = merge(i, 0, rank == ranks - 1)
      call MPI_Bcast(total, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
      right = right .and. total == i
    end do
  end do
  call get_sums(sums)
  if (rank == 0) print '(i0, 1x, l1)', int(sums(1)), right
  call MPI_Finalize(error)
end program
