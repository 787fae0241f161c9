/*
 * class: atomicity violation over two critical sections
 * oracle: signal SIGABRT
 * racing: get set | set
 * threads: 3
 * flags: -std=c11 -O1
 *
 * Every access to an account holds its lock, so there is no data race; but a transfer reads the balance in one critical
 * section and writes it in another, and what was paid in between is gone.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define ACCOUNTS 3
#define OPENING  1000

struct account {
    pthread_mutex_t lock;
    long balance;
};

struct order {
    int from, to;
    long amount;
};

static struct account accounts[ACCOUNTS];
static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;

static long balance_of(struct account *account)
{
    pthread_mutex_lock(&account->lock);
    long balance = account->balance; /* RACE:get */
    pthread_mutex_unlock(&account->lock);
    return balance;
}

static void set_balance(struct account *account, long balance)
{
    pthread_mutex_lock(&account->lock);
    account->balance = balance; /* RACE:set */
    pthread_mutex_unlock(&account->lock);
}

static void *teller(void *argument)
{
    const struct order *order = argument;
    struct account *from = &accounts[order->from], *to = &accounts[order->to];
#ifdef FIXED
    pthread_mutex_lock(&ledger);
#endif
    set_balance(from, balance_of(from) - order->amount);
    set_balance(to, balance_of(to) + order->amount);
#ifdef FIXED
    pthread_mutex_unlock(&ledger);
#endif
    return NULL;
}

int main(void)
{
    static struct order orders[] = {{0, 1, 250}, {1, 2, 400}};
    pthread_t tellers[2];
    long sum = 0;

    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = OPENING;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&tellers[i], NULL, teller, &orders[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(tellers[i], NULL);

    pthread_mutex_lock(&ledger);
    for (int i = 0; i < ACCOUNTS; i++) {
        printf("account %d: %ld\n", i, accounts[i].balance);
        sum += accounts[i].balance;
    }
    pthread_mutex_unlock(&ledger);
    assert(sum == ACCOUNTS * OPENING);
    return 0;
}
