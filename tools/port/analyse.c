/*
 * analyse.c: which functions of Windows a source uses, and what will not work as on Windows.
 *
 * There is no parser for declarations: a rule checks a few tokens around its own. Names in comments, strings, other
 * namespaces and members of classes must not be mistaken for functions of Windows.
 */
#include "tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENT_TOKENS 2000

const look_kind look_kinds[LOOK_COUNT] = {
    [LOOK_LONG_INTERLOCKED] = {"long-interlocked", "long passed to Interlocked functions",
                               "long has 64 bits: with interlock cc these functions change all of it, with other compilers half. Declare it LONG."},
    [LOOK_SCAN_LONG] = {"scan-long", "%ld and similar in scanf", "It stores 64 bits into a 32-bit LONG or DWORD: use %d, %u."},
    [LOOK_PRINT_LONG] = {"print-long", "%ld and similar", "With interlock cc it prints 32 bits, even of a 64-bit long. For other compilers use %d, %u; -Wformat finds them."},
    [LOOK_LONG_LIMITS] = {"long-limits", "limits of long", "They are the limits of 64 bits, not of LONG and DWORD."},
    [LOOK_SIZE_OF_LONG] = {"size-of-long", "sizeof(long)", "It is 8, not 4."},
    [LOOK_REDECLARED] = {"redeclared", "prototypes of Windows functions", "With long for LONG or DWORD they conflict: include windows.h."},
    [LOOK_REDECLARED_TYPE] = {"redeclared-type", "types of Windows defined with long", "They conflict: include windows.h."},
    [LOOK_POSIX_NAME] = {"posix-name", "functions with POSIX names over Win32",
                         "They replace the C library's own in the whole process: give them a prefix, or hide them."},
    [LOOK_DLL_MAIN] = {"dll-main", "DllMain", "Nothing calls it here: see docs/porting-win32.md."},
    [LOOK_TLS_CALLBACK] = {"tls-callback", "TLS callbacks", "Linux's loader has none: see docs/porting-win32.md."},
    [LOOK_EXCEPTION] = {"exception", "structured exceptions", "Raised exceptions are caught, faults of the processor are not."},
    [LOOK_FAULT] = {"fault", "faults as exceptions", "A fault ends the process, or is a signal."},
    [LOOK_ASSEMBLY] = {"assembly", "Microsoft's inline assembly", "gcc and clang have another syntax."},
    [LOOK_ALIGN_STRUCT] = {"align-struct", "__declspec(align) before struct", "It has no effect there: write it after struct."},
    [LOOK_SHARED_NAME] = {"shared-name", "objects shared by name", "Names reach processes of the same user; Global\\ reaches other users only where an administrator allows it."},
    [LOOK_MODULE] = {"module", "LoadLibrary, GetProcAddress", "They know only the library's own modules and functions."},
    [LOOK_WIDE_LIBRARY] = {"wide-library", "wide strings and streams of C++", "With a wchar_t of 16 bits they must not be used."},
};

/* A place in the tokens of a source. */
typedef struct analysis {
    tree *tree;
    const source *text;
    uint32_t file;
    bool is_header;
    name_set long_names; /* of this file */
    int depth;           /* of braces, without those of extern "C" and namespaces */
    int outer[SOURCE_MOST_CONDITIONS]; /* the depth at each #if */
    size_t outer_count;
} analysis;

static const token *at(const analysis *self, size_t i)
{
    static const token none = {.kind = TOKEN_MARK};

    return i < self->text->count ? &self->text->tokens[i] : &none;
}

static const char *text_of(const analysis *self, size_t i)
{
    return self->text->text + at(self, i)->start;
}

static bool is(const analysis *self, size_t i, const char *word)
{
    size_t length = strlen(word);

    return at(self, i)->length == length && (at(self, i)->kind == TOKEN_NAME || at(self, i)->kind == TOKEN_MARK) &&
           memcmp(text_of(self, i), word, length) == 0;
}

static bool is_one_of(const analysis *self, size_t i, const char *const *words)
{
    while (*words != NULL && !is(self, i, *words))
        words++;
    return *words != NULL;
}

static bool is_name(const analysis *self, size_t i)
{
    return at(self, i)->kind == TOKEN_NAME && at(self, i)->length != 0;
}

static bool begins(const analysis *self, size_t i, const char *beginning)
{
    size_t length = strlen(beginning);

    return at(self, i)->length >= length && memcmp(text_of(self, i), beginning, length) == 0;
}

static place place_of(const analysis *self, size_t i)
{
    return (place){.file = self->file, .line = at(self, i)->line};
}

