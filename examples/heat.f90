! Heat in a plate, whose left edge is hot: each rank holds some of the columns. It goes on where its
! checkpoint stopped, on any number of ranks that have a column each.
!
!     mpirun -n 4 ./heat_f heat.ckpt 50; mpirun -n 2 ./heat_f heat.ckpt 50
program heat
  use mpi_f08
  use brigade_io
  use, intrinsic :: iso_fortran_env
  implicit none
  integer(int64), parameter :: n = 64
  integer(int64) :: done, steps, first, last, i
  integer :: rank, ranks, world
  real(real64), allocatable :: u(:, :) ! columns first - 1 and last + 1 belong to the neighbours
  character(256) :: path, word
  type(brg_file) :: file
  type(brg_error) :: err

  path = 'heat.ckpt'
  steps = 50
  if (command_argument_count() > 0) call get_command_argument(1, path)
  if (command_argument_count() > 1) then
    call get_command_argument(2, word)
    read (word, *) steps
  end if
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  world = MPI_COMM_WORLD%MPI_VAL
  first = n * rank / ranks + 1
  last = n * (rank + 1) / ranks
  allocate (u(n, first - 1:last + 1), source=0.0_real64)
  done = 0

  call brg_file_open(world, path, BRG_READ, file, err)
  if (err%code == 0) then
    call brg_file_read_array(file, 'u', [1_int64, first], u(:, first:last), err)
    call stop_if_failed
    call brg_file_get_attribute(file, '', 'step', done, err)
    call stop_if_failed
    call brg_file_close(file, err)
  else if (err%code == -2) then ! ENOENT: there is none yet
    u(1, :) = 100
  else
    call stop_if_failed
  end if

  do i = 1, steps
    call step
  end do
  done = done + steps

  call brg_file_open(world, path, ior(BRG_WRITE, BRG_CREATE), file, err)
  call stop_if_failed
  call brg_file_write_array(file, 'u', [n, n], [1_int64, first], u(:, first:last), err)
  call stop_if_failed
  call brg_file_set_attribute(file, '', 'step', done, err)
  call stop_if_failed
  call brg_file_commit(file, err) ! until here, the old checkpoint is there
  call stop_if_failed
  call brg_file_close(file, err)
  if (rank == 0) print '(i0, " steps in ", a)', done, trim(path)
  call MPI_Finalize()

contains

  ! All ranks come here together: a failure is everybody's.
  subroutine stop_if_failed
    if (err%code == 0) return
    if (rank == 0) print '("rank ", i0, ", ", a, ": ", a)', err%rank, err%path, err%text
    call MPI_Finalize()
    stop 1
  end subroutine

  subroutine step
    real(real64) :: before(n, first - 1:last + 1)
    integer :: left, right
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(u(:, first), int(n), MPI_DOUBLE_PRECISION, left, 0, u(:, last + 1), int(n), &
                      MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(u(:, last), int(n), MPI_DOUBLE_PRECISION, right, 0, u(:, first - 1), int(n), &
                      MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    before = u
    u(2:n - 1, first:last) = 0.25 * (before(2:n - 1, first - 1:last - 1) + &
      before(2:n - 1, first + 1:last + 1) + before(1:n - 2, first:last) + before(3:n, first:last))
  end subroutine
end program
