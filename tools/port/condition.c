/* condition.c: !, &&, ||, parentheses, defined, 0 and 1 in three values. Everything else is not known. */
#include "condition.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define MOST_DEPTH 64

static const char *const defined_names[] = {"_WIN32", "WIN32", "__WIN32__", "__WIN32", "_WIN64", "_M_X64", "_M_AMD64", NULL};
static const char *const undefined_names[] = {"__CYGWIN__", "__APPLE__", "__MACH__", "__FreeBSD__", "__OpenBSD__", "__NetBSD__",
                                              "__sun", "__ANDROID__", "__EMSCRIPTEN__", "_WIN32_WCE", "UNDER_CE", "_M_IX86",
                                              NULL};

typedef struct parser {
    const char *at, *end;
    int depth;
    bool failed;
} parser;

static verdict parse_or(parser *self);

verdict verdict_not(verdict value)
{
    return (verdict)(VERDICT_YES - value);
}

verdict verdict_and(verdict left, verdict right)
{
    return left < right ? left : right;
}

verdict verdict_or(verdict left, verdict right)
{
    return left > right ? left : right;
}

static bool is_listed(const char *const *list, const char *name, size_t length)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == length && memcmp(*list, name, length) == 0)
            return true;
    return false;
}

verdict verdict_defined(const char *name, size_t length)
{
    if (is_listed(defined_names, name, length))
        return VERDICT_YES;
    return is_listed(undefined_names, name, length) ? VERDICT_NO : VERDICT_MAYBE;
}

static void skip_blanks(parser *self)
{
    for (;;) {
        const char *close;

        while (self->at < self->end && isspace((unsigned char)*self->at))
            self->at++;
        if (self->end - self->at < 2 || self->at[0] != '/' || (self->at[1] != '*' && self->at[1] != '/'))
            return;
        close = self->at[1] == '/' ? NULL : memmem(self->at + 2, (size_t)(self->end - self->at) - 2, "*/", 2);
        self->at = close != NULL ? close + 2 : self->end;
    }
}

static bool accept(parser *self, const char *mark)
{
    size_t length = strlen(mark);

    skip_blanks(self);
    if ((size_t)(self->end - self->at) < length || memcmp(self->at, mark, length) != 0)
        return false;
    self->at += length;
    return true;
}

static size_t word(parser *self, const char **start)
{
    skip_blanks(self);
    *start = self->at;
    while (self->at < self->end && (isalnum((unsigned char)*self->at) || *self->at == '_'))
        self->at++;
    return (size_t)(self->at - *start);
}

static verdict parse_defined(parser *self)
{
    bool open = accept(self, "(");
    const char *name;
    size_t length = word(self, &name);

    if (open && !accept(self, ")"))
        self->failed = true;
    return verdict_defined(name, length);
}

static verdict parse_primary(parser *self)
{
    verdict value = VERDICT_MAYBE;
    const char *name;
    size_t length;

    if (accept(self, "(")) {
        if (++self->depth < MOST_DEPTH)
            value = parse_or(self);
        else
            self->failed = true;
        self->depth--;
        if (!self->failed && !accept(self, ")"))
            self->failed = true;
        return value;
    }
    length = word(self, &name);
    if (length == 0)
        self->failed = true;
    if (length == 7 && memcmp(name, "defined", 7) == 0)
        return parse_defined(self);
    if (length == 1 && (*name == '0' || *name == '1'))
        return *name == '1' ? VERDICT_YES : VERDICT_NO;
    return verdict_defined(name, length); /* as a value: those that are defined are not 0 */
}

static verdict parse_not(parser *self)
{
    bool turn = false;

    skip_blanks(self);
    while (self->end - self->at > 1 && self->at[0] == '!' && self->at[1] != '=') {
        accept(self, "!");
        turn = !turn;
        skip_blanks(self);
    }
    verdict value = parse_primary(self);
    return turn ? verdict_not(value) : value;
}

static verdict parse_and(parser *self)
{
    verdict value = parse_not(self);

    while (!self->failed && accept(self, "&&"))
        value = verdict_and(value, parse_not(self));
    return value;
}

static verdict parse_or(parser *self)
{
    verdict value = parse_and(self);

    while (!self->failed && accept(self, "||"))
        value = verdict_or(value, parse_and(self));
    return value;
}

verdict condition_of(const char *text, size_t length)
{
    parser self = {.at = text, .end = text + length};
    verdict value = parse_or(&self);

    skip_blanks(&self);
    return self.failed || self.at != self.end ? VERDICT_MAYBE : value; /* a comparison, or not an expression */
}
