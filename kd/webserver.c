/*
 * webserver.c: access control and requests.
 *
 * Every user of the machine can connect, so connections that have not presented the token are strangers: they get little
 * time, however busy they are, and if there are too many, the oldest one is closed. So they never lock out the user.
 */
#include "kd.h"
#include "webserver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define TOKEN_BYTES 16
#define TOKEN_DIGITS (2 * TOKEN_BYTES)
#define MOST_CONNECTIONS 512
#define MOST_STRANGERS 64
#define IDLE_SECONDS 30
#define STRANGER_SECONDS 10

typedef struct visitor {
    struct visitor *next, *previous; /* among the strangers, the oldest first */
    int socket;
    time_t since;
    bool stranger;
} visitor;

struct web_server {
    struct MHD_Daemon *daemon;
    visitor strangers;               /* the head of their list */
    size_t stranger_count;
    web_handler *handler;
    void *context;
    uint16_t port;
    char token[TOKEN_DIGITS + 1];
    char address[80];
};

/* Headers of every answer: no foreign content, no caching, no referrer. */
static const struct {
    const char *name, *value;
} protection[] = {
    {"Content-Security-Policy", "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
                                "frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, struct MHD_Response *response)
{
    enum MHD_Result result;

    if (response == NULL)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(protection) / sizeof(protection[0]); i++)
        MHD_add_response_header(response, protection[i].name, protection[i].value);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static struct MHD_Response *text_response(const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);

    if (response != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
    return response;
}

/* Strangers. */

static time_t seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void is_no_stranger(web_server *server, visitor *v)
{
    if (v == NULL || !v->stranger)
        return;
    v->stranger = false;
    v->previous->next = v->next;
    v->next->previous = v->previous;
    server->stranger_count--;
}

/* The library notices the end of the connection and closes it. */
static void turn_out(web_server *server, visitor *v)
{
    shutdown(v->socket, SHUT_RDWR);
    is_no_stranger(server, v);
}

/* Prefers to close a silent connection to one that is sending a request. */
static void turn_out_one(web_server *server)
{
    visitor *v = server->strangers.next;
    char byte;

    while (v != &server->strangers && recv(v->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
        v = v->next;
    turn_out(server, v != &server->strangers ? v : server->strangers.next);
}

static void turn_out_old(web_server *server)
{
    while (server->stranger_count > 0 && seconds_now() - server->strangers.next->since >= STRANGER_SECONDS)
        turn_out(server, server->strangers.next);
}

static void note_connection(void *context, struct MHD_Connection *connection, void **kept,
                            enum MHD_ConnectionNotificationCode what)
{
    web_server *server = context;
    visitor *v = *kept;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        is_no_stranger(server, v);
        free(v);
        *kept = NULL;
        return;
    }
    if (server->stranger_count >= MOST_STRANGERS)
        turn_out_one(server);
    v = kd_allocate(1, sizeof(*v));
    *v = (visitor){.socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                   .since = seconds_now(), .stranger = true, .next = &server->strangers,
                   .previous = server->strangers.previous};
    v->previous->next = v;
    server->strangers.previous = v;
    server->stranger_count++;
    *kept = v;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    struct MHD_Response *response = text_response(why);

    if (response != NULL && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (response != NULL && status == MHD_HTTP_FORBIDDEN)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    return answer(connection, status, response);
}

static bool is_own_host(const web_server *server, const char *host)
{
    char expected[32];

    if (host == NULL)
        return false;
    snprintf(expected, sizeof(expected), "127.0.0.1:%u", server->port);
    if (strcmp(host, expected) == 0)
        return true;
    snprintf(expected, sizeof(expected), "localhost:%u", server->port);
    return strcmp(host, expected) == 0;
}

/* Constant time: does not depend on how much of the token matches. */
static bool has_token(const web_server *server, const char *url)
{
    const char *end = url[0] == '/' ? strchr(url + 1, '/') : NULL;
    size_t length = end != NULL ? (size_t)(end - url - 1) : url[0] == '/' ? strlen(url + 1) : 0;
    unsigned char difference = 0;

    if (length != TOKEN_DIGITS)
        return false;
    for (size_t i = 0; i < TOKEN_DIGITS; i++)
        difference |= (unsigned char)(url[1 + i] ^ server->token[i]);
    return difference == 0;
}

static const char *argument(const web_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result answer_data(web_server *server, struct MHD_Connection *connection, const char *path)
{
    web_request request = {.path = path, .argument = argument, .connection = connection};
    web_answer given = server->handler(server->context, &request);
    struct MHD_Response *response;
    char number[32];

    if (given.body == NULL)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "There is no such view.\n");
    response = MHD_create_response_from_buffer(given.size, given.body, MHD_RESPMEM_MUST_FREE);
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
        snprintf(number, sizeof(number), "%llu", (unsigned long long)given.snapshot);
        MHD_add_response_header(response, "Interlock-Snapshot", number);
    }
    return answer(connection, given.status, response);
}

static enum MHD_Result answer_asset(struct MHD_Connection *connection, const char *path)
{
    for (size_t i = 0; i < web_asset_count; i++) {
        const web_asset *asset = &web_assets[i];
        struct MHD_Response *response;

        if (strcmp(*path != '\0' ? path : "index.html", asset->path) != 0)
            continue;
        response = MHD_create_response_from_buffer(asset->size, (void *)(uintptr_t)asset->data, MHD_RESPMEM_PERSISTENT);
        if (response != NULL)
            MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, asset->type);
        return answer(connection, MHD_HTTP_OK, response);
    }
    return refuse(connection, MHD_HTTP_NOT_FOUND, "There is no such page.\n");
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state)
{
    web_server *server = context;
    const char *path;

    (void)version;
    (void)upload;
    (void)upload_size;
    if (!is_own_host(server, MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)) ||
        !has_token(server, url))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "Use the address that interlock view has printed.\n");
    is_no_stranger(server, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "This server is read-only.\n");
    if (*state == NULL) { /* the first call; a reply in it would close the connection */
        *state = server;
        return MHD_YES;
    }
    path = url + 1 + TOKEN_DIGITS;
    if (strncmp(path, "/api/", 5) == 0)
        return answer_data(server, connection, path + 5);
    if (*path != '/')
        return refuse(connection, MHD_HTTP_NOT_FOUND, "The address ends in a slash.\n");
    return answer_asset(connection, path + 1);
}

