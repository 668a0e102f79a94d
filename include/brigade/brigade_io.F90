! Checkpoints and shared files from Fortran: what brigade/io.h says holds here word for word, but
! that dimensions come in Fortran's order and indices count from 1. An array of shape (nx, ny) here
! is one of shape (ny, nx) in C and Python; the bytes of the file are the same.
!
!   use brigade_io
!   type(brg_file) :: file
!   type(brg_error) :: err
!   call brg_file_open(MPI_COMM_WORLD, 'ckpt.0042', ior(BRG_WRITE, BRG_CREATE), file, err)
!   call brg_file_write_array(file, 'u', shape, start, u, err)
!   call brg_file_commit(file, err)
!   call brg_file_close(file, err)
!
! err%code is 0, or -errno, and err%text says what to do. Data may be integer(int8 to int64),
! real(real32, real64) or complex of these kinds, a scalar or of any rank. A rank that has nothing
! of an array gives data without elements, also where the array has no dimensions.
!
! Compile this file with the compiler and flags of the program: modules are not portable. It needs
! Fortran 2008 with TS 29113, as mpi_f08 does (gfortran 9, ifort 16, nvfortran 23, flang 20).
module brigade_io_core
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env
  implicit none
  public

  ! Default integers, of whatever kind the program's flags make them.
  integer, parameter :: BRG_READ = 1, BRG_WRITE = 2, BRG_CREATE = 4, BRG_EXCLUSIVE = 8
  integer, parameter :: BRG_MAX_DIMS = 16
  integer(c_int), parameter :: BRG_INT8 = 1, BRG_UINT8 = 2, BRG_INT16 = 3, BRG_UINT16 = 4, &
    BRG_INT32 = 5, BRG_UINT32 = 6, BRG_INT64 = 7, BRG_UINT64 = 8, BRG_FLOAT32 = 9, &
    BRG_FLOAT64 = 10, BRG_COMPLEX64 = 11, BRG_COMPLEX128 = 12, BRG_BOOL = 13, BRG_TEXT = 14

  type :: brg_file
    type(c_ptr) :: handle = c_null_ptr
  end type
  type :: brg_request
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, bind(c) :: brg_piece
    integer(c_int64_t) :: offset, bytes
  end type
  type :: brg_error
    integer :: code = 0, rank = -1
    integer(int64) :: offset = -1
    character(:), allocatable :: text, path
  end type
  type :: brg_array
    character(:), allocatable :: name
    integer(c_int) :: type = 0
    integer(int64), allocatable :: shape(:)
    integer(int64) :: offset = -1
  end type

  ! The structs of error.h and io.h, as they lie in memory.
  type, bind(c) :: c_error
    integer(c_int) :: code = 0
    character(c_char) :: text(1024) = c_null_char
    integer(c_int) :: rank = -1
    integer(c_int64_t) :: offset = -1
    character(c_char) :: path(1024) = c_null_char
  end type
  type, bind(c) :: c_array
    type(c_ptr) :: name
    integer(c_int) :: type, ndims
    integer(c_int64_t) :: shape(BRG_MAX_DIMS), offset
  end type
  ! A block in C's order.
  type :: c_block
    integer(c_int) :: ndims = -1
    integer(c_int64_t), dimension(BRG_MAX_DIMS) :: shape = 0, start = 0, count = 0
  end type

#include "brigade_io_c.inc"

  ! MPI's integers need not be of the default kind of the program.
  interface brg_file_open
    module procedure open_int32
    module procedure open_int64
  end interface
  private :: open_int32, open_int64

