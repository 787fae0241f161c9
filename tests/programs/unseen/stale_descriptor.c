/*
 * class: descriptor used after it was closed and its number given to another
 * oracle: exit 4
 * racing: send close | send open | fetch close | fetch forget
 * threads: 3
 * flags: -std=gnu11 -O1
 *
 * A server. Every access to the table of sessions holds its lock, but the worker only keeps the number of the socket
 * and writes to it later. If the reaper closes an idle session in between and a new client comes in, the new client's
 * socket has that number and is sent what was meant for the other.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SESSIONS 2

struct session {
    int fd;     /* ours, or -1 */
    int client; /* the far end of the socket */
    int user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct session sessions[SESSIONS] = {{-1, -1, 0}, {-1, -1, 0}};

static void session_open(struct session *session, int user)
{
    int ends[2];
    char hello[32];
    int length = snprintf(hello, sizeof hello, "hello, user %d\n", user);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) /* RACE:open */
        return;
    pthread_mutex_lock(&lock);
    *session = (struct session){ends[0], ends[1], user};
    send(session->fd, hello, (size_t)length, MSG_NOSIGNAL);
    pthread_mutex_unlock(&lock);
}

static void session_close(struct session *session)
{
    pthread_mutex_lock(&lock);
    close(session->fd); /* RACE:close */
    session->fd = -1;   /* RACE:forget */
    pthread_mutex_unlock(&lock);
}

/* Answer the request of the first session's user, if that is still there. */
static void *work(void *argument)
{
    struct session *session = argument;
    char reply[64];

    pthread_mutex_lock(&lock);
    int fd = session->fd; /* RACE:fetch */
    int user = session->user;
#ifndef FIXED
    pthread_mutex_unlock(&lock);
#endif
    int length = snprintf(reply, sizeof reply, "balance of user %d: %d\n", user, 100 * user);
    if (fd >= 0)
        send(fd, reply, (size_t)length, MSG_NOSIGNAL); /* RACE:send */
#ifdef FIXED
    pthread_mutex_unlock(&lock);
#endif
    return NULL;
}

/* The first session has been idle for too long; another client takes its place. */
static void *reap(void *argument)
{
    struct session *all = argument;
    session_close(&all[0]);
    session_open(&all[1], 2);
    return NULL;
}

int main(void)
{
    pthread_t worker, reaper;
    char got[128];

    session_open(&sessions[0], 1);
    pthread_create(&worker, NULL, work, &sessions[0]);
    pthread_create(&reaper, NULL, reap, sessions);
    pthread_join(worker, NULL);
    pthread_join(reaper, NULL);
    ssize_t length = recv(sessions[1].client, got, sizeof got - 1, MSG_DONTWAIT);
    got[length > 0 ? length : 0] = '\0';
    if (strstr(got, "balance") != NULL) {
        fprintf(stderr, "user 2 was sent:\n%s", got);
        return 4;
    }
    puts("nobody was sent what is not his");
    return 0;
}
