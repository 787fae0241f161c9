/*
 * class: use before initialisation
 * oracle: signal SIGSEGV
 * racing: publish use
 * threads: 2
 * flags: -std=c11 -O1
 *
 * The log's flusher is started before the log that it flushes is there. It nearly always takes longer to start a thread
 * than to open a log.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 4

struct log {
    int level;
    int used;
    char lines[LINES][32];
};

static struct log *the_log;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int flushed;

static struct log *open_log(int level)
{
    struct log *log = calloc(1, sizeof *log);
    log->level = level;
    strcpy(log->lines[log->used++], "log opened");
    return log;
}

static void *flusher(void *unused)
{
    struct log *log = the_log; /* RACE:use */
    (void)unused;
    pthread_mutex_lock(&log_lock);
    for (int line = 0; line < log->used; line++)
        flushed += log->level > 0;
    log->used = 0;
    pthread_mutex_unlock(&log_lock);
    return NULL;
}

static void write_line(const char *text)
{
    pthread_mutex_lock(&log_lock);
    if (the_log->used < LINES)
        strncpy(the_log->lines[the_log->used++], text, sizeof the_log->lines[0] - 1);
    pthread_mutex_unlock(&log_lock);
}

int main(void)
{
    pthread_t thread;
#ifdef FIXED
    the_log = open_log(2);
    pthread_create(&thread, NULL, flusher, NULL);
#else
    pthread_create(&thread, NULL, flusher, NULL);
    the_log = open_log(2); /* RACE:publish */
#endif
    write_line("service started");
    pthread_join(thread, NULL);
    printf("log level %d\n", the_log->level);
    free(the_log);
    return 0;
}