/* One a line is enough. */
static void note(analysis *self, look kind, size_t i)
{
    places *list = &self->tree->looks[kind];
    const place *last = list->count != 0 ? &list->place[list->count - 1] : NULL;

    if (last == NULL || last->file != self->file || last->line != at(self, i)->line)
        tree_add_place(list, place_of(self, i));
}

/* The place of the parenthesis that closes the one at i; the number of tokens if there is none near. */
static size_t closing(const analysis *self, size_t i)
{
    int depth = 0;

    for (size_t end = i + MOST_ARGUMENT_TOKENS; i < self->text->count && i < end; i++) {
        depth += is(self, i, "(");
        depth -= is(self, i, ")");
        if (depth == 0)
            return i;
    }
    return self->text->count;
}

/* Names of functions. */

static bool is_member(const analysis *self, size_t i)
{
    if (i == 0)
        return false;
    if (is(self, i - 1, ".") || is(self, i - 1, "->"))
        return true;
    return is(self, i - 1, "::") && i >= 2 && (is_name(self, i - 2) || is(self, i - 2, ">"));
}

static const char *const before_expressions[] = {"return", "else", "do", "case", "throw", "co_return", "co_await", "co_yield",
                                                 "and", "or", "not", "sizeof", "if", "while", "defined", NULL};

/* A name followed by (: a type before it makes it a declaration. */
static bool is_declared(const analysis *self, size_t i)
{
    if (i == 0 || !is(self, i + 1, "("))
        return false;
    if (is_name(self, i - 1))
        return !is_one_of(self, i - 1, before_expressions);
    return self->depth == 0 && (is(self, i - 1, "*") || is(self, i - 1, "&") || is(self, i - 1, ">"));
}

static bool is_passed(const analysis *self, size_t i)
{
    static const char *const before[] = {"=", ",", "(", ")", "{", "&", "?", ":", NULL}, *const after[] = {",", ")", ";", "}", ":", NULL};

    return i != 0 && is_one_of(self, i - 1, before) && is_one_of(self, i + 1, after) && isupper((unsigned char)*text_of(self, i));
}

static bool is_posix_name(const analysis *self, size_t i)
{
    static const char *const names[] = {"nanosleep", "clock_gettime", "clock_nanosleep", "clock_getres", "gettimeofday", "usleep",
                                        "sleep", "sched_yield", "sched_get_priority_min", "sched_get_priority_max", NULL};

    return begins(self, i, "pthread_") || begins(self, i, "sem_") || is_one_of(self, i, names);
}

static bool is_function_named(const analysis *self, size_t i, const char *base)
{
    size_t length = strlen(base), rest = at(self, i)->length - length;

    return begins(self, i, base) && (rest == 0 || (rest == 1 && strchr("AW", text_of(self, i)[length]) != NULL));
}

static void look_at_call(analysis *self, size_t i)
{
    static const char *const shared[] = {"OpenEvent", "OpenMutex", "OpenSemaphore", "OpenWaitableTimer", "OpenFileMapping", NULL};
    static const char *const modules[] = {"LoadLibrary", "GetProcAddress", NULL};

    for (size_t n = 0; shared[n] != NULL; n++)
        if (is_function_named(self, i, shared[n]))
            note(self, LOOK_SHARED_NAME, i);
    for (size_t n = 0; modules[n] != NULL; n++)
        if (is_function_named(self, i, modules[n]))
            note(self, LOOK_MODULE, i);
}

/* A declaration or definition outside functions. */
static void look_at_declaration(analysis *self, size_t i, size_t function)
{
    size_t close = closing(self, i + 1);

    if (self->depth != 0)
        return;
    if (is(self, close + 1, ";")) {
        if (function != sdk_function_count && sdk_functions[function].there)
            note(self, LOOK_REDECLARED, i);
        return;
    }
    if (function != sdk_function_count && is(self, close + 1, "{"))
        self->tree->own[function] = true;
    if (is_posix_name(self, i) && is(self, close + 1, "{"))
        note(self, LOOK_POSIX_NAME, i);
}

static void look_at_name(analysis *self, size_t i)
{
    size_t function = tree_find(sdk_functions, sdk_function_count, text_of(self, i), at(self, i)->length);

    if (is_member(self, i))
        return;
    if (is_declared(self, i)) {
        look_at_declaration(self, i, function);
        return;
    }
    if (function == sdk_function_count || (!is(self, i + 1, "(") && !is_passed(self, i)))
        return;
    tree_add_place(&self->tree->functions[function], place_of(self, i));
    look_at_call(self, i);
}

/* long. */

