/* json.h: writing JSON. A key is NULL inside an array. */
#ifndef INTERLOCK_KD_JSON_H
#define INTERLOCK_KD_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 32

typedef struct json {
    FILE *file;
    bool compact; /* without line breaks and indentation */
    int depth;
    bool used[JSON_DEPTH];
    char end[JSON_DEPTH];
} json;

void json_object(json *out, const char *key);
void json_array(json *out, const char *key);
void json_end(json *out);
void json_string(json *out, const char *key, const char *value); /* NULL: null */
void json_number(json *out, const char *key, int64_t value);
void json_real(json *out, const char *key, double value);
void json_bool(json *out, const char *key, bool value);
void json_null(json *out, const char *key);
void json_address(json *out, const char *key, uint64_t value);   /* "0x7f..", 0 is null */
void json_hex(json *out, const char *key, uint64_t value);       /* likewise, but 0 is "0x0" */

#endif
