/* Records every change of a file or name below a directory, in the order in which the changes happened.
   Loaded into a process with LD_PRELOAD. One lock is held over each call and its record, so the order is exact.
   sync_file_range is not here on purpose: it makes nothing durable. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int trace = -1;
static char root[PATH_MAX];
static size_t root_length;
static char tracked[1 << 16];

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LONGHAUL_TRACE"), *below = getenv("LONGHAUL_TRACE_ROOT");
    if (!path || !below) return;
    root_length = strlen(strcpy(root, below));
    trace = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* One record: op, fd, number, length of path, length of data, path, data. */
static void emit(char op, int fd, uint64_t number, const char *path, const void *data, size_t length) {
    int saved = errno;
    struct __attribute__((packed)) { char op; int32_t fd; uint64_t number; uint32_t path, data; } head =
        {op, fd, number, path ? strlen(path) : 0, length};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)data, length}};
    if (syscall(SYS_writev, trace, parts, 3) != (long)(sizeof head + head.path + length)) abort();
    errno = saved;
}

static int absolute(int directory, const char *path, char *out) {
    char link[64];
    if (path[0] == '/') return snprintf(out, PATH_MAX, "%s", path);
    if (directory == AT_FDCWD) { if (!getcwd(out, PATH_MAX)) return 0; }
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, out, PATH_MAX - 1);
        if (length < 0) return 0;
        out[length] = 0;
    }
    size_t used = strlen(out);
    return snprintf(out + used, PATH_MAX - used, "/%s", path);
}

static int below(const char *path) { return trace >= 0 && !strncmp(path, root, root_length); }
static int ours(int fd) { return trace >= 0 && fd >= 0 && fd < (int)sizeof tracked && tracked[fd]; }

#define LOCKED(call) pthread_mutex_lock(&order); long result = (call)
#define RETURN pthread_mutex_unlock(&order); return result

static int open_at(int directory, const char *path, int flags, int mode) {
    char full[PATH_MAX] = "";
    LOCKED(syscall(SYS_openat, directory, path, flags, mode));
    if (result >= 0 && result < (int)sizeof tracked) {
        absolute(directory, path, full);
        tracked[result] = below(full);
        if (tracked[result]) emit('O', result, !!(flags & O_TRUNC), full, 0, 0);
    }
    RETURN;
}

#define MODE int mode = 0; if (flags & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); }
int open(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return open_at(AT_FDCWD, path, flags, mode); }
int openat(int directory, const char *path, int flags, ...) { MODE return open_at(directory, path, flags, mode); }
int openat64(int directory, const char *path, int flags, ...) { MODE return open_at(directory, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    LOCKED(syscall(SYS_close, fd));
    if (ours(fd)) { emit('C', fd, 0, 0, 0, 0); tracked[fd] = 0; }
    RETURN;
}

ssize_t write(int fd, const void *data, size_t length) {
    if (!ours(fd)) return syscall(SYS_write, fd, data, length);
    LOCKED(syscall(SYS_write, fd, data, length));
    if (result > 0) emit('W', fd, syscall(SYS_lseek, fd, 0, SEEK_CUR) - result, 0, data, result);
    RETURN;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!ours(fd)) return syscall(SYS_writev, fd, parts, count);
    return count > 0 ? write(fd, parts[0].iov_base, parts[0].iov_len) : 0;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    if (!ours(fd)) return syscall(SYS_pwrite64, fd, data, length, offset);
    LOCKED(syscall(SYS_pwrite64, fd, data, length, offset));
    if (result > 0) emit('W', fd, offset, 0, data, result);
    RETURN;
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }

int ftruncate64(int fd, off64_t length) {
    LOCKED(syscall(SYS_ftruncate, fd, length));
    if (!result && ours(fd)) emit('T', fd, length, 0, 0, 0);
    RETURN;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int synced(int fd, long call, char op) {
    if (!ours(fd)) return syscall(call, fd);
    LOCKED(syscall(call, fd));
    if (!result) emit(op, fd, 0, 0, 0, 0);
    RETURN;
}
int fsync(int fd) { return synced(fd, SYS_fsync, 'S'); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync, 'S'); }
int syncfs(int fd) { return synced(fd, SYS_syncfs, 'F'); }

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    char a[PATH_MAX] = "", b[PATH_MAX] = "";
    LOCKED(syscall(SYS_renameat2, from_directory, from, to_directory, to, 0));
    absolute(from_directory, from, a);
    absolute(to_directory, to, b);
    if (!result && (below(a) || below(b))) emit('R', -1, 0, a, b, strlen(b));
    RETURN;
}
int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int directory, const char *path, int flags) {
    char full[PATH_MAX] = "";
    LOCKED(syscall(SYS_unlinkat, directory, path, flags));
    absolute(directory, path, full);
    if (!result && below(full)) emit('U', -1, 0, full, 0, 0);
    RETURN;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int directory, const char *path, mode_t mode) {
    char full[PATH_MAX] = "";
    LOCKED(syscall(SYS_mkdirat, directory, path, mode));
    absolute(directory, path, full);
    if (!result && below(full)) emit('D', -1, 0, full, 0, 0);
    RETURN;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
