/* lexer.c: from bytes to tokens. */
#include "lexer.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "condition.h"

/* A branch is taken if its own condition may hold and no earlier one certainly did. */
typedef struct branch {
    verdict before; /* of the earlier branches: certainly none, certainly one, not known */
    bool taken;
} branch;

typedef struct lexer {
    source *out;
    size_t capacity;
    const char *at, *end;
    uint32_t *splices; /* where a continued line was joined, in order */
    size_t splice_count, next_splice;
    uint32_t line;
    bool at_start;     /* of a line: blanks at most came before */
    branch branches[SOURCE_MOST_CONDITIONS];
    size_t depth;      /* may exceed the table: what is deeper counts as taken */
    size_t skipped;    /* branches around here that are not taken */
} lexer;

/* Joins continued lines in place, and remembers where. */
static void join_lines(lexer *self, char *text, size_t length)
{
    size_t to = 0, capacity = 0;

    for (size_t from = 0; from < length; from++) {
        size_t after = from + 1;

        if (text[from] == '\\' && after < length && text[after] == '\r')
            after++;
        if (text[from] != '\\' || after >= length || text[after] != '\n') {
            text[to++] = text[from];
            continue;
        }
        if (self->splice_count == capacity) {
            capacity = capacity * 2 + 64;
            self->splices = realloc(self->splices, capacity * sizeof(*self->splices));
            if (self->splices == NULL)
                abort();
        }
        self->splices[self->splice_count++] = (uint32_t)to;
        from = after;
    }
    text[to] = '\0';
    self->out->length = to;
}

static void advance(lexer *self, size_t bytes)
{
    for (; bytes != 0 && self->at < self->end; bytes--, self->at++) {
        uint32_t here = (uint32_t)(self->at - self->out->text);

        while (self->next_splice < self->splice_count && self->splices[self->next_splice] <= here) {
            self->next_splice++;
            self->line++;
        }
        if (*self->at == '\n') {
            self->line++;
            self->at_start = true;
        }
    }
}

static char peek(const lexer *self, size_t ahead)
{
    return ahead < (size_t)(self->end - self->at) ? self->at[ahead] : '\0';
}

static void emit(lexer *self, token_kind kind, const char *start, size_t length, uint32_t line)
{
    source *out = self->out;
    bool first = start == out->text || start[-1] == '\n';

    if (self->skipped != 0)
        return;
    if (out->count == self->capacity) {
        self->capacity = self->capacity * 2 + 1024;
        out->tokens = realloc(out->tokens, self->capacity * sizeof(*out->tokens));
        if (out->tokens == NULL)
            abort();
    }
    out->tokens[out->count++] = (token){.start = (uint32_t)(start - out->text), .length = (uint32_t)length,
                                        .line = line & 0x3fffffff, .first = first, .kind = (uint8_t)kind};
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
    return is_name_start(c) || isdigit((unsigned char)c);
}

static size_t name_length(const lexer *self, size_t from)
{
    size_t length = from;

    while (is_name(peek(self, length)))
        length++;
    return length - from;
}

static size_t number_length(const lexer *self)
{
    size_t length = 1;

    for (;; length++) {
        char c = peek(self, length), before = peek(self, length - 1);

        if (is_name(c) || c == '.' || (c == '\'' && is_name(peek(self, length + 1))))
            continue;
        if ((c == '+' || c == '-') && strchr("eEpP", before) != NULL)
            continue;
        return length;
    }
}

/* The length of a string or character that begins at the quote: up to the other quote, or to the end of the line. */
static size_t quoted_length(const lexer *self, char quote)
{
    size_t length = 1;

    while (self->at + length < self->end && peek(self, length) != quote && peek(self, length) != '\n')
        length += peek(self, length) == '\\' && peek(self, length + 1) != '\n' ? 2 : 1;
    if (self->at + length > self->end)
        length = (size_t)(self->end - self->at);
    return length;
}

static void lex_quoted(lexer *self, char quote)
{
    size_t length = quoted_length(self, quote);

    emit(self, quote == '"' ? TOKEN_STRING : TOKEN_CHARACTER, self->at + 1, length - 1, self->line);
    advance(self, length + (peek(self, length) == quote));
}

