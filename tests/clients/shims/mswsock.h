/* Sockets are out of scope: see winsock2.h. */
#ifndef CLIENTS_MSWSOCK_H
#define CLIENTS_MSWSOCK_H

#include <winsock2.h>

#define WSAID_ACCEPTEX {0xb5367df1, 0xcbac, 0x11cf, {0x95, 0xca, 0x00, 0x80, 0x5f, 0x48, 0xa1, 0x92}}

typedef BOOL(PASCAL *LPFN_ACCEPTEX)(SOCKET, SOCKET, PVOID, DWORD, DWORD, DWORD, LPDWORD, LPOVERLAPPED);
typedef BOOL(PASCAL *LPFN_CONNECTEX)(SOCKET, const struct sockaddr *, int, PVOID, DWORD, LPDWORD, LPOVERLAPPED);
typedef BOOL(PASCAL *LPFN_DISCONNECTEX)(SOCKET, LPOVERLAPPED, DWORD, DWORD);

#endif
