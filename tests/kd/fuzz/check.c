/* check.c: what a view may write: valid UTF-8 without terminal controls; and valid JSON. */
#include "check.h"

#include "text.h"

#include <stdbool.h>
#include <string.h>

#define DEEPEST 64

const char *problem_of_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        uint32_t c = 0;
        size_t bytes = kd_decode(text + i, length - i, &c);

        if (bytes == 0)
            return "a byte that is not UTF-8";
        if (c != '\n' && !kd_is_safe(c))
            return "a character that a terminal obeys, or does not show";
        i += bytes;
    }
    return NULL;
}

typedef struct reader {
    const char *at, *end;
} reader;

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n'))
        r->at++;
}

static bool take(reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool take_string(reader *r)
{
    if (!take(r, '"'))
        return false;
    for (; r->at < r->end && *r->at != '"'; r->at++) {
        if ((unsigned char)*r->at < ' ')
            return false;
        if (*r->at == '\\' && (++r->at == r->end || strchr("\"\\/bfnrtu", *r->at) == NULL))
            return false;
    }
    return take(r, '"');
}

static size_t take_digits(reader *r)
{
    const char *begin = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - begin);
}

static bool take_number(reader *r)
{
    take_word(r, "-");
    if (take_digits(r) == 0)
        return false;
    if (take_word(r, ".") && take_digits(r) == 0)
        return false;
    if (!take_word(r, "e") && !take_word(r, "E"))
        return true;
    if (!take_word(r, "-"))
        take_word(r, "+");
    return take_digits(r) != 0;
}

static bool take_value(reader *r, unsigned depth);

static bool take_members(reader *r, unsigned depth, char end, bool named)
{
    r->at++;
    if (take(r, end))
        return true;
    do {
        if (named && (!take_string(r) || !take(r, ':')))
            return false;
        if (!take_value(r, depth + 1))
            return false;
    } while (take(r, ','));
    return take(r, end);
}

static bool take_value(reader *r, unsigned depth)
{
    skip_space(r);
    if (r->at == r->end || depth > DEEPEST)
        return false;
    switch (*r->at) {
    case '{':
        return take_members(r, depth, '}', true);
    case '[':
        return take_members(r, depth, ']', false);
    case '"':
        return take_string(r);
    case 't':
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r);
    }
}

const char *problem_of_json(const char *text, size_t length)
{
    reader r = {text, text + length};

    if (!take_value(&r, 0))
        return "not JSON";
    skip_space(&r);
    return r.at == r.end ? NULL : "more than one value of JSON";
}
