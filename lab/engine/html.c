/* html.c: the trace as one self-contained page: a table with a column for each thread. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><style>\n"
    ":root{color-scheme:light dark;--line:#d0d4da;--dim:#687078;--mark:#b3261e;--head:#eef0f3;--inner:#5b6470}\n"
    "@media(prefers-color-scheme:dark){:root{--line:#3a4048;--dim:#98a0aa;--mark:#ff897d;--head:#23272d;--inner:#a7b0bb}}\n"
    "body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem}\n"
    "h1{font-size:1.2rem;color:var(--mark)}pre{white-space:pre-wrap}\n"
    "table{border-collapse:collapse;font:13px/1.4 ui-monospace,monospace}\n"
    "th{position:sticky;top:0;background:var(--head);text-align:left}\n"
    "th,td{border-left:1px solid var(--line);padding:.1rem .6rem;vertical-align:top}\n"
    "td.n{color:var(--dim);text-align:right;border:0}tr.s td{border-top:1px dashed var(--line)}\n"
    ".p{color:var(--dim)}.i{color:var(--inner);padding-left:1.6rem}.c{font-weight:600}.f td{color:var(--mark);font-weight:600}\n"
    "body.folded tr.i2{display:none}[title]{cursor:help}\n"
    "</style></head><body>\n";

static void escape(FILE *page, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", page);
            break;
        case '>':
            fputs("&gt;", page);
            break;
        case '&':
            fputs("&amp;", page);
            break;
        case '"':
            fputs("&quot;", page);
            break;
        default:
            fputc(*text, page);
            break;
        }
    }
}

static uint32_t column_count, last_column;

FILE *lab_html_begin(const char *path, const char *verdict, const char *text, uint32_t columns, char names[][128])
{
    FILE *page = fopen(path, "w");

    if (page == NULL) {
        perror(path);
        return NULL;
    }
    column_count = columns;
    last_column = UINT32_MAX;
    fprintf(page, head, lab->scenario->Name);
    fputs("<h1>", page);
    escape(page, lab->scenario->Name);
    fprintf(page, ": %s</h1>\n<pre>", verdict);
    escape(page, text);
    fputs("</pre>\n<p><label><input type=\"checkbox\" onchange=\"document.body.classList.toggle('folded',this.checked)\"> calls "
          "only</label></p>\n<table><thead><tr><th></th>", page);
    for (uint32_t i = 0; i < columns; i++) {
        fputs("<th>", page);
        escape(page, names[i]);
        fputs("</th>", page);
    }
    fputs("</tr></thead><tbody>\n", page);
    return page;
}

static void add_cells(FILE *page, uint32_t column, const char *class, const char *hover, const char *text, const char *place)
{
    for (uint32_t i = 0; i < column_count; i++) {
        if (i != column) {
            fputs("<td></td>", page);
            continue;
        }
        fprintf(page, "<td class=\"%s\" title=\"", class);
        escape(page, hover);
        fputs("\">", page);
        escape(page, text);
        fputs(" <span class=\"p\">", page);
        escape(page, place);
        fputs("</span></td>", page);
    }
    fputs("</tr>\n", page);
}

void lab_html_add(FILE *page, const lab_html_row *row)
{
    const char *class = row->column != last_column ? "s" : "";

    last_column = row->column;
    if (row->call[0] != '\0') {
        fprintf(page, "<tr class=\"%s\"><td class=\"n\"></td>", class);
        add_cells(page, row->column, "c", row->hover, row->call, "");
        class = "";
    }
    fprintf(page, "<tr class=\"%s%s%s\"><td class=\"n\">", class, row->inner ? " i2" : "", row->number == 0 ? " f" : "");
    if (row->number != 0)
        fprintf(page, "%u", row->number);
    fputs("</td>", page);
    add_cells(page, row->column, row->inner ? "i" : "", row->hover, row->text, row->place);
}

void lab_html_end(FILE *page, const char *token)
{
    fputs("</tbody></table>\n<p>Run it again: <code>--replay ", page);
    escape(page, token);
    fputs("</code></p></body></html>\n", page);
    fclose(page);
}
