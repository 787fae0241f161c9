/*
 * class: old array freed by growing while it is read
 * oracle: signal SIGSEGV
 * racing: read wipe | read free | fetch wipe | fetch free | fetch publish | read publish
 * threads: 4
 * flags: -std=gnu11 -O1
 *
 * The keys of a server. A lookup takes the array and its length under the lock and searches it without; adding a key
 * may make the array grow, and then the old one is wiped (there are secrets behind it) and freed at once, whoever is
 * still searching it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READERS 2
#define FIRST   4

struct key {
    int id;
    int uses;
    char secret[16];
};

static struct {
    pthread_mutex_t lock;
    struct key **keys;
    int used;
    int size;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct key *key_new(int id)
{
    struct key *key = calloc(1, sizeof *key);
    key->id = id;
    snprintf(key->secret, sizeof key->secret, "s3cret-%d", id);
    return key;
}

static void add(struct key *key)
{
    pthread_mutex_lock(&table.lock);
    if (table.used == table.size) {
        struct key **old = table.keys;
        struct key **bigger = calloc((size_t)table.size * 2, sizeof(struct key *));
        memcpy(bigger, old, (size_t)table.size * sizeof(struct key *));
        table.keys = bigger;                                            /* RACE:publish */
        explicit_bzero(old, (size_t)table.size * sizeof(struct key *)); /* RACE:wipe */
        free(old);                                                      /* RACE:free */
        table.size *= 2;
    }
    table.keys[table.used++] = key;
    pthread_mutex_unlock(&table.lock);
}

static struct key *find(int id)
{
    struct key *found = NULL;
    pthread_mutex_lock(&table.lock);
    struct key **keys = table.keys; /* RACE:fetch */
    int used = table.used;
#ifndef FIXED
    pthread_mutex_unlock(&table.lock);
#endif
    for (int i = 0; i < used && found == NULL; i++) {
        struct key *key = keys[i]; /* RACE:read */
        if (key->id == id)
            found = key;
    }
#ifdef FIXED
    pthread_mutex_unlock(&table.lock);
#endif
    return found;
}

static void *serve(void *argument)
{
    struct key *key = find(*(int *)argument);
    key->uses++;
    return NULL;
}

static void *renew(void *argument)
{
    add(key_new(*(int *)argument));
    return NULL;
}

int main(void)
{
    pthread_t readers[READERS], writer;
    int wanted[READERS] = {FIRST - 1, FIRST};
    int renewed = FIRST + 1;

    table.size = FIRST;
    table.keys = calloc(FIRST, sizeof(struct key *));
    for (int id = 1; id <= FIRST; id++)
        add(key_new(id));
    pthread_create(&readers[0], NULL, serve, &wanted[0]);
    pthread_create(&writer, NULL, renew, &renewed);
    pthread_create(&readers[1], NULL, serve, &wanted[1]);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_join(writer, NULL);
    for (int i = 0; i < table.used; i++)
        printf("key %d was used %d times\n", table.keys[i]->id, table.keys[i]->uses);
    return 0;
}
