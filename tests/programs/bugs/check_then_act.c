/*
 * class: check then act
 * oracle: exit 3
 * racing: find insert | insert
 * threads: 3
 * flags: -std=c11 -O1
 *
 * A table that keeps one copy of every name. Looking up and inserting each hold the lock, but not together: two threads
 * that miss the same name both insert it, and from then on equal names have different addresses.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4

struct entry {
    struct entry *next;
    char name[16];
};

static struct entry *buckets[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned bucket_of(const char *name) { return ((unsigned)name[0] + 31u * (unsigned)name[1]) % BUCKETS; }

static struct entry *find(const char *name)
{
    struct entry *entry = buckets[bucket_of(name)]; /* RACE:find */
    while (entry != NULL && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

static struct entry *insert(const char *name)
{
    struct entry *entry = malloc(sizeof *entry);
    struct entry **bucket = &buckets[bucket_of(name)];
    strncpy(entry->name, name, sizeof entry->name);
    entry->next = *bucket;
    *bucket = entry; /* RACE:insert */
    return entry;
}

static const char *intern(const char *name)
{
    pthread_mutex_lock(&table_lock);
    struct entry *entry = find(name);
#ifndef FIXED
    pthread_mutex_unlock(&table_lock);
    if (entry != NULL)
        return entry->name;
    pthread_mutex_lock(&table_lock);
#endif
    if (entry == NULL)
        entry = insert(name);
    pthread_mutex_unlock(&table_lock);
    return entry->name;
}

static void *scan(void *result)
{
    *(const char **)result = intern("width");
    return NULL;
}

int main(void)
{
    pthread_t scanners[2];
    const char *names[2];

    intern("height");
    for (int i = 0; i < 2; i++)
        pthread_create(&scanners[i], NULL, scan, &names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(scanners[i], NULL);
    if (names[0] != names[1]) {
        fprintf(stderr, "\"%s\" is in the table twice\n", names[0]);
        return 3;
    }
    printf("interned %s\n", names[0]);
    return 0;
}
