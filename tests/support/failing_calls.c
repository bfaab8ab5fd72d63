/* Loaded before the C library: counts the calls below a folder that change it, writes them down, and lets one fail or
   kill the process. What Python, numpy and polars write all passes here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE, RENAME, OPEN, FSYNC, OTHER, KINDS };

static char root[PATH_MAX];
static int wanted = -1, nth, failure, lasting, record = -1, counts[KINDS];

/* failure: an errno, or -1 for a kill; lasting: all later calls of the kind fail too */
void arm(const char *folder, int kind, int at, int error, int stays, const char *records) {
    memset(counts, 0, sizeof counts);
    nth = at; failure = error; lasting = stays; wanted = kind;
    record = records && *records ? (int)syscall(SYS_open, records, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    snprintf(root, sizeof root, "%s", folder);
}

static void named(char *into, int folder, const char *path) {
    char at[64], base[PATH_MAX];
    if (path[0] == '/') { snprintf(into, PATH_MAX, "%s", path); return; }
    if (folder == AT_FDCWD) { if (!getcwd(base, sizeof base)) base[0] = 0; }
    else {
        snprintf(at, sizeof at, "/proc/self/fd/%d", folder);
        ssize_t n = readlink(at, base, sizeof base - 1);
        base[n < 0 ? 0 : n] = 0;
    }
    if (snprintf(into, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) into[0] = 0;
}

static void opened(char *into, int handle) {
    char at[64];
    snprintf(at, sizeof at, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(at, into, PATH_MAX - 1);
    into[n < 0 ? 0 : n] = 0;
}

static int below(const char *path) {
    size_t n = strlen(root);
    return n && !strncmp(path, root, n) && (path[n] == '/' || !path[n]);
}

static int fails(int kind, const char *path) {
    if (!root[0] || !below(path)) return 0;
    int count = __atomic_add_fetch(&counts[kind], 1, __ATOMIC_SEQ_CST);
    if (kind != wanted || !(count == nth || (lasting && count > nth))) return 0;
    if (failure < 0) { syscall(SYS_kill, getpid(), SIGKILL); pause(); }
    errno = failure;
    return 1;
}

static void note(const char *what, const char *path, const char *other, long inode) {
    char line[3 * PATH_MAX];
    if (record < 0 || !(below(path) || (other[0] && below(other)))) return;
    int n = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\n", what, path, other, inode);
    syscall(SYS_write, record, line, n);
}

static long inode_of(const char *path) {
    struct stat s;
    return lstat(path, &s) ? 0 : (long)s.st_ino;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

#define OPENING(name, folder, ...) \
    int mode = 0; char full[PATH_MAX]; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, int); va_end(more); } \
    int writes = flags & (O_CREAT | O_WRONLY | O_RDWR); \
    if (writes) { named(full, folder, path); if (fails(OPEN, full)) return -1; } \
    long before = writes ? inode_of(full) : 0; \
    REAL(name); \
    int found = real(__VA_ARGS__, mode); \
    if (writes && found >= 0 && !before) note("create", full, "", inode_of(full)); \
    return found;

int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, path, flags) }
int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, path, flags) }
int openat(int folder, const char *path, int flags, ...) { OPENING(openat, folder, folder, path, flags) }
int openat64(int folder, const char *path, int flags, ...) { OPENING(openat64, folder, folder, path, flags) }

#define WRITING(name, ...) \
    char full[PATH_MAX]; \
    if (root[0]) { opened(full, handle); if (fails(WRITE, full)) return -1; note("write", full, "", inode_of(full)); } \
    REAL(name); \
    return real(__VA_ARGS__);

ssize_t write(int handle, const void *data, size_t n) { WRITING(write, handle, data, n) }
ssize_t pwrite(int handle, const void *data, size_t n, off_t at) { WRITING(pwrite, handle, data, n, at) }
ssize_t pwrite64(int handle, const void *data, size_t n, off_t at) { WRITING(pwrite64, handle, data, n, at) }
ssize_t writev(int handle, const struct iovec *data, int n) { WRITING(writev, handle, data, n) }

#define SYNCING(name) \
    char full[PATH_MAX]; \
    if (root[0]) { opened(full, handle); if (fails(FSYNC, full)) return -1; } \
    REAL(name); \
    int found = real(handle); \
    if (root[0] && !found) note("fsync", full, "", inode_of(full)); \
    return found;

int fsync(int handle) { SYNCING(fsync) }
int fdatasync(int handle) { SYNCING(fdatasync) }

#define RENAMING(what, from, to, call) \
    char one[PATH_MAX], two[PATH_MAX]; \
    named(one, from, first); named(two, to, second); \
    if (fails(RENAME, one)) return -1; \
    int found = call; \
    if (!found) note(what, one, two, inode_of(two)); \
    return found;

int rename(const char *first, const char *second) {
    REAL(rename); RENAMING("rename", AT_FDCWD, AT_FDCWD, real(first, second))
}
int renameat(int from, const char *first, int to, const char *second) {
    REAL(renameat); RENAMING("rename", from, to, real(from, first, to, second))
}
int renameat2(int from, const char *first, int to, const char *second, unsigned flags) {
    REAL(renameat2); RENAMING(flags & 2 ? "exchange" : "rename", from, to, real(from, first, to, second, flags))
}

#define CHANGING(what, folder, call) \
    char full[PATH_MAX]; named(full, folder, path); \
    if (fails(OTHER, full)) return -1; \
    long inode = inode_of(full); \
    int found = call; \
    if (!found) note(what, full, "", inode ? inode : inode_of(full)); \
    return found;

int mkdir(const char *path, mode_t mode) { REAL(mkdir); CHANGING("mkdir", AT_FDCWD, real(path, mode)) }
int rmdir(const char *path) { REAL(rmdir); CHANGING("remove", AT_FDCWD, real(path)) }
int unlink(const char *path) { REAL(unlink); CHANGING("remove", AT_FDCWD, real(path)) }
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat); CHANGING("remove", folder, real(folder, path, flags))
}

int counted(int kind) { return counts[kind]; }
