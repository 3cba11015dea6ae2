//! System calls that fail for a thread, as in a container or on a device that is gone.
#![allow(dead_code, reason = "every test uses a part")]

use std::io;

/// Makes this thread's calls of system call `number` fail with `errno` from now on, and those of threads that it
/// starts.
pub fn forbid(number: libc::c_long, errno: libc::c_int) -> io::Result<()> {
    filter(&mut [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

/// Makes opening anything fail with `errno` from now on, except for listing a directory.
pub fn forbid_opening(errno: libc::c_int) -> io::Result<()> {
    /// Offset of the low half of the third argument, the flags.
    const FLAGS: u32 = 32;
    filter(&mut [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            3,
            libc::SYS_openat as u32,
        ),
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, FLAGS),
        statement(
            libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
            1,
            0,
            libc::O_DIRECTORY as u32,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ])
}

fn statement(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

fn filter(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter and its program live until the call returns, when the kernel has a copy.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter) != 0
    };
    if failed {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
