/* report.h: what the files that show a failure share. */
#ifndef LAB_REPORT_H
#define LAB_REPORT_H

#include "engine.h"

#include <stdio.h>

/* names.c */
void lab_names_demangle(char *symbol, size_t size);                            /* in place */
bool lab_names_variable(uintptr_t address, char *buffer, size_t size);         /* with member and element */

/* html.c: one page, with a column for each thread. */
typedef struct lab_html_row {
    uint32_t number;
    uint32_t column;
    const char *text;
    const char *place;
    const char *call; /* of the library, in which the step was made; empty: none */
    const char *hover;
    bool inner; /* a step inside that call */
} lab_html_row;

FILE *lab_html_begin(const char *path, const char *verdict, const char *text, uint32_t columns, char names[][128]);
void lab_html_add(FILE *page, const lab_html_row *row);
void lab_html_end(FILE *page, const char *token);

#endif