/* At the quote of R"tag(text)tag". */
static void lex_raw(lexer *self)
{
    char close[20] = ")";
    size_t tag = 0;
    const char *found;

    while (tag < 16 && peek(self, tag + 1) != '(' && peek(self, tag + 1) != '\0')
        tag++;
    if (peek(self, tag + 1) != '(') {
        lex_quoted(self, '"');
        return;
    }
    memcpy(close + 1, self->at + 1, tag);
    close[tag + 1] = '"';
    found = memmem(self->at, (size_t)(self->end - self->at), close, tag + 2);
    emit(self, TOKEN_STRING, self->at + tag + 2, found != NULL && found > self->at + tag + 2 ? (size_t)(found - self->at) - tag - 2 : 0,
         self->line);
    advance(self, found != NULL ? (size_t)(found - self->at) + tag + 2 : (size_t)(self->end - self->at));
}

/* A name, or the prefix of a string. */
static void lex_name(lexer *self)
{
    size_t length = name_length(self, 0);
    char next = peek(self, length);
    bool prefix = length <= 3 && (next == '"' || next == '\'') && strspn(self->at, "LuU8R") >= length;
    bool raw = prefix && next == '"' && self->at[length - 1] == 'R';

    if (!prefix)
        emit(self, TOKEN_NAME, self->at, length, self->line);
    advance(self, length);
    if (raw)
        lex_raw(self);
    else if (prefix)
        lex_quoted(self, next);
}

static void skip_comment(lexer *self)
{
    const char *found = self->at + 2 < self->end
                            ? memmem(self->at + 2, (size_t)(self->end - self->at) - 2, "*/", 2) : NULL;

    advance(self, found != NULL ? (size_t)(found - self->at) + 2 : (size_t)(self->end - self->at));
}

static void skip_line(lexer *self)
{
    const char *found = memchr(self->at, '\n', (size_t)(self->end - self->at));

    advance(self, (size_t)((found != NULL ? found : self->end) - self->at));
}

static bool skip_blank(lexer *self)
{
    bool start = self->at_start;

    if (peek(self, 0) == '/' && peek(self, 1) == '*')
        skip_comment(self);
    else if (peek(self, 0) == '/' && peek(self, 1) == '/')
        skip_line(self);
    else if (self->at < self->end && (isspace((unsigned char)*self->at) || *self->at == '\0'))
        advance(self, 1);
    else
        return false;
    self->at_start = self->at_start || start;
    return true;
}

/* Conditions. */

static void begin_branch(lexer *self, verdict condition)
{
    branch *inner = self->depth < SOURCE_MOST_CONDITIONS ? &self->branches[self->depth] : NULL;

    self->depth++;
    if (inner == NULL)
        return;
    *inner = (branch){.before = condition, .taken = condition != VERDICT_NO};
    emit(self, TOKEN_IF, self->at, 0, self->line);
    self->skipped += !inner->taken;
}

static void next_branch(lexer *self, verdict condition)
{
    branch *inner = self->depth != 0 && self->depth <= SOURCE_MOST_CONDITIONS ? &self->branches[self->depth - 1] : NULL;
    bool taken;

    if (inner == NULL)
        return;
    taken = inner->before != VERDICT_YES && condition != VERDICT_NO;
    self->skipped -= !inner->taken;
    emit(self, TOKEN_ELSE, self->at, 0, self->line);
    self->skipped += !taken;
    inner->taken = taken;
    inner->before = verdict_or(inner->before, condition);
}

static void end_branch(lexer *self)
{
    branch *inner = self->depth != 0 && self->depth <= SOURCE_MOST_CONDITIONS ? &self->branches[self->depth - 1] : NULL;

    if (self->depth != 0)
        self->depth--;
    if (inner == NULL)
        return;
    self->skipped -= !inner->taken;
    emit(self, TOKEN_ENDIF, self->at, 0, self->line);
}

/* Directives. The place is after the name of the directive. */

