/* Preloaded into a service: writes down everything that it does to files below one folder, in the
 * order in which it does so, and makes writes fail where a test says so. See disk_trace.py.
 *
 * RAGAUDIT_TRACE         the trace, a file that several processes may append to
 * RAGAUDIT_TRACE_FOLDER  the folder
 * RAGAUDIT_TRACE_FAULT   a file: "<errno> <prefix of paths>" while these fail, empty otherwise
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 4096
#define PATHS 4096

static char *names[FILES];          /* of open descriptors below the folder */
static const char *folder;
static size_t folder_length;
static int trace = -1;
static const char *fault_file;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

struct header { uint8_t kind, pad[3]; uint32_t process, path, data; uint64_t offset; };

__attribute__((constructor)) static void begin(void) {
    const char *to = getenv("RAGAUDIT_TRACE");
    folder = getenv("RAGAUDIT_TRACE_FOLDER");
    fault_file = getenv("RAGAUDIT_TRACE_FAULT");
    if (to == NULL || folder == NULL) return;
    folder_length = strlen(folder);
    trace = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static const char *full(const char *path, char *into) {
    if (path[0] == '/') return path;
    char here[PATHS / 2];
    if (getcwd(here, sizeof here) == NULL) return path;
    snprintf(into, PATHS, "%s/%s", here, path);
    return into;
}

static int below(const char *path) {
    return trace >= 0 && strncmp(path, folder, folder_length) == 0;
}

/* One call of writev with O_APPEND: what several threads and processes write stays whole. */
static void note(char kind, const char *path, uint64_t offset, const void *data, size_t length) {
    int before = errno;
    struct header head = {(uint8_t)kind, {0}, (uint32_t)getpid(), (uint32_t)strlen(path),
                          (uint32_t)length, offset};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)path, head.path}, {(void *)data, length}};
    if (syscall(SYS_writev, trace, parts, 3) != (long)(sizeof head + head.path + length)) abort();
    errno = before;
}

/* The errno with which a change of this path is to fail, 0 for none. */
static int fault(const char *path) {
    if (fault_file == NULL) return 0;
    int before = errno, file = (int)syscall(SYS_openat, AT_FDCWD, fault_file, O_RDONLY, 0);
    char text[PATHS] = "", prefix[PATHS] = "";
    int number = 0;
    if (file >= 0) {
        long got = syscall(SYS_read, file, text, sizeof text - 1);
        text[got > 0 ? got : 0] = 0;
        syscall(SYS_close, file);
    }
    errno = before;
    if (sscanf(text, "%d %4000s", &number, prefix) != 2) return 0;
    return strncmp(path, prefix, strlen(prefix)) == 0 ? number : 0;
}

#define FAIL_IF_TOLD(path) \
    do { int number = fault(path); if (number) { errno = number; return -1; } } while (0)

static const char *named(int file) {
    return trace >= 0 && file >= 0 && file < FILES ? names[file] : NULL;
}

static int opened(int folder_file, const char *path, int flags, mode_t mode) {
    char buffer[PATHS];
    const char *whole = full(path, buffer);
    int ours = below(whole), is_new = 0;
    if (ours && folder_file == AT_FDCWD) {
        int changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
        if (changes) FAIL_IF_TOLD(whole);
        is_new = flags & O_CREAT && syscall(SYS_faccessat, AT_FDCWD, whole, F_OK, 0) != 0;
    }
    int file = (int)syscall(SYS_openat, folder_file, path, flags, mode);
    if (file < 0 || !ours || file >= FILES) return file;
    pthread_mutex_lock(&guard);
    free(names[file]);
    names[file] = strdup(whole);
    pthread_mutex_unlock(&guard);
    if (is_new) note('c', whole, 0, NULL, 0);
    else if (flags & O_TRUNC) note('t', whole, 0, NULL, 0);
    return file;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list list; va_start(list, flags); mode = va_arg(list, mode_t); va_end(list); \
    }
int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }

int close(int file) {
    if (named(file) != NULL) {
        pthread_mutex_lock(&guard);
        free(names[file]);
        names[file] = NULL;
        pthread_mutex_unlock(&guard);
    }
    return (int)syscall(SYS_close, file);
}

ssize_t write(int file, const void *data, size_t length) {
    const char *path = named(file);
    if (path != NULL) FAIL_IF_TOLD(path);
    ssize_t done = syscall(SYS_write, file, data, length);
    if (path != NULL && done > 0)
        note('w', path, (uint64_t)(lseek(file, 0, SEEK_CUR) - done), data, (size_t)done);
    return done;
}

static ssize_t at_place(int file, const void *data, size_t length, off_t offset) {
    const char *path = named(file);
    if (path != NULL) FAIL_IF_TOLD(path);
    ssize_t done = syscall(SYS_pwrite64, file, data, length, offset);
    if (path != NULL && done > 0) note('w', path, (uint64_t)offset, data, (size_t)done);
    return done;
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    return at_place(file, data, length, offset);
}
ssize_t pwrite64(int file, const void *data, size_t length, off_t offset) {
    return at_place(file, data, length, offset);
}

static int cut(int file, off_t length) {
    const char *path = named(file);
    if (path != NULL) FAIL_IF_TOLD(path);
    int done = (int)syscall(SYS_ftruncate, file, length);
    if (path != NULL && done == 0) note('t', path, (uint64_t)length, NULL, 0);
    return done;
}
int ftruncate(int file, off_t length) { return cut(file, length); }
int ftruncate64(int file, off_t length) { return cut(file, length); }

/* The beginning is written down, too: between it and the end nothing is certain. */
static int synchronised(int file, long call) {
    const char *path = named(file);
    struct stat found;
    if (path == NULL) return (int)syscall(call, file);
    FAIL_IF_TOLD(path);
    int is_folder = fstat(file, &found) == 0 && S_ISDIR(found.st_mode);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    note(is_folder ? 'D' : 'S', path, time, NULL, 0);
    int done = (int)syscall(call, file);
    if (done == 0) note(is_folder ? 'd' : 's', path, 0, NULL, 0);
    return done;
}
int fsync(int file) { return synchronised(file, SYS_fsync); }
int fdatasync(int file) { return synchronised(file, SYS_fdatasync); }

static int renamed(const char *from, const char *to) {
    char first[PATHS], second[PATHS];
    const char *old = full(from, first), *new = full(to, second);
    if (below(new)) FAIL_IF_TOLD(new);
    int done = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (done == 0 && below(new)) note('r', old, 0, new, strlen(new));
    return done;
}
int rename(const char *from, const char *to) { return renamed(from, to); }
int renameat(int one, const char *from, int two, const char *to) {
    if (one == AT_FDCWD && two == AT_FDCWD) return renamed(from, to);
    return (int)syscall(SYS_renameat2, one, from, two, to, 0);
}

static int removed(const char *path) {
    char buffer[PATHS];
    const char *whole = full(path, buffer);
    int done = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (done == 0 && below(whole)) note('u', whole, 0, NULL, 0);
    return done;
}
int unlink(const char *path) { return removed(path); }
