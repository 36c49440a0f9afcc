/*
 * Sockets are out of scope. libuv's public header declares its sockets beside its threads, so that its threads do not
 * compile without the types of these; no function of sockets is here.
 */
#ifndef CLIENTS_WINSOCK2_H
#define CLIENTS_WINSOCK2_H

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <windows.h>

#define _SSIZE_T_DEFINED
#define WSAAPI
#define INVALID_SOCKET ((SOCKET)~0)
#define SOCKET_ERROR (-1)
#define WSAPROTOCOL_LEN 255
#define MAX_PROTOCOL_CHAIN 7
#define FD_SETSIZE 64
#define WSA_IO_PENDING 997
#define IOC_IN 0x80000000
#define IOC_INOUT 0xC0000000
#define IOC_WS2 0x08000000
#define IOC_VENDOR 0x18000000
#define _WSAIOR(x, y) (IOC_WS2 | (x) | (y))
#define _WSAIORW(x, y) (IOC_INOUT | (x) | (y))

typedef UINT_PTR SOCKET;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned int GROUP;
typedef OVERLAPPED WSAOVERLAPPED, *LPWSAOVERLAPPED;
typedef struct addrinfo ADDRINFOA;
typedef struct addrinfo ADDRINFOW, *PADDRINFOW;
typedef struct pollfd WSAPOLLFD;
typedef struct sockaddr SOCKADDR, *LPSOCKADDR;
typedef struct sockaddr_storage SOCKADDR_STORAGE;

typedef struct _WSABUF {
    ULONG len;
    CHAR *buf;
} WSABUF, *LPWSABUF;

typedef struct _WSAMSG {
    LPSOCKADDR name;
    INT namelen;
    LPWSABUF lpBuffers;
    DWORD dwBufferCount;
    WSABUF Control;
    DWORD dwFlags;
} WSAMSG, *LPWSAMSG, *PWSAMSG;

typedef struct _WSAPROTOCOL_INFOW {
    int iAddressFamily, iSocketType, iProtocol;
} WSAPROTOCOL_INFOW, WSAPROTOCOL_INFO, *LPWSAPROTOCOL_INFOW;

typedef void(CALLBACK *LPWSAOVERLAPPED_COMPLETION_ROUTINE)(DWORD, DWORD, LPWSAOVERLAPPED, DWORD);

/* Of windows.h, also out of scope: consoles, files, windows. */
typedef struct _COORD {
    SHORT X, Y;
} COORD;

typedef struct _INPUT_RECORD {
    WORD EventType;
    DWORD Event[4];
} INPUT_RECORD;

typedef struct _WIN32_FIND_DATAW {
    DWORD dwFileAttributes;
    WCHAR cFileName[MAX_PATH];
} WIN32_FIND_DATAW;

DECLARE_HANDLE(HWINEVENTHOOK);

#endif
