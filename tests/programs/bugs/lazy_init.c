/*
 * class: lazy initialisation, published before its fields are set
 * oracle: signal SIGSEGV
 * racing: publish check | publish hand_out | fill use
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A price list that is built when it is first asked for. The pointer is checked without the lock, and it is set before
 * the list behind it is complete.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ARTICLES 8

struct price_list {
    int articles;
    long *cents;
};

static struct price_list *price_list;
static pthread_mutex_t price_lock = PTHREAD_MUTEX_INITIALIZER;

static long *load_cents(int articles)
{
    long *cents = malloc((size_t)articles * sizeof *cents);
    for (int i = 0; i < articles; i++)
        cents[i] = 99 + 100 * i;
    return cents;
}

static void build(void)
{
    struct price_list *fresh = calloc(1, sizeof *fresh);
    long *cents = load_cents(ARTICLES);
#ifndef FIXED
    price_list = fresh; /* RACE:publish */
#endif
    fresh->articles = ARTICLES;
    fresh->cents = cents; /* RACE:fill */
#ifdef FIXED
    price_list = fresh;
#endif
}

static struct price_list *prices(void)
{
#ifdef FIXED
    pthread_mutex_lock(&price_lock);
    if (price_list == NULL)
        build();
    struct price_list *list = price_list;
    pthread_mutex_unlock(&price_lock);
    return list;
#else
    if (price_list == NULL) { /* RACE:check */
        pthread_mutex_lock(&price_lock);
        if (price_list == NULL)
            build();
        pthread_mutex_unlock(&price_lock);
    }
    return price_list; /* RACE:hand_out */
#endif
}

static void *till(void *argument)
{
    long *sum = argument;
    const struct price_list *list = prices();
    const long *cents = list->cents; /* RACE:use */
    *sum = cents[1] + cents[3];
    return NULL;
}

int main(void)
{
    pthread_t tills[2];
    long sums[2] = {0, 0};

    for (int i = 0; i < 2; i++)
        pthread_create(&tills[i], NULL, till, &sums[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(tills[i], NULL);
    printf("%ld cents in all\n", sums[0] + sums[1]);
    free(price_list->cents);
    free(price_list);
    return 0;
}
