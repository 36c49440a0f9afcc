/* keyboard.c: single keys of the terminal, from standard input. */
#include "halp.h"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#define HALP_KEYS STDIN_FILENO

/* Unbuffered, unmodified bytes. FALSE: it is not a terminal, and bytes are read as they arrive. */
static BOOLEAN HalpEnterKeyMode(struct termios *Before, BOOLEAN Echo)
{
    struct termios Keys;

    if (tcgetattr(HALP_KEYS, Before) != 0) {
        return FALSE;
    }
    Keys = *Before;
    Keys.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    Keys.c_lflag |= Echo ? (tcflag_t)ECHO : 0;
    Keys.c_cc[VMIN] = 1;
    Keys.c_cc[VTIME] = 0;
    return tcsetattr(HALP_KEYS, TCSANOW, &Keys) == 0;
}

LONG HalReadKey(BOOLEAN Echo)
{
    HALP_HOST_CALLS;
    struct termios Before;
    BOOLEAN Terminal = HalpEnterKeyMode(&Before, Echo);
    UCHAR Key;
    ssize_t Count;

    do {
        Count = read(HALP_KEYS, &Key, 1);
    } while (Count < 0 && errno == EINTR);
    if (Terminal) {
        tcsetattr(HALP_KEYS, TCSANOW, &Before);
    }
    return Count == 1 ? Key : -1;
}

BOOLEAN HalIsKeyReady(VOID)
{
    HALP_HOST_CALLS;
    struct termios Before;
    BOOLEAN Terminal = HalpEnterKeyMode(&Before, FALSE);
    struct pollfd Ready = {.fd = HALP_KEYS, .events = POLLIN};
    int Count = poll(&Ready, 1, 0);

    if (Terminal) {
        tcsetattr(HALP_KEYS, TCSANOW, &Before);
    }
    return Count == 1 && (Ready.revents & (POLLIN | POLLHUP)) != 0;
}
