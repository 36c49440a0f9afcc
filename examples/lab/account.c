/*
 * An account that loses money: two deposits read the same balance, and both write their result. Tests rarely see it.
 *
 *     interlock lab examples/lab/account.c
 *
 * shows the shortest schedule that does it, and a token that replays it.
 */
#include <interlock/lab.h>

static int balance;

static void deposit(void)
{
    int seen = __atomic_load_n(&balance, __ATOMIC_ACQUIRE);
    __atomic_store_n(&balance, seen + 100, __ATOMIC_RELEASE);
}

static void nothing_is_lost(void)
{
    LabAssert(balance == 200);
}

LAB_SCENARIO(account, .Threads = {deposit, deposit}, .Finish = nothing_is_lost);
