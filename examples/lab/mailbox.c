/*
 * An ordinary program with pthreads, not written for the explorer: a mailbox for one letter. The reader waits with `if`, and
 * a wakeup may come without a letter.
 *
 *     interlock lab examples/lab/mailbox.c
 *
 * explores main under every schedule and with a spurious wakeup. With -DLOOP after -- it is correct.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    int letters[2];
    unsigned count;
} mailbox = {.lock = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};

static void *send(void *argument)
{
    pthread_mutex_lock(&mailbox.lock);
    mailbox.letters[mailbox.count++] = *(int *)argument;
    pthread_cond_signal(&mailbox.arrived);
    pthread_mutex_unlock(&mailbox.lock);
    return NULL;
}

static int receive(void)
{
    pthread_mutex_lock(&mailbox.lock);
#ifdef LOOP
    while (mailbox.count == 0)
#else
    if (mailbox.count == 0)
#endif
        pthread_cond_wait(&mailbox.arrived, &mailbox.lock);
    assert(mailbox.count != 0);
    int letter = mailbox.letters[--mailbox.count];
    pthread_mutex_unlock(&mailbox.lock);
    return letter;
}

int main(void)
{
    pthread_t sender;
    int letter = 7;

    pthread_create(&sender, NULL, send, &letter);
    printf("received %d\n", receive());
    pthread_join(sender, NULL);
    return 0;
}
