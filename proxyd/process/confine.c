/* confine.c: see confine.h. */
#include "proxyd/process/confine.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "common/base/io.h"
#include "common/base/log.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

/* LeakSanitizer looks at its own process as a debugger would. */
#ifdef __SANITIZE_ADDRESS__
#define LEAK_CHECK 1
#else
#define LEAK_CHECK 0
#endif

static int become(const char *user, struct err *);
static int drop_capabilities(struct err *);
static void forbid_calls(enum confine_kind);

int
confine(const char *user, enum confine_kind kind, struct err *e)
{
	if (geteuid() == 0 && *user != '\0' && become(user, e) == -1)
		return -1;
	if (geteuid() != 0 && drop_capabilities(e) == -1)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return err_errno(e, ERR_LOCAL, "cannot set no_new_privs");
	if (LEAK_CHECK)
		prctl(PR_SET_DUMPABLE, 1);
	else
		forbid_calls(kind);
	return 0;
}

static int
become(const char *user, struct err *e)
{
	const struct passwd *pw = getpwnam(user);

	if (pw == NULL)
		return err_set(e, ERR_USAGE,
		    "there is no account '%s' for the workers (clusterctl set "
		    "proxy.user NAME)",
		    user);
	if (pw->pw_uid == 0)
		return 0;
	if (setgroups(0, NULL) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		return err_errno(e, ERR_LOCAL, "cannot become %s", user);
	if (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0)
		return err_set(e, ERR_LOCAL, "root could be taken back");
	return 0;
}

static int
drop_capabilities(struct err *e)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &head, none) == -1)
		return err_errno(e, ERR_LOCAL, "cannot drop capabilities");
	return 0;
}

#ifdef OUR_ARCH

/* What neither does, and an intruder would: run programs, look at other
 * processes, change the system. */
static const uint32_t forbidden[] = {
	SYS_openat,
	SYS_execve,
	SYS_execveat,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_setns,
	SYS_unshare,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_keyctl,
	SYS_add_key,
	SYS_request_key,
	SYS_io_uring_setup,
	SYS_quotactl,
	SYS_acct,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_bind,
	SYS_listen,
	SYS_unlinkat,
	SYS_renameat2,
	SYS_symlinkat,
	SYS_linkat,
	SYS_mkdirat,
	SYS_mknodat,
	SYS_fchmodat,
	SYS_fchownat,
	SYS_truncate,
	SYS_setuid,
	SYS_setgid,
	SYS_setresuid,
	SYS_setresgid,
	SYS_setgroups,
	SYS_kill,
	SYS_tkill,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_open_by_handle_at,
#ifdef SYS_fork
	SYS_open,
	SYS_fork,
	SYS_vfork,
	SYS_unlink,
	SYS_rename,
	SYS_symlink,
	SYS_link,
	SYS_mkdir,
	SYS_rmdir,
	SYS_mknod,
	SYS_chmod,
	SYS_chown,
	SYS_creat,
#endif
};

/* And what one of them does not. */
static const uint32_t worker_forbidden[] = { SYS_openat2 };
static const uint32_t opener_forbidden[] = { SYS_socket, SYS_connect,
	SYS_accept4 };

#define N_FORBIDDEN nitems(forbidden)
#define N_MORE	    nitems(opener_forbidden) /* the longer one */
#define ANSWER	    (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))

static void
forbid_calls(enum confine_kind kind)
{
	const uint32_t *more =
	    kind == CONFINE_WORKER ? worker_forbidden : opener_forbidden;
	unsigned n_more = kind == CONFINE_WORKER ? nitems(worker_forbidden) :
						   nitems(opener_forbidden);
	unsigned n_calls = N_FORBIDDEN + n_more;
	struct sock_filter code[4 + N_FORBIDDEN + N_MORE + 2];
	struct sock_fprog program = { .filter = code };
	unsigned n = 0;

	/* Another architecture's numbers mean other calls. */
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
	    OUR_ARCH, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ANSWER);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
	    offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < n_calls; i++)
		code[n++] =
		    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			i < N_FORBIDDEN ? forbidden[i] : more[i - N_FORBIDDEN],
			(uint8_t)(n_calls - i), 0);
	code[n++] =
	    (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ANSWER);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1)
		log_info("this kernel has no seccomp filter; going on without");
}

#else

static void
forbid_calls(enum confine_kind kind)
{
	(void)kind;
	log_info("no seccomp filter for this architecture; going on without");
}

#endif