/* Neither long long nor long double. */
static bool is_long(const analysis *self, size_t i)
{
    return is(self, i, "long") && !is(self, i + 1, "long") && !is(self, i + 1, "double") && (i == 0 || !is(self, i - 1, "long"));
}

static void add_long_name(analysis *self, size_t i)
{
    name_set_add(&self->long_names, text_of(self, i), at(self, i)->length);
    if (self->is_header || self->depth == 0)
        name_set_add(&self->tree->long_names, text_of(self, i), at(self, i)->length);
}

/* long volatile a, b = 1; */
static void declare_longs(analysis *self, size_t i)
{
    static const char *const parts[] = {"volatile", "const", "unsigned", "signed", "int", "*", "&", NULL};
    static const char *const ends[] = {";", ",", "=", "[", ")", ":", "{", NULL};

    for (i++; is_one_of(self, i, parts); i++)
        ;
    for (; is_name(self, i) && is_one_of(self, i + 1, ends); i += 2) {
        add_long_name(self, i);
        if (!is(self, i + 1, ","))
            return;
    }
}

static void add_candidate(tree *all, place where, const char *name, size_t length)
{
    char *copy = strndup(name, length);

    if (all->candidate_count == all->candidate_capacity) {
        all->candidate_capacity = all->candidate_capacity * 2 + 64;
        all->candidates = realloc(all->candidates, all->candidate_capacity * sizeof(*all->candidates));
    }
    if (all->candidates == NULL || copy == NULL)
        abort();
    all->candidates[all->candidate_count++] = (candidate){.at = where, .name = copy};
}

/* The first argument of an Interlocked function: a cast to long *, or the variable, its last name outside brackets. */
static void look_at_interlocked(analysis *self, size_t i)
{
    size_t close = closing(self, i + 1), last = 0;
    int parentheses = 0, brackets = 0;

    for (size_t j = i + 2; j < close && !(is(self, j, ",") && parentheses == 0); j++) {
        parentheses += is(self, j, "(") - is(self, j, ")");
        brackets += is(self, j, "[") - is(self, j, "]");
        if (is_long(self, j)) {
            note(self, LOOK_LONG_INTERLOCKED, i);
            return;
        }
        if (is_name(self, j) && brackets == 0)
            last = j;
    }
    if (last != 0)
        add_candidate(self->tree, place_of(self, i), text_of(self, last), at(self, last)->length);
}

/* numeric_limits<unsigned long> */
static bool is_limit_of_long(const analysis *self, size_t i)
{
    static const char *const limits[] = {"LONG_MAX", "LONG_MIN", "ULONG_MAX", NULL};

    if (is_one_of(self, i, limits))
        return true;
    if (!is(self, i, "numeric_limits") || !is(self, i + 1, "<"))
        return false;
    for (size_t j = i + 2; j < i + 6 && !is(self, j, ">"); j++)
        if (is_long(self, j))
            return true;
    return false;
}

static void look_at_long(analysis *self, size_t i)
{
    if (is_long(self, i))
        declare_longs(self, i);
    if (is_limit_of_long(self, i))
        note(self, LOOK_LONG_LIMITS, i);
    if (is(self, i, "sizeof") && is(self, i + 1, "(") &&
        (is_long(self, i + 2) || (is(self, i + 2, "unsigned") && is_long(self, i + 3))))
        note(self, LOOK_SIZE_OF_LONG, i);
    if ((begins(self, i, "Interlocked") || begins(self, i, "_Interlocked")) && is(self, i + 1, "(") &&
        memmem(text_of(self, i), at(self, i)->length, "64", 2) == NULL)
        look_at_interlocked(self, i);
}

/* typedef unsigned long DWORD; */
static void look_at_typedef(analysis *self, size_t i)
{
    static const char *const types[] = {"LONG", "ULONG", "DWORD", "BOOL", "PLONG", "LPLONG", "PULONG", "PDWORD", "LPDWORD",
                                        "NTSTATUS", "HRESULT", NULL};
    bool has_long = false;

    for (size_t j = i + 1; j < i + 12 && !is(self, j, ";"); j++) {
        has_long = has_long || is_long(self, j);
        if (has_long && is_one_of(self, j, types) && (is(self, j + 1, ";") || is(self, j + 1, ",")))
            note(self, LOOK_REDECLARED_TYPE, j);
    }
}

/* Text. */

/* %ld, %-8lu, %08lx; not %lld, %ls, %lf. */
static bool has_long_conversion(const char *text, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++) {
        if (text[i] != '%')
            continue;
        for (i++; i < length && strchr("0123456789.*+- #'", text[i]) != NULL && text[i] != '\0'; i++)
            ;
        if (i + 1 < length && text[i] == 'l' && strchr("diuxXo", text[i + 1]) != NULL && text[i + 1] != '\0')
            return true;
    }
    return false;
}