contains

  ! The block of `extents` elements from `start` on, of an array of `shape`. Dimensions that the
  ! data lacks count 1 (a plane of a volume). An array without dimensions has one element, of which
  ! a rank may have none. What makes no sense becomes what the call in C refuses, on all ranks
  ! alike.
  pure function block_of(shape, start, extents) result(b)
    integer(int64), intent(in) :: shape(:), start(:), extents(:)
    type(c_block) :: b
    integer :: d, n
    n = size(shape)
    b%count = huge(b%count)
    if (size(start) /= n .or. n > BRG_MAX_DIMS) return
    if (merge(product(extents) > 1, size(extents) > n, n == 0)) return
    b%ndims = n
    do d = 1, n
      b%shape(n - d + 1) = shape(d)
      b%start(n - d + 1) = start(d) - 1
      b%count(n - d + 1) = 1
      if (d <= size(extents)) b%count(n - d + 1) = extents(d)
    end do
  end function

  subroutine tell(code, c, err)
    integer(c_int), value :: code
    type(c_error), intent(in) :: c
    type(brg_error), intent(inout) :: err
    err%code = code
    err%text = ''
    err%path = ''
    if (code == 0) return
    err%rank = c%rank
    err%offset = c%offset
    err%text = f_string(c%text)
    err%path = f_string(c%path)
  end subroutine

  subroutine refuse(err, text)
    type(brg_error), intent(inout) :: err
    character(*), intent(in) :: text
    err%code = -22 ! EINVAL
    err%text = text
  end subroutine

  pure function c_string(text)
    character(*), intent(in) :: text
    character(:, c_char), allocatable :: c_string
    c_string = trim(text) // c_null_char
  end function

  pure function f_string(text)
    character(c_char), intent(in) :: text(:)
    character(:), allocatable :: f_string
    integer :: i, n
    n = 0
    do while (n < size(text))
      if (text(n + 1) == c_null_char) exit
      n = n + 1
    end do
    allocate (character(n) :: f_string)
    do i = 1, n
      f_string(i:i) = text(i)
    end do
  end function

  function f_string_at(text)
    type(c_ptr), intent(in) :: text
    character(:), allocatable :: f_string_at
    character(c_char), pointer :: letters(:)
    f_string_at = ''
    if (.not. c_associated(text)) return
    call c_f_pointer(text, letters, [c_strlen(text)])
    f_string_at = f_string(letters)
  end function

  ! ---- opening, committing, closing ----

  ! comm is an MPI communicator of `use mpi`, or comm%MPI_VAL of `use mpi_f08`.
  subroutine open_int32(comm, path, flags, file, err, info)
    integer(int32), intent(in) :: comm
    integer, intent(in) :: flags
    character(*), intent(in) :: path
    type(brg_file), intent(inout) :: file
    type(brg_error), intent(out) :: err
    character(*), intent(in), optional :: info
    type(c_error) :: c
    integer(c_int) :: code
    code = c_open(int(comm, c_int32_t), c_string(path), int(flags, c_int), c_hints(info), &
      file%handle, c)
    call tell(code, c, err)
  end subroutine

  subroutine open_int64(comm, path, flags, file, err, info)
    integer(int64), intent(in) :: comm
    integer, intent(in) :: flags
    character(*), intent(in) :: path
    type(brg_file), intent(inout) :: file
    type(brg_error), intent(out) :: err
    character(*), intent(in), optional :: info
    call open_int32(int(comm, int32), path, flags, file, err, info)
  end subroutine

  ! One process, no MPI.
  subroutine brg_file_open_alone(path, flags, file, err, info)
    integer, intent(in) :: flags
    character(*), intent(in) :: path
    type(brg_file), intent(inout) :: file
    type(brg_error), intent(out) :: err
    character(*), intent(in), optional :: info
    type(c_error) :: c
    integer(c_int) :: code
    code = c_open_alone(c_string(path), int(flags, c_int), c_hints(info), file%handle, c)
    call tell(code, c, err)
  end subroutine

  pure function c_hints(info)
    character(*), intent(in), optional :: info
    character(:, c_char), allocatable :: c_hints
    c_hints = c_null_char
    if (present(info)) c_hints = c_string(info)
  end function

  function brg_file_size(file)
    type(brg_file), intent(in) :: file
    integer(int64) :: brg_file_size
    brg_file_size = c_size(file%handle)
  end function

  function brg_file_explain(file)
    type(brg_file), intent(in) :: file
    character(:), allocatable :: brg_file_explain
    brg_file_explain = f_string_at(c_explain(file%handle))
  end function

  subroutine brg_file_commit(file, err)
    type(brg_file), intent(in) :: file
    type(brg_error), intent(out) :: err
    type(c_error) :: c
    integer(c_int) :: code
    code = c_commit(file%handle, c)
    call tell(code, c, err)
  end subroutine

  subroutine brg_file_commit_start(file, request, err)
    type(brg_file), intent(in) :: file
    type(brg_request), intent(inout) :: request
    type(brg_error), intent(out) :: err
    type(c_error) :: c
    integer(c_int) :: code
    code = c_commit_start(file%handle, request%handle, c)
    call tell(code, c, err)
  end subroutine

  subroutine brg_request_test(request, done, err)
    type(brg_request), intent(inout) :: request
    logical, intent(out) :: done
    type(brg_error), intent(out) :: err
    type(c_error) :: c
    integer(c_int) :: code, flag
    flag = 0
    code = c_request_test(request%handle, flag, c)
    done = flag /= 0
    if (done) request%handle = c_null_ptr
    call tell(code, c, err)
  end subroutine

  subroutine brg_request_wait(request, err)
    type(brg_request), intent(inout) :: request
    type(brg_error), intent(out) :: err
    type(c_error) :: c
    integer(c_int) :: code
    code = c_request_wait(request%handle, c)
    request%handle = c_null_ptr
    call tell(code, c, err)
  end subroutine

  subroutine brg_file_close(file, err)
    type(brg_file), intent(inout) :: file
    type(brg_error), intent(out) :: err
    type(c_error) :: c
    integer(c_int) :: code
    code = c_close(file%handle, c)
    file%handle = c_null_ptr
    call tell(code, c, err)
  end subroutine

  ! ---- what arrays and attributes there are ----

  subroutine brg_file_find_array(file, name, array, err)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: name
    type(brg_array), intent(out) :: array
    type(brg_error), intent(out) :: err
    type(c_array) :: found
    type(c_error) :: c
    integer(c_int) :: code
    code = c_find_array(file%handle, c_string(name), found, c)
    call tell(code, c, err)
    if (code == 0) array = f_array(found)
  end subroutine

  function brg_file_array_count(file)
    type(brg_file), intent(in) :: file
    integer :: brg_file_array_count
    brg_file_array_count = int(c_array_count(file%handle))
  end function

  ! Array i of the file, from 1 on; its name is empty where there is none.
  function brg_file_array_at(file, i) result(array)
    type(brg_file), intent(in) :: file
    integer, intent(in) :: i
    type(brg_array) :: array
    type(c_array) :: found
    array%name = ''
    if (c_array_at(file%handle, int(i - 1, c_size_t), found) == 0) array = f_array(found)
  end function

  function f_array(found) result(array)
    type(c_array), intent(in) :: found
    type(brg_array) :: array
    array%name = f_string_at(found%name)
    array%type = found%type
    array%shape = found%shape(found%ndims:1:-1)
    array%offset = found%offset
  end function

  function brg_file_attribute_count(file, array)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array
    integer :: brg_file_attribute_count
    character(c_char), allocatable, target :: letters(:)
    letters = letters_of(array)
    brg_file_attribute_count = int(c_attribute_count(file%handle, named(letters)))
  end function

  ! Attribute i, from 1 on, of an array, or of the file where `array` is empty.
  function brg_file_attribute_name(file, array, i)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array
    integer, intent(in) :: i
    character(:), allocatable :: brg_file_attribute_name
    character(c_char), allocatable, target :: letters(:)
    letters = letters_of(array)
    brg_file_attribute_name = &
      f_string_at(c_attribute_name(file%handle, named(letters), int(i - 1, c_size_t)))
  end function

  pure function letters_of(text)
    character(*), intent(in) :: text
    character(c_char), allocatable :: letters_of(:)
    integer :: i
    allocate (letters_of(len_trim(text) + 1))
    do i = 1, len_trim(text)
      letters_of(i) = text(i:i)
    end do
    letters_of(size(letters_of)) = c_null_char
  end function

  ! The name of an array as C takes it: NULL for the file itself.
  function named(letters)
    character(c_char), target, intent(in) :: letters(:)
    type(c_ptr) :: named
    named = c_null_ptr
    if (size(letters) > 1) named = c_loc(letters(1))
  end function

  subroutine set_values(file, array, name, type, n, values, err)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array, name
    integer(c_int), intent(in) :: type
    integer(c_size_t), intent(in) :: n
    type(c_ptr), intent(in) :: values
    type(brg_error), intent(inout) :: err
    character(c_char), allocatable, target :: letters(:)
    type(c_error) :: c
    integer(c_int) :: code
    letters = letters_of(array)
    code = c_set_attribute(file%handle, named(letters), c_string(name), type, n, values, c)
    call tell(code, c, err)
  end subroutine

  subroutine get_values(file, array, name, type, n, values, err)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array, name
    integer(c_int), intent(out) :: type
    integer(c_size_t), intent(out) :: n
    type(c_ptr), intent(out) :: values
    type(brg_error), intent(inout) :: err
    character(c_char), allocatable, target :: letters(:)
    type(c_error) :: c
    integer(c_int) :: code
    letters = letters_of(array)
    code = c_get_attribute(file%handle, named(letters), c_string(name), type, n, values, c)
    call tell(code, c, err)
  end subroutine
