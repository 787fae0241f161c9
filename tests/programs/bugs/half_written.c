/*
 * class: half-written struct
 * oracle: regex fix (?!53,13,34 m|54,10,12 m)
 * racing: write read
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A receiver stores the position it was sent, a display shows the latest. Nothing guards the copy, so the display can
 * show the latitude of one place with the longitude of another. Nothing crashes; the output is wrong.
 */
#include <pthread.h>
#include <stdio.h>

struct fix {
    long latitude;
    long longitude;
    long altitude_m;
};

static const struct fix berlin = {53, 13, 34};
static const struct fix hamburg = {54, 10, 12};

static struct fix latest;
static pthread_mutex_t latest_lock = PTHREAD_MUTEX_INITIALIZER;

static void guard(void)
{
#ifdef FIXED
    pthread_mutex_lock(&latest_lock);
#endif
}

static void unguard(void)
{
#ifdef FIXED
    pthread_mutex_unlock(&latest_lock);
#endif
}

static void store_fix(const struct fix *fix)
{
    guard();
    latest = *fix; /* RACE:write */
    unguard();
}

static void *receive(void *sentence)
{
    store_fix(sentence);
    return NULL;
}

static void *display(void *unused)
{
    (void)unused;
    guard();
    struct fix shown = latest; /* RACE:read */
    unguard();
    printf("fix %ld,%ld,%ld m\n", shown.latitude, shown.longitude, shown.altitude_m);
    return NULL;
}

int main(void)
{
    pthread_t receiver, screen;
    struct fix sentence = hamburg;

    pthread_mutex_lock(&latest_lock);
    latest = berlin;
    pthread_mutex_unlock(&latest_lock);
    pthread_create(&receiver, NULL, receive, &sentence);
    pthread_create(&screen, NULL, display, NULL);
    pthread_join(receiver, NULL);
    pthread_join(screen, NULL);
    return 0;
}