/* If the token is one of the first arguments of a call: the name of the function. */
static bool is_argument_of(const analysis *self, size_t i, const char *part)
{
    for (size_t back = 1; back <= 6 && back <= i && !is(self, i - back, ";"); back++)
        if (is_name(self, i - back) && is(self, i - back + 1, "(") &&
            memmem(text_of(self, i - back), at(self, i - back)->length, part, strlen(part)) != NULL)
            return true;
    return false;
}

static void look_at_string(analysis *self, size_t i)
{
    if (has_long_conversion(text_of(self, i), at(self, i)->length))
        note(self, is_argument_of(self, i, "scanf") ? LOOK_SCAN_LONG : LOOK_PRINT_LONG, i);
    if (begins(self, i, "Global\\\\"))
        note(self, LOOK_SHARED_NAME, i);
    if (begins(self, i, ".CRT$XL") || begins(self, i, "_tls_used"))
        note(self, LOOK_TLS_CALLBACK, i);
}

/* Words with a meaning of their own. */

static bool is_assembly(const analysis *self, size_t i)
{
    static const char *const gnu[] = {"(", "volatile", "__volatile__", "__volatile", "goto", "inline", NULL};

    return (is(self, i, "__asm") || is(self, i, "_asm")) && !is_one_of(self, i + 1, gnu);
}

/* __declspec(align(8)) struct */
static bool is_aligned_struct(const analysis *self, size_t i)
{
    static const char *const kinds[] = {"struct", "union", "class", NULL};

    return is(self, i, "__declspec") && is(self, i + 1, "(") && is(self, i + 2, "align") &&
           is_one_of(self, closing(self, i + 1) + 1, kinds);
}

static void look_at_word(analysis *self, size_t i)
{
    static const char *const exceptions[] = {"__try", "__except", "__finally", NULL};
    static const char *const faults[] = {
        "EXCEPTION_ACCESS_VIOLATION", "STATUS_ACCESS_VIOLATION", "EXCEPTION_STACK_OVERFLOW", "STATUS_STACK_OVERFLOW",
        "EXCEPTION_INT_DIVIDE_BY_ZERO", "EXCEPTION_IN_PAGE_ERROR", "EXCEPTION_GUARD_PAGE", "STATUS_GUARD_PAGE_VIOLATION",
        "EXCEPTION_ILLEGAL_INSTRUCTION", "EXCEPTION_DATATYPE_MISALIGNMENT", "_set_se_translator", NULL};
    static const char *const callbacks[] = {"PIMAGE_TLS_CALLBACK", "IMAGE_TLS_DIRECTORY", "_tls_used", NULL};
    static const char *const mains[] = {"DllMain", "_DllMainCRTStartup", "DllEntryPoint", NULL};
    static const char *const wide[] = {"wstring", "wstring_view", "wcout", "wcerr", "wcin", "wstringstream", "wostringstream",
                                       "wistringstream", "wofstream", "wifstream", "wregex", NULL};
    static const struct {
        const char *const *words;
        look kind;
    } rules[] = {{exceptions, LOOK_EXCEPTION}, {faults, LOOK_FAULT}, {callbacks, LOOK_TLS_CALLBACK}, {mains, LOOK_DLL_MAIN},
                 {wide, LOOK_WIDE_LIBRARY}};

    for (size_t n = 0; n < sizeof(rules) / sizeof(rules[0]); n++)
        if (is_one_of(self, i, rules[n].words))
            note(self, rules[n].kind, i);
    if (is_assembly(self, i))
        note(self, LOOK_ASSEMBLY, i);
    if (is_aligned_struct(self, i))
        note(self, LOOK_ALIGN_STRUCT, i);
    if (is(self, i, "typedef"))
        look_at_typedef(self, i);
}

/* extern "C" { and namespace x { do not count; their closing braces are not distinguished from others, so the depth
   stays at 0. */
static bool opens_scope(const analysis *self, size_t i)
{
    if (i != 0 && at(self, i - 1)->kind == TOKEN_STRING)
        return i >= 2 && is(self, i - 2, "extern");
    for (size_t back = 1; back <= 8 && back <= i; back++) {
        if (is(self, i - back, "namespace"))
            return true;
        if (!is_name(self, i - back) && !is(self, i - back, "::"))
            return false;
    }
    return false;
}

