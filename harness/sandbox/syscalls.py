"""The system calls that a locked process may make, with their numbers; seccomp filters are generated from these tables (bpf.py).

An allow-list: what stands in no table is refused, so a call that a later kernel brings is refused too. Numbers are those of the
kernel's unistd.h (x86-64) and asm-generic/unistd.h (aarch64); a test compares them with the headers where those are installed.
"""

ALLOWED = {  # name: (x86-64, aarch64); None: not on that processor
    # memory
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216), "madvise": (28, 233),
    "mincore": (27, 232), "membarrier": (324, 283),
    # descriptors that are open already, and reading files (which ones: Landlock and the view)
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68),
    "preadv": (295, 69), "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287),
    "open": (2, None), "openat": (257, 56), "close": (3, 57), "close_range": (436, 436), "lseek": (8, 62), "dup": (32, 23),
    "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59),
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43),
    "fstatfs": (138, 44), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getdents64": (217, 61), "getcwd": (79, 17), "fadvise64": (221, 223), "readahead": (187, 213),
    "umask": (95, 166),
    # waiting
    "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441),
    "eventfd2": (290, 19), "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "pause": (34, None), "restart_syscall": (219, 128),
    "wait4": (61, 260), "waitid": (247, 95),
    # the socket that it was given
    "recvfrom": (45, 207), "sendmsg": (46, 211), "shutdown": (48, 210), "getsockname": (51, 204), "getpeername": (52, 205),
    "getsockopt": (55, 209),
    # time, threads, itself
    "time": (201, None), "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114), "times": (100, 153),
    "futex": (202, 98), "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293), "set_tid_address": (218, 96),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "getcpu": (309, 168), "arch_prctl": (158, None),
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getpgrp": (111, None), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150),
    "getrlimit": (97, 163), "getrusage": (98, 165), "uname": (63, 160), "sysinfo": (99, 179), "getrandom": (318, 278),
    # signals: to whom they can be sent is the pid namespace's and Landlock's business
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132), "kill": (62, 129), "tgkill": (234, 131),
    "tkill": (200, 130), "alarm": (37, None), "getitimer": (36, 102), "setitimer": (38, 103),
    "exit": (60, 93), "exit_group": (231, 94),
}
CHECKED = {  # allowed with certain arguments only; the checks are in bpf.py
    "clone": (56, 220), "ioctl": (16, 29), "fcntl": (72, 25), "prctl": (157, 167), "prlimit64": (302, 261), "sendto": (44, 206),
    "socketpair": (53, 199),
}
ABSENT = {  # answered "no such call", so that the C library falls back to an older one
    "clone3": (435, 435), "openat2": (437, 437), "futex_waitv": (449, 449),
}
PROCESS = {  # more for a whole program in a sandbox (SandboxedProcess): it starts, has pipes, and may start others within its limits
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None), "chdir": (80, 49), "fchdir": (81, 50),
    "setpgid": (109, 154), "getpgid": (121, 155), "setsid": (112, 157), "getsid": (124, 156), "setsockopt": (54, 208), "recvmsg": (47, 212),
}
TEMPLATE = {  # more for the process that loads foreign code and is copied for each call: what locks the copies, and is only ever stricter
    "recvmsg": (47, 212), "seccomp": (317, 277), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
DENIED = {  # refused by standing nowhere above; named so that tests and attacks can try each
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept4": (288, 242),
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, None), "vfork": (58, None), "ptrace": (101, 117), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "kexec_load": (246, 104), "init_module": (175, 105), "reboot": (169, 142),
    "personality": (135, 92), "open_by_handle_at": (304, 265), "memfd_create": (319, 279), "chmod": (90, None), "fchmodat": (268, 53),
    "setrlimit": (160, 164), "setuid": (105, 146), "capset": (126, 91), "syslog": (103, 116), "move_pages": (279, 239),
    "setpriority": (141, 140), "sched_setaffinity": (203, 122), "seccomp": (317, 277), "unlinkat": (263, 35), "mkdirat": (258, 34),
    "shmget": (29, 194), "mq_open": (240, 180), "clock_settime": (227, 112), "iopl": (172, None), "modify_ldt": (154, None),
}
