/*
 * The runtime's state and its beginning: everything is set up before main, from the control page.
 *
 * Prohibitions: nothing here may be seen by the program. No malloc of ours, no stdio; the environment is left as if the
 * runtime had not been asked for, so that child processes run plain.
 */
#include "rb_runtime.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rb_end.h"
#include "rb_modules.h"
#include "rb_real.h"
#include "rb_signals.h"

#define LIBRARY "librecbulc.so"

struct rb_state rb_state;
_Thread_local struct rb_thread rb_thread_block __attribute__((tls_model("initial-exec")));

void rb_die(const char *what, int error)
{
    char line[512] = "recbulc: ";
    const char *reason = strerrordesc_np(error);

    strncat(line, what, 400);
    strcat(line, ": ");
    strncat(line, reason ? reason : "unknown error", 80);
    strcat(line, "\n");
    rb_sys_write(2, line, strlen(line));
    rb_sys_exit_group(125);
}

/* The page stays mapped for good. */
static struct rb_control *map_control(const char *path)
{
    int fd = rb_sys_open(path, O_RDWR, 0);
    struct rb_control *control;
    long bytes;

    if (fd < 0)
        rb_die("the control page cannot be opened", -fd);
    bytes = rb_sys(SYS_lseek, fd, 0, 2 /* SEEK_END */, 0, 0, 0);
    if (bytes < (long)sizeof(*control))
        rb_die("the control page is too short", EINVAL);
    control = rb_sys_mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (rb_sys_failed(control))
        rb_die("the control page cannot be mapped", rb_sys_failed(control));
    rb_sys_close(fd);
    if (control->magic != RB_CONTROL_MAGIC)
        rb_die("the control page is of another version", EINVAL);
    if (control->mode == RB_MODE_RECORD && (!control->chunk_bytes || control->chunk_bytes % 4096))
        rb_die("the control page asks for chunks that are no whole pages", EINVAL);
    return control;
}

/* Takes our entry out of LD_PRELOAD, in place. */
static void leave_preload(void)
{
    char *list = getenv("LD_PRELOAD"), *to = list, *entry;

    if (!list)
        return;
    for (char *from = list; *from;) {
        size_t length = strcspn(from, ": ");
        size_t name = sizeof(LIBRARY) - 1;
        int ours;

        entry = from;
        ours = length >= name && !memcmp(entry + length - name, LIBRARY, name) &&
               (length == name || entry[length - name - 1] == '/');
        from += length + (entry[length] != 0);
        if (ours || !length)
            continue;
        if (to != list)
            *to++ = ':';
        memmove(to, entry, length);
        to += length;
    }
    *to = 0;
    if (to == list)
        unsetenv("LD_PRELOAD");
}

/* A child process shares our logs' pages: it records nothing. (Its own trace is for a later version.) */
static void forked(void) { rb_self()->known = 0; }

static const struct rb_engine *engine_of(uint32_t mode)
{
    if (mode == RB_MODE_REPLAY)
        return &rb_replay_engine;
    if (mode != RB_MODE_RECORD)
        rb_die("the control page asks for an unknown mode", EINVAL);
    return &rb_record_engine;
}

__attribute__((constructor)) static void rb_runtime_init(void)
{
    const char *path = getenv(RB_CONTROL_ENV);
    pthread_key_t key;
    int error;

    rb_real_resolve();
    if (!path)
        return;
    rb_state.control = map_control(path);
    rb_state.pid = rb_sys_getpid();
    rb_state.engine = engine_of(rb_state.control->mode);
    unsetenv(RB_CONTROL_ENV);
    leave_preload();
    error = pthread_key_create(&key, rb_thread_destructor);
    if (error)
        rb_die("no key for thread ends", error);
    rb_state.key = key;
    pthread_atfork(NULL, NULL, forked);
    error = rb_state.engine->init();
    if (error)
        rb_die("the run cannot be set up", error);
    dlopen("libgcc_s.so.1", RTLD_NOW); /* else libc does, when the first thread is cancelled or calls pthread_exit */
    rb_modules_init();
    rb_signals_init();
    rb_end_register();
    rb_state.control->nthreads = 1;
    rb_thread_begin(0);
    __atomic_store_n(&rb_state.control->ready, 1, __ATOMIC_RELEASE);
}