/* Braces; both branches of a condition begin at the same depth. A brace in the first column ends a function. */
static void follow_depth(analysis *self, size_t i)
{
    const token *here = at(self, i);

    if (here->kind == TOKEN_IF && self->outer_count < SOURCE_MOST_CONDITIONS)
        self->outer[self->outer_count++] = self->depth;
    else if (here->kind == TOKEN_ELSE && self->outer_count != 0)
        self->depth = self->outer[self->outer_count - 1];
    else if (here->kind == TOKEN_ENDIF && self->outer_count != 0)
        self->outer_count--;
    else if (is(self, i, "{"))
        self->depth += !opens_scope(self, i);
    else if (is(self, i, "}"))
        self->depth = self->depth == 0 || here->first ? 0 : self->depth - 1;
}

static void look_at_include(analysis *self, size_t i)
{
    const char *name = text_of(self, i);
    size_t length = at(self, i)->length, header = tree_find(sdk_headers, sdk_header_count, name, length);
    char lower[64];

    if (header == sdk_header_count && length < sizeof(lower)) {
        for (size_t c = 0; c < length; c++)
            lower[c] = (char)tolower((unsigned char)name[c]);
        header = tree_find(sdk_headers, sdk_header_count, lower, length);
    }
    if (header == sdk_header_count)
        return;
    tree_add_place(&self->tree->headers[header], place_of(self, i));
}

static void look_at_define(analysis *self, size_t i)
{
    size_t function = tree_find(sdk_functions, sdk_function_count, text_of(self, i), at(self, i)->length);

    if (function != sdk_function_count)
        self->tree->own[function] = true;
}

static void resolve_candidates(analysis *self, size_t first)
{
    for (size_t i = first; i < self->tree->candidate_count; i++) {
        candidate *here = &self->tree->candidates[i];

        here->is_long_here = name_set_has(&self->long_names, here->name, strlen(here->name));
    }
}

void analyse_source(tree *all, const source *text, uint32_t file, bool is_header)
{
    analysis self = {.tree = all, .text = text, .file = file, .is_header = is_header};
    size_t first_candidate = all->candidate_count;

    for (size_t i = 0; i < text->count; i++) {
        follow_depth(&self, i);
        if (is_name(&self, i)) {
            look_at_long(&self, i);
            look_at_word(&self, i);
            look_at_name(&self, i);
        } else if (at(&self, i)->kind == TOKEN_STRING)
            look_at_string(&self, i);
        else if (at(&self, i)->kind == TOKEN_INCLUDE)
            look_at_include(&self, i);
        else if (at(&self, i)->kind == TOKEN_DEFINE)
            look_at_define(&self, i);
    }
    resolve_candidates(&self, first_candidate);
    name_set_free(&self.long_names);
}

static int compare_places(const void *left, const void *right)
{
    const place *a = left, *b = right;

    return a->file != b->file ? (a->file < b->file ? -1 : 1) : (a->line > b->line) - (a->line < b->line);
}

static void decide_candidates(tree *self)
{
    places *list = &self->looks[LOOK_LONG_INTERLOCKED];

    for (size_t i = 0; i < self->candidate_count; i++)
        if (self->candidates[i].is_long_here ||
            name_set_has(&self->long_names, self->candidates[i].name, strlen(self->candidates[i].name)))
            tree_add_place(list, self->candidates[i].at);
    if (list->count != 0)
        qsort(list->place, list->count, sizeof(*list->place), compare_places);
}

/* If the tree has a header of that name, that one is meant. */
static void drop_own_headers(tree *self)
{
    for (size_t file = 0; file < self->file_count; file++) {
        const char *slash = strrchr(self->files[file], '/'), *name = slash != NULL ? slash + 1 : self->files[file];
        size_t header = tree_find(sdk_headers, sdk_header_count, name, strlen(name));

        if (header != sdk_header_count)
            self->headers[header].count = 0;
    }
}

static void mark_files(bool *marks, const places *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < lists[i].count; p++)
            marks[lists[i].place[p].file] = true;
}

static void count_windows_files(tree *self)
{
    bool *marks = calloc(self->file_count + 1, sizeof(*marks));

    if (marks == NULL)
        abort();
    mark_files(marks, self->functions, sdk_function_count);
    mark_files(marks, self->headers, sdk_header_count);
    for (size_t file = 0; file < self->file_count; file++)
        self->windows_files += marks[file];
    free(marks);
}

void analyse_end(tree *self)
{
    decide_candidates(self);
    for (size_t i = 0; i < sdk_function_count; i++)
        if (self->own[i])
            self->functions[i].count = 0; /* calls of the tree's own function */
    drop_own_headers(self);
    count_windows_files(self);
}
