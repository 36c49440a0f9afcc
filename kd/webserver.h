/*
 * webserver.h: a web server for one reader: it listens on the loopback address only, answers only requests whose path
 * begins with a random token and whose Host is its own (against DNS rebinding), and
 * changes nothing. It runs in the thread that calls it.
 */
#ifndef INTERLOCK_KD_WEBSERVER_H
#define INTERLOCK_KD_WEBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct web_asset {
    const char *path;
    const char *type;
    const unsigned char *data;
    size_t size;
} web_asset;

extern const web_asset web_assets[]; /* generated from kd/web */
extern const size_t web_asset_count;

/* The answer for a path below the token. The server frees body; NULL is a 404. */
typedef struct web_answer {
    unsigned status;
    char *body;
    size_t size;
    uint64_t snapshot;   /* which one it shows */
} web_answer;

typedef struct web_request {
    const char *path;    /* after "api/" */
    const char *(*argument)(const struct web_request *request, const char *name); /* NULL: it was not given */
    void *connection;
} web_request;

typedef web_answer web_handler(void *context, const web_request *request);

typedef struct web_server web_server;

web_server *web_start(uint16_t port, web_handler *handler, void *context); /* NULL: errno has the reason */
const char *web_address(const web_server *server);
void web_run(web_server *server, int milliseconds);
void web_stop(web_server *server);

#endif
