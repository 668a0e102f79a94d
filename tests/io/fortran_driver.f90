! What test_fortran.py has done in Fortran: `driver write FILE`, `driver read FILE`, `driver fail FILE`.
! Every rank holds the columns [first, last] of u(nx, ny), and of arrays of every kind.
program driver
  use mpi
  use brigade_io
  use, intrinsic :: iso_fortran_env
  implicit none
  integer(int64), parameter :: nx = 5, ny = 7
  type(brg_file) :: file
  type(brg_error) :: err
  character(512) :: what, path
  integer :: rank, ranks, ierr
  integer(int64) :: first, last, no(0)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call get_command_argument(1, what)
  call get_command_argument(2, path)
  first = rank * ny / ranks + 1
  last = (rank + 1) * ny / ranks
  select case (what)
  case ('write')
    call write_all
  case ('read')
    call read_all
  case ('fail')
    call fail_all
  end select
  call MPI_Finalize(ierr)

contains

  subroutine check(where)
    character(*), intent(in) :: where
    if (err%code == 0) return
    print '(a, ": ", a)', where, err%text
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine expect(true, what)
    logical, intent(in) :: true
    character(*), intent(in) :: what
    if (true) return
    print '(a, " on rank ", i0)', what, rank
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  ! u(i, j) = 100 i + j, of the columns that this rank holds, with a frame of ghosts around.
  function field() result(u)
    real(real64) :: u(0:nx + 1, first - 1:last + 1)
    integer(int64) :: i, j
    u = -1
    do j = first, last
      do i = 1, nx
        u(i, j) = 100 * i + j
      end do
    end do
  end function

  subroutine write_all
    real(real64) :: u(0:nx + 1, first - 1:last + 1)
    real(real64) :: dx(2) = [0.5_real64, 0.25_real64]
    integer(int64) :: shape(2), start(2), lines(1), line(1)
    u = field()
    shape = [nx, ny]
    start = [1_int64, first]
    lines = [int(ranks, int64)]
    line = [rank + 1_int64]
    call brg_file_open(MPI_COMM_WORLD, path, ior(BRG_WRITE, BRG_CREATE), file, err, 'segment=64K')
    call check('open')
    call brg_file_write_array(file, 'u', shape, start, u(1:nx, first:last), err)
    call check('u')
    call brg_file_write_array(file, 'i1', lines, line, [int(rank, int8)], err)
    call brg_file_write_array(file, 'i2', lines, line, [int(rank, int16)], err)
    call brg_file_write_array(file, 'i4', lines, line, [int(rank, int32)], err)
    call brg_file_write_array(file, 'i8', lines, line, [int(rank, int64)], err)
    call brg_file_write_array(file, 'r4', lines, line, [real(rank, real32)], err)
    call brg_file_write_array(file, 'r8', lines, line, rank + 0.0_real64, err)
    call brg_file_write_array(file, 'c4', lines, line, [cmplx(rank, -rank, real32)], err)
    call brg_file_write_array(file, 'c8', lines, line, [cmplx(rank, -rank, real64)], err)
    call check('kinds')
    if (rank == 1) then ! of an array without dimensions one rank has the element
      call brg_file_write_array(file, 'none', no, no, 2.5_real64, err)
    else
      call brg_file_write_array(file, 'none', no, no, u(2:1, 0), err)
    end if
    call check('an array without dimensions')
    call brg_file_set_attribute(file, 'u', 'dx', dx, err)
    call brg_file_set_attribute(file, '', 'step', 42_int64, err)
    call brg_file_set_attribute(file, '', 'title', 'heat, of a plate', err)
    call check('attributes')
    call brg_file_commit(file, err)
    call check('commit')
    call brg_file_close(file, err)
    call check('close')
  end subroutine

  subroutine read_all
    real(real64) :: u(0:nx + 1, first - 1:last + 1), column(nx), dx(2), one
    integer(int64) :: step
    character(:), allocatable :: title
    type(brg_array) :: array
    call brg_file_open(MPI_COMM_WORLD, path, BRG_READ, file, err)
    call check('open')
    call brg_file_find_array(file, 'u', array, err)
    call check('find')
    call expect(array%name == 'u' .and. array%type == BRG_FLOAT64, 'name and type')
    call expect(all(array%shape == [nx, ny]), 'shape in the order of Fortran')
    array = brg_file_array_at(file, 1)
    call expect(array%name == 'u' .and. brg_file_array_count(file) == 10, 'arrays in order')
    u = -1
    call brg_file_read_array(file, 'u', [1_int64, first], u(1:nx, first:last), err)
    call check('read')
    call expect(all(u == field()), 'a section with ghosts around')
    call brg_file_read_array(file, 'u', [1_int64, 3_int64], column, err)
    call check('a column')
    call expect(all(column == [103, 203, 303, 403, 503]), 'a column')
    call brg_file_read_array(file, 'u', [2_int64, 4_int64], one, err)
    call expect(err%code == 0 .and. one == 204, 'one element')
    call read_without_dimensions
    call brg_file_get_attribute(file, 'u', 'dx', dx, err)
    call check('dx')
    call brg_file_get_attribute(file, '', 'step', step, err)
    call check('step')
    call brg_file_get_attribute(file, '', 'title', title, err)
    call check('title')
    call expect(all(dx == [0.5, 0.25]) .and. step == 42, 'numbers')
    call expect(title == 'heat, of a plate', 'text')
    call expect(brg_file_attribute_count(file, 'u') == 1, 'attributes of u')
    call expect(brg_file_attribute_name(file, 'u', 1) == 'dx', 'name of an attribute')
    call expect(brg_file_size(file) > 280 .and. len(brg_file_explain(file)) >= 0, 'size')
    call brg_file_close(file, err)
    call check('close')
  end subroutine

  ! All take part; where one gives what is no block of it, all hear so, and nothing is written.
  subroutine read_without_dimensions
    real(real64) :: v(4), one
    integer(int64) :: from(1)
    integer :: i
    v = -1
    if (rank == 0) then
      call brg_file_read_array(file, 'none', no, one, err)
      call expect(err%code == 0 .and. one == 2.5_real64, 'an array without dimensions')
    else
      call brg_file_read_array(file, 'none', no, v(3:2), err)
      call expect(err%code == 0, 'nothing of it')
    end if
    call brg_file_read_array(file, 'none', no, v(2:2), err)
    call expect(err%code == 0 .and. all(v == [-1.0, 2.5, -1.0, -1.0]), 'an element of a buffer')
    v = -1
    do i = 1, 3
      from = i
      if (rank == 0) then
        call brg_file_read_array(file, 'none', no, one, err)
      else if (i == 1) then
        call brg_file_read_array(file, 'none', no, v, err)
      else if (i == 2) then
        call brg_file_read_array(file, 'none', from, v(1), err)
      else
        call brg_file_read_array(file, 'none', from, v(3:2), err)
      end if
      call expect(err%code == -22 .and. err%rank == 1, 'no block of an array without dimensions')
      call expect(all(v == -1), 'nothing is read of what is no block')
    end do
  end subroutine

  ! Each of these fails on all ranks, and what it says is printed by each.
  subroutine fail_all
    real(real64) :: two(2, 2) = 0, cube(2, 2, 2) = 0
    real(real32) :: short(1)
    real(real64) :: dx(3)
    type(brg_request) :: request
    logical :: done
    call brg_file_open(MPI_COMM_WORLD, trim(path) // '.not', BRG_READ, file, err)
    call say
    call brg_file_write(file, 0_int64, two, err)
    call say
    call brg_file_close(file, err)
    call check('close what did not open')
    call brg_request_test(request, done, err)
    call expect(err%code == -9 .and. done, 'no commit is under way')
    call brg_file_open(MPI_COMM_WORLD, path, BRG_READ, file, err, 'nonsense=1')
    call say
    call brg_file_open(MPI_COMM_WORLD, path, BRG_READ, file, err)
    call check('open')
    call brg_file_read_array(file, 'i4', [1_int64], short, err)
    call say
    call brg_file_get_attribute(file, 'u', 'dx', dx, err)
    call say
    call brg_file_read_array(file, 'u', [1_int64, 1_int64], cube, err)
    call say
    call brg_file_close(file, err)
    call brg_file_open(MPI_COMM_WORLD, path, BRG_READ, file, err)
    call brg_file_read_array(file, 'u', [nx, 1_int64], two, err)
    call say
    call brg_file_read_array(file, 'u', [1_int64, -3_int64], two, err)
    call say
    call brg_file_close(file, err)
  end subroutine

  subroutine say
    print '(i0, " ", i0, " ", a)', rank, err%code, err%text
  end subroutine
end program
