/*
 * describe.c: which variable of a program is at an address: "queue.slots[2].value" rather than "queue+0x28". For the
 * reports of the explorer, whose programs are linked without a library for debugging information.
 */
#include "describe.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef INTERLOCK_HAS_DWARF

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define DEEPEST 16
#define LONGEST 400

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;

    if (dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attribute), type) == NULL)
        return false;
    return dwarf_peel_type(type, type) == 0;
}

static bool location_of(Dwarf_Die *die, Dwarf_Addr *address)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *operations;
    size_t count;

    if (dwarf_getlocation(dwarf_attr(die, DW_AT_location, &attribute), &operations, &count) != 0 || count != 1 ||
        operations[0].atom != DW_OP_addr)
        return false;
    *address = operations[0].number;
    return true;
}

static Dwarf_Word member_offset(Dwarf_Die *member)
{
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;

    if (dwarf_attr(member, DW_AT_data_member_location, &attribute) != NULL)
        dwarf_formudata(&attribute, &offset);
    return offset;
}

static bool describe_inside(Dwarf_Die *type, Dwarf_Word offset, char *text, size_t size, int depth);

static void __attribute__((format(printf, 3, 4))) append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

static bool describe_member(Dwarf_Die *type, Dwarf_Word offset, char *text, size_t size, int depth)
{
    Dwarf_Die member;

    if (dwarf_child(type, &member) != 0)
        return false;
    do {
        Dwarf_Die own;
        Dwarf_Word bytes, start;
        int tag = dwarf_tag(&member);

        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || dwarf_hasattr(&member, DW_AT_external) ||
            !type_of(&member, &own) || dwarf_aggregate_size(&own, &bytes) != 0)
            continue;
        start = member_offset(&member);
        if (offset < start || offset >= start + bytes)
            continue;
        const char *name = tag == DW_TAG_member ? dwarf_diename(&member) : NULL;
        if (name != NULL)
            append(text, size, ".%s", name);
        return describe_inside(&own, offset - start, text, size, depth + 1);
    } while (dwarf_siblingof(&member, &member) == 0);
    return false;
}

static bool describe_element(Dwarf_Die *type, Dwarf_Word offset, char *text, size_t size, int depth)
{
    Dwarf_Die element;
    Dwarf_Word whole, bytes, count = 1;
    Dwarf_Die range;

    if (!type_of(type, &element) || dwarf_aggregate_size(&element, &bytes) != 0 || bytes == 0 ||
        dwarf_aggregate_size(type, &whole) != 0)
        return false;
    if (dwarf_child(type, &range) != 0)
        return false;
    /* The number of elements of each but the first dimension. */
    Dwarf_Word sizes[DEEPEST];
    int dimensions = 0;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word number = 0;

        if (dwarf_tag(&range) != DW_TAG_subrange_type || dimensions == DEEPEST)
            continue;
        if (dwarf_attr(&range, DW_AT_count, &attribute) != NULL)
            dwarf_formudata(&attribute, &number);
        else if (dwarf_attr(&range, DW_AT_upper_bound, &attribute) != NULL && dwarf_formudata(&attribute, &number) == 0)
            number++;
        sizes[dimensions++] = number;
    } while (dwarf_siblingof(&range, &range) == 0);
    for (int i = 1; i < dimensions; i++)
        count *= sizes[i];
    Dwarf_Word index = offset / bytes;
    for (int i = 0; i < dimensions; i++) {
        append(text, size, "[%lu]", count != 0 ? index / count : 0);
        index = count != 0 ? index % count : 0;
        count = i + 1 < dimensions && sizes[i + 1] != 0 ? count / sizes[i + 1] : 1;
    }
    return describe_inside(&element, offset % bytes, text, size, depth + 1);
}

/* The first byte of a structure of the library stands for the object. */
static bool is_object_of_library(Dwarf_Die *type, Dwarf_Word offset)
{
    const char *file = offset == 0 ? dwarf_decl_file(type) : NULL;
    return file != NULL && strstr(file, "/interlock/") != NULL;
}