end module


module brigade_io_int8
#define ELEMENT integer(int8)
#define CODE BRG_INT8
#include "brigade_io_kind.inc"
end module

module brigade_io_int16
#define ELEMENT integer(int16)
#define CODE BRG_INT16
#include "brigade_io_kind.inc"
end module

module brigade_io_int32
#define ELEMENT integer(int32)
#define CODE BRG_INT32
#include "brigade_io_kind.inc"
end module

module brigade_io_int64
#define ELEMENT integer(int64)
#define CODE BRG_INT64
#include "brigade_io_kind.inc"
end module

module brigade_io_real32
#define ELEMENT real(real32)
#define CODE BRG_FLOAT32
#include "brigade_io_kind.inc"
end module

module brigade_io_real64
#define ELEMENT real(real64)
#define CODE BRG_FLOAT64
#include "brigade_io_kind.inc"
end module

module brigade_io_complex32
#define ELEMENT complex(real32)
#define CODE BRG_COMPLEX64
#include "brigade_io_kind.inc"
end module

module brigade_io_complex64
#define ELEMENT complex(real64)
#define CODE BRG_COMPLEX128
#include "brigade_io_kind.inc"
end module

! Attributes that are text.
module brigade_io_text
  use, intrinsic :: iso_c_binding
  use brigade_io_core
  implicit none
  private
  public :: brg_file_set_attribute, brg_file_get_attribute

  interface brg_file_set_attribute
    module procedure set_text
  end interface
  interface brg_file_get_attribute
    module procedure get_text
  end interface

