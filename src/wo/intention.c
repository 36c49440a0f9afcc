/* intention.c: what a repairer completes after the owner of the lock died in a chain of transactions. */
#include "wop.h"

WOP_COMPLETE *const WopCompleter[WoIntentions] = {
    [WoNoIntention] = NULL,
};
