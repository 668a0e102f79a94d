/* What the headers of newer kernels and C libraries name, by its number: a login node may have
 * older ones than what runs there, and the C library's list of calls is that of its own day. A call
 * that the kernel lacks fails with ENOSYS, an advice or flag with EINVAL, and whoever uses one of
 * these has another way then. From Linux 5.1 on a call has one number on all machines. */
#ifndef BRG_BASE_NEWER_H
#define BRG_BASE_NEWER_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef SYS_io_uring_setup /* Linux 5.1 */
#define SYS_io_uring_setup 425
#define SYS_io_uring_enter 426
#endif
#ifndef SYS_pidfd_open /* 5.3 */
#define SYS_pidfd_open 434
#define SYS_clone3 435
#endif
#ifndef SYS_close_range /* 5.9 */
#define SYS_close_range 436
#endif
#ifndef SYS_openat2 /* 5.6 */
#define SYS_openat2 437
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_faccessat2 /* 5.8 */
#define SYS_faccessat2 439
#endif

#ifndef AT_STATX_DONT_SYNC /* 4.11 */
#define AT_STATX_DONT_SYNC 0x4000
#endif
#ifndef MADV_POPULATE_READ /* 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_NOEXEC_SEAL /* 6.3 */
#define MFD_NOEXEC_SEAL 8u
#endif

#endif