/* Parts of an opaque object are named by their offset. */
static bool describe_inside(Dwarf_Die *type, Dwarf_Word offset, char *text, size_t size, int depth)
{
    int tag = dwarf_tag(type);
    bool known = false;

    if (is_object_of_library(type, offset))
        return true;
    if (depth < DEEPEST && (tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type))
        known = (offset != 0 || depth != 0 || tag == DW_TAG_structure_type || tag == DW_TAG_class_type) &&
                describe_member(type, offset, text, size, depth);
    else if (depth < DEEPEST && tag == DW_TAG_array_type)
        known = describe_element(type, offset, text, size, depth);
    if (!known && offset != 0)
        append(text, size, "+%#lx", offset);
    return true;
}

/* Opaque objects are not divided: locks, and internals of the standard library. */
static void shorten(char *text)
{
    static const char *const inner[] = {".__data", ".__size", ".__align", "._M_", ".__", ".Ptr", ".Value"};

    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
        char *found = strstr(text, inner[i]);
        if (found != NULL)
            *found = '\0';
    }
}

static bool describe_die(Dwarf_Die *die, Dwarf_Addr address, const char *scope, char *text, size_t size)
{
    Dwarf_Die type;
    Dwarf_Addr start;
    Dwarf_Word bytes;
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));

    if (dwarf_tag(die) != DW_TAG_variable || name == NULL || !location_of(die, &start) || address < start ||
        !type_of(die, &type) || dwarf_aggregate_size(&type, &bytes) != 0 || address - start >= bytes)
        return false;
    snprintf(text, size, "%s%s%s", scope, scope[0] != '\0' ? "::" : "", name);
    describe_inside(&type, address - start, text, size, 0);
    shorten(text);
    return true;
}

/* Also variables of functions and namespaces. */
static bool search(Dwarf_Die *parent, Dwarf_Addr address, const char *scope, char *text, size_t size, int depth)
{
    Dwarf_Die child;

    if (depth == DEEPEST || dwarf_child(parent, &child) != 0)
        return false;
    do {
        int tag = dwarf_tag(&child);
        const char *name = dwarf_diename(&child);
        char inner[LONGEST];

        if (describe_die(&child, address, scope, text, size))
            return true;
        if (tag != DW_TAG_namespace && tag != DW_TAG_subprogram && tag != DW_TAG_lexical_block)
            continue;
        if (name != NULL)
            snprintf(inner, sizeof(inner), "%.150s%s%.150s", scope, scope[0] != '\0' ? "::" : "", name);
        else
            snprintf(inner, sizeof(inner), "%s", scope);
        if (search(&child, address, inner, text, size, depth + 1))
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

static bool search_units(Dwarf *debug, Dwarf_Addr address, char *text, size_t size)
{
    Dwarf_Off offset = 0, next;
    size_t header;

    while (dwarf_nextcu(debug, offset, &next, &header, NULL, NULL, NULL) == 0) {
        Dwarf_Die unit;

        if (dwarf_offdie(debug, offset + header, &unit) != NULL && search(&unit, address, "", text, size, 0))
            return true;
        offset = next;
    }
    return false;
}

int describe_variable(const char *program, const char *address)
{
    char text[LONGEST] = "";
    int file = open(program, O_RDONLY | O_CLOEXEC);
    Dwarf *debug = file >= 0 ? dwarf_begin(file, DWARF_C_READ) : NULL;
    bool found = debug != NULL && search_units(debug, strtoul(address, NULL, 16), text, sizeof(text));

    if (found)
        printf("%s\n", text);
    if (debug != NULL)
        dwarf_end(debug);
    if (file >= 0)
        close(file);
    return found ? 0 : 1;
}

#else

int describe_variable(const char *program, const char *address)
{
    fprintf(stderr, "interlock: built without libdw: the variable of %s at %s is not known\n", program, address);
    return 1;
}

#endif