contains

  subroutine set_text(file, array, name, text, err)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array, name, text
    type(brg_error), intent(out) :: err
    character(c_char), allocatable, target :: letters(:)
    letters = letters_of(text)
    call set_values(file, array, name, BRG_TEXT, size(letters, kind=c_size_t) - 1, &
      c_loc(letters), err)
  end subroutine

  subroutine get_text(file, array, name, text, err)
    type(brg_file), intent(in) :: file
    character(*), intent(in) :: array, name
    character(:), allocatable, intent(out) :: text
    type(brg_error), intent(out) :: err
    character(c_char), pointer :: letters(:)
    type(c_ptr) :: found
    integer(c_int) :: type
    integer(c_size_t) :: n
    text = ''
    call get_values(file, array, name, type, n, found, err)
    if (err%code /= 0) return
    if (type /= BRG_TEXT) then
      call refuse(err, 'attribute ' // trim(name) // ' is no text')
      return
    end if
    call c_f_pointer(found, letters, [n])
    text = f_string(letters)
  end subroutine
end module

module brigade_io
  use brigade_io_core, only: &
    BRG_READ, BRG_WRITE, BRG_CREATE, BRG_EXCLUSIVE, BRG_MAX_DIMS, &
    BRG_INT8, BRG_UINT8, BRG_INT16, BRG_UINT16, BRG_INT32, BRG_UINT32, BRG_INT64, BRG_UINT64, &
    BRG_FLOAT32, BRG_FLOAT64, BRG_COMPLEX64, BRG_COMPLEX128, BRG_BOOL, BRG_TEXT, &
    brg_file, brg_request, brg_piece, brg_error, brg_array, &
    brg_file_open, brg_file_open_alone, brg_file_size, brg_file_explain, brg_file_close, &
    brg_file_commit, brg_file_commit_start, brg_request_test, brg_request_wait, &
    brg_file_find_array, brg_file_array_count, brg_file_array_at, brg_file_attribute_count, &
    brg_file_attribute_name
  use brigade_io_int8
  use brigade_io_int16
  use brigade_io_int32
  use brigade_io_int64
  use brigade_io_real32
  use brigade_io_real64
  use brigade_io_complex32
  use brigade_io_complex64
  use brigade_io_text
  implicit none
  public
end module