static bool make_token(web_server *server)
{
    unsigned char random[TOKEN_BYTES];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return false;
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(&server->token[2 * i], 3, "%02x", random[i]);
    return true;
}

web_server *web_start(uint16_t port, web_handler *handler, void *context)
{
    web_server *server = calloc(1, sizeof(*server));
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (server == NULL || !make_token(server)) {
        free(server);
        return NULL;
    }
    server->handler = handler;
    server->context = context;
    server->strangers.next = server->strangers.previous = &server->strangers;
    server->daemon = MHD_start_daemon(MHD_USE_EPOLL, port, NULL, NULL, handle, server, MHD_OPTION_SOCK_ADDR, &loopback,
                                      MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS,
                                      MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                                      MHD_OPTION_NOTIFY_CONNECTION, note_connection, server, MHD_OPTION_END);
    if (server->daemon == NULL) {
        int problem = errno;

        free(server);
        errno = problem;
        return NULL;
    }
    server->port = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    snprintf(server->address, sizeof(server->address), "http://127.0.0.1:%u/%s/", server->port, server->token);
    return server;
}

const char *web_address(const web_server *server)
{
    return server->address;
}

void web_run(web_server *server, int milliseconds)
{
    turn_out_old(server);
    MHD_run_wait(server->daemon, server->stranger_count > 0 && milliseconds > 1000 ? 1000 : milliseconds);
}

void web_stop(web_server *server)
{
    MHD_stop_daemon(server->daemon);
    free(server);
}
