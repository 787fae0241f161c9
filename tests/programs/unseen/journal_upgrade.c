/*
 * class: reader-writer lock given up to be upgraded
 * oracle: exit 5
 * racing: end length | length | end entry | entry
 * also: read_lock write_lock
 * threads: 4
 * flags: -std=gnu11 -O1
 *
 * The journal of a file system. A writer looks under the read lock whether there is room and where the end is; there is
 * no upgrade, so it lets go and takes the write lock, and by then the end may be elsewhere. The entry of somebody else
 * is overwritten.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#define WRITERS 3
#define ENTRIES 16
#define ROOT    1 /* inode of the root folder, whose entry comes first */

struct entry {
    int inode;
    int blocks;
};

struct journal {
    pthread_rwlock_t lock;
    int length;
    struct entry entries[ENTRIES];
};

static struct journal journal = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static bool append(struct journal *j, struct entry entry)
{
#ifdef FIXED
    pthread_rwlock_wrlock(&j->lock);
    int end = j->length;
#else
    pthread_rwlock_rdlock(&j->lock); /* RACE:read_lock */
    int end = j->length;             /* RACE:end */
    pthread_rwlock_unlock(&j->lock);
#endif
    if (end == ENTRIES) {
#ifdef FIXED
        pthread_rwlock_unlock(&j->lock);
#endif
        return false;
    }
#ifndef FIXED
    pthread_rwlock_wrlock(&j->lock); /* RACE:write_lock */
#endif
    j->entries[end] = entry; /* RACE:entry */
    j->length = end + 1;     /* RACE:length */
    pthread_rwlock_unlock(&j->lock);
    return true;
}

static void *write_file(void *argument)
{
    int inode = *(int *)argument;
    append(&journal, (struct entry){inode, 8 * inode});
    return NULL;
}

static int blocks_of(struct journal *j, int inode)
{
    int blocks = 0;
    pthread_rwlock_rdlock(&j->lock);
    for (int i = 0; i < j->length; i++)
        if (j->entries[i].inode == inode)
            blocks += j->entries[i].blocks;
    pthread_rwlock_unlock(&j->lock);
    return blocks;
}

int main(void)
{
    pthread_t threads[WRITERS];
    int inodes[WRITERS];

    append(&journal, (struct entry){ROOT, 1});
    for (int i = 0; i < WRITERS; i++) {
        inodes[i] = ROOT + 1 + i;
        pthread_create(&threads[i], NULL, write_file, &inodes[i]);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WRITERS; i++)
        if (blocks_of(&journal, inodes[i]) != 8 * inodes[i]) {
            fprintf(stderr, "inode %d is not in the journal\n", inodes[i]);
            return 5;
        }
    printf("%d entries\n", journal.length);
    return 0;
}