static void lex_include(lexer *self)
{
    size_t length = 1;
    char close;

    while (peek(self, 0) == ' ' || peek(self, 0) == '\t')
        advance(self, 1);
    close = peek(self, 0) == '<' ? '>' : '"';
    if (peek(self, 0) == '<' || peek(self, 0) == '"') {
        while (self->at + length < self->end && peek(self, length) != close && peek(self, length) != '\n')
            length++;
        emit(self, TOKEN_INCLUDE, self->at + 1, length - 1, self->line);
    }
    skip_line(self);
}

static void lex_define(lexer *self)
{
    while (peek(self, 0) == ' ' || peek(self, 0) == '\t')
        advance(self, 1);
    if (is_name_start(peek(self, 0))) {
        size_t length = name_length(self, 0);

        emit(self, TOKEN_DEFINE, self->at, length, self->line);
        advance(self, length);
    }
}

static verdict read_condition(lexer *self)
{
    const char *start = self->at;

    skip_line(self);
    return condition_of(start, (size_t)(self->at - start));
}

static bool is(const char *name, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(name, word, length) == 0;
}

static verdict opposite_if(bool turn, verdict value)
{
    return turn ? verdict_not(value) : value;
}

static void lex_directive(lexer *self)
{
    const char *name;
    size_t length;

    advance(self, 1);
    while (peek(self, 0) == ' ' || peek(self, 0) == '\t')
        advance(self, 1);
    name = self->at;
    length = name_length(self, 0);
    advance(self, length);
    if (is(name, length, "define") || is(name, length, "pragma"))
        return is(name, length, "define") ? lex_define(self) : (void)0;
    if (is(name, length, "include") || is(name, length, "include_next") || is(name, length, "import"))
        return lex_include(self);
    if (is(name, length, "if"))
        return begin_branch(self, read_condition(self));
    if (is(name, length, "elif"))
        return next_branch(self, read_condition(self));
    if (is(name, length, "else"))
        next_branch(self, VERDICT_YES);
    else if (is(name, length, "endif"))
        end_branch(self);
    else if (is(name, length, "ifdef") || is(name, length, "ifndef")) {
        size_t blanks = strspn(self->at, " \t");

        return begin_branch(self, opposite_if(name[2] == 'n', verdict_defined(self->at + blanks, name_length(self, blanks))));
    }
    skip_line(self); /* #error and others may have any text */
}

static void lex_mark(lexer *self)
{
    size_t length = (peek(self, 0) == '-' && peek(self, 1) == '>') || (peek(self, 0) == ':' && peek(self, 1) == ':') ? 2 : 1;

    emit(self, TOKEN_MARK, self->at, length, self->line);
    advance(self, length);
}

static void lex_token(lexer *self)
{
    char c = peek(self, 0);

    if (c == '#' && self->at_start) {
        self->at_start = false;
        lex_directive(self);
        return;
    }
    self->at_start = false;
    if (is_name_start(c))
        lex_name(self);
    else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(self, 1)))) {
        size_t length = number_length(self);

        emit(self, TOKEN_NUMBER, self->at, length, self->line);
        advance(self, length);
    } else if (c == '"' || c == '\'')
        lex_quoted(self, c);
    else
        lex_mark(self);
}

/* Sources of Windows may be UTF-16. What is not ASCII becomes a byte of a name. */
static size_t narrow(char *text, size_t length)
{
    size_t to = 0;

    if (length < 2 || memcmp(text, "\xff\xfe", 2) != 0)
        return length;
    for (size_t from = 2; from + 1 < length; from += 2)
        text[to++] = text[from + 1] == '\0' ? text[from] : '\x80';
    return to;
}

void source_read(source *result, char *text, size_t length)
{
    lexer *self = calloc(1, sizeof(*self));

    if (self == NULL)
        abort();
    *result = (source){.text = text};
    self->out = result;
    join_lines(self, text, narrow(text, length));
    self->at = text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
    self->end = text + result->length;
    self->line = 1;
    self->at_start = true;
    while (self->at < self->end)
        if (!skip_blank(self))
            lex_token(self);
    result->lines = self->line - (result->length == 0 || text[result->length - 1] == '\n');
    free(self->splices);
    free(self);
}

void source_free(source *dead)
{
    free(dead->text);
    free(dead->tokens);
}
