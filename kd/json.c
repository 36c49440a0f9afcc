/* json.c: writing JSON. */
#include "json.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>

/* Writes valid UTF-8: invalid bytes become U+FFFD, unprintable characters are escaped. */
static void text(json *out, const char *value)
{
    size_t length = strlen(value);

    fputc('"', out->file);
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t bytes = kd_decode(value + i, length - i, &c);

        if (bytes == 0)
            fputs("\\ufffd", out->file);
        else if (c == '"' || c == '\\')
            fprintf(out->file, "\\%c", (char)c);
        else if (kd_is_safe(c))
            fwrite(value + i, 1, bytes, out->file);
        else if (c < 0x10000)
            fprintf(out->file, "\\u%04x", c);
        else
            fprintf(out->file, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
        i += bytes != 0 ? bytes : 1;
    }
    fputc('"', out->file);
}

static void begin_value(json *out, const char *key)
{
    if (out->depth > 0) {
        if (out->used[out->depth])
            fputc(',', out->file);
        out->used[out->depth] = true;
        if (!out->compact)
            fprintf(out->file, "\n%*s", 2 * out->depth, "");
    }
    if (key != NULL) {
        text(out, key);
        fputs(out->compact ? ":" : ": ", out->file);
    }
}

static void open_level(json *out, const char *key, char begin, char end)
{
    begin_value(out, key);
    fputc(begin, out->file);
    out->depth++;
    out->used[out->depth] = false;
    out->end[out->depth] = end;
}

void json_object(json *out, const char *key)
{
    open_level(out, key, '{', '}');
}

void json_array(json *out, const char *key)
{
    open_level(out, key, '[', ']');
}

void json_end(json *out)
{
    char end = out->end[out->depth];
    bool used = out->used[out->depth];

    out->depth--;
    if (used && !out->compact)
        fprintf(out->file, "\n%*s", 2 * out->depth, "");
    fputc(end, out->file);
    if (out->depth == 0)
        fputc('\n', out->file);
}

void json_string(json *out, const char *key, const char *value)
{
    begin_value(out, key);
    if (value != NULL)
        text(out, value);
    else
        fputs("null", out->file);
}

void json_number(json *out, const char *key, int64_t value)
{
    begin_value(out, key);
    fprintf(out->file, "%" PRId64, value);
}

void json_real(json *out, const char *key, double value)
{
    begin_value(out, key);
    fprintf(out->file, "%.6f", value);
}

void json_bool(json *out, const char *key, bool value)
{
    begin_value(out, key);
    fputs(value ? "true" : "false", out->file);
}

void json_null(json *out, const char *key)
{
    json_string(out, key, NULL);
}

void json_hex(json *out, const char *key, uint64_t value)
{
    begin_value(out, key);
    fprintf(out->file, "\"0x%" PRIx64 "\"", value);
}

void json_address(json *out, const char *key, uint64_t value)
{
    if (value == 0)
        json_null(out, key);
    else
        json_hex(out, key, value);
}
