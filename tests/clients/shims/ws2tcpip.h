/* Sockets are out of scope: see winsock2.h. */
#include <winsock2.h>
