/*
 * lexer.h: the tokens of a C or C++ source that a compiler for Windows would see.
 *
 * Comments and continued lines are removed. Branches of #if that are certainly not for Windows are skipped; if that is
 * not certain, all branches are kept. The source may be arbitrary bytes: every byte belongs to some token, or to none.
 */
#ifndef INTERLOCK_PORT_LEXER_H
#define INTERLOCK_PORT_LEXER_H

#include <stddef.h>
#include <stdint.h>

typedef enum token_kind {
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING,    /* the text without prefix and quotes */
    TOKEN_CHARACTER,
    TOKEN_MARK,      /* one character, or -> or :: */
    TOKEN_INCLUDE,   /* the name of the header */
    TOKEN_DEFINE,    /* the name of the macro; its definition follows */
    TOKEN_IF,        /* #if, #else or #elif, #endif around kept tokens */
    TOKEN_ELSE,
    TOKEN_ENDIF,
} token_kind;

typedef struct token {
    uint32_t start; /* in the text of the source */
    uint32_t length;
    uint32_t line : 30;
    uint32_t first : 1; /* in its line, in the first column */
    uint8_t kind;
} token;

typedef struct source {
    char *text; /* without continued lines; ends with a zero */
    size_t length;
    token *tokens;
    size_t count;
    size_t lines;
} source;

#define SOURCE_MOST_CONDITIONS 256 /* deeper ones are not seen */
#define SOURCE_MOST_BYTES (16u << 20)

/* Takes the text, which has room for one byte more and is at most SOURCE_MOST_BYTES long. */
void source_read(source *result, char *text, size_t length);
void source_free(source *dead);

#endif
