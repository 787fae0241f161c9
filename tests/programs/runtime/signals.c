/* A timer's handler accesses shared memory while the main thread does: logs must stay in order. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "sites.h"

OBJECT(4);

static int cell, handled;

static void handler(int signal)
{
    (void)signal;
    handled = READ(2, handled) + 1;
    WRITE(3, cell, 0);
}

int main(void)
{
    struct itimerval often = {{0, 100}, {0, 100}};
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 1; i <= 50000 || handled < 100; i++) {
        WRITE(0, cell, i);
        READ(1, cell);
    }
    memset(&often, 0, sizeof(often));
    setitimer(ITIMER_REAL, &often, NULL);
    puts("done");
    return 0;
}
