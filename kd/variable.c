/*
 * variable.c: what is at an offset in a variable: an element, a member, or a member of an element. The debugging
 * information comes from files that the target chose, so each walk has a limit.
 */
#include "variable.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_VARIABLES 1000000
#define MOST_DEPTH 32      /* of types in types */
#define MOST_MEMBERS 10000 /* of one type */

typedef struct variable {
    kd_address begin; /* first, for kd_count_up_to */
    Dwarf_Off die;
} variable;

struct kd_variables {
    size_t count;
    variable *list; /* in the order of their addresses */
};

/* FALSE: it is not at a fixed address. gcc writes the address, clang its number in a table. */
static bool find_address(Dwarf_Die *die, Dwarf_Addr *address)
{
    Dwarf_Attribute attribute, indexed;
    Dwarf_Op *operation;
    size_t count;

    if (dwarf_attr(die, DW_AT_location, &attribute) == NULL || dwarf_getlocation(&attribute, &operation, &count) != 0 ||
        count != 1)
        return false;
    if (operation[0].atom == DW_OP_addrx)
        return dwarf_getlocation_attr(&attribute, operation, &indexed) == 0 && dwarf_formaddr(&indexed, address) == 0;
    *address = operation[0].number;
    return operation[0].atom == DW_OP_addr;
}

static void add_variables(kd_variables *all, Dwarf_Die *unit, Dwarf_Addr bias)
{
    Dwarf_Die die;
    Dwarf_Addr address;
    int more = dwarf_child(unit, &die);

    while (more == 0 && all->count < MOST_VARIABLES) {
        if (dwarf_tag(&die) == DW_TAG_variable && find_address(&die, &address)) {
            all->list = kd_grow(all->list, all->count, sizeof(variable));
            all->list[all->count++] = (variable){.begin = address + bias, .die = dwarf_dieoffset(&die)};
        }
        more = dwarf_siblingof(&die, &die);
    }
}

kd_variables *kd_read_variables(Dwfl_Module *module)
{
    kd_variables *all = kd_allocate(1, sizeof(*all));
    Dwarf_Die *unit = NULL;
    Dwarf_Addr bias;

    kd_guard_begin(KD_FILE_SECONDS, "the variables of its modules cannot be read");
    while ((unit = dwfl_module_nextcu(module, unit, &bias)) != NULL)
        add_variables(all, unit, bias);
    kd_guard_end();
    if (all->count != 0)
        qsort(all->list, all->count, sizeof(variable), kd_by_address);
    return all;
}

void kd_free_variables(kd_variables *all)
{
    if (all != NULL)
        free(all->list);
    free(all);
}

/* Without typedefs and qualifiers. FALSE: it has none. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die declared;

    return dwarf_attr_integrate(die, DW_AT_type, &attribute) != NULL && dwarf_formref_die(&attribute, &declared) != NULL &&
           dwarf_peel_type(&declared, type) == 0;
}

static bool size_of(Dwarf_Die *type, Dwarf_Word *size)
{
    return dwarf_aggregate_size(type, size) == 0 && *size != 0;
}

/* The member that contains the offset. FALSE: there is none with a name. */
static bool find_member(Dwarf_Die *type, uint64_t offset, Dwarf_Die *member, uint64_t *begin)
{
    Dwarf_Die die;
    Dwarf_Attribute attribute;
    int more = dwarf_child(type, &die);

    for (unsigned i = 0; more == 0 && i < MOST_MEMBERS; i++) {
        Dwarf_Word place = 0, size;
        Dwarf_Die own;

        if (dwarf_attr(&die, DW_AT_data_member_location, &attribute) != NULL && dwarf_formudata(&attribute, &place) != 0)
            place = UINT64_MAX;
        if (dwarf_tag(&die) == DW_TAG_member && type_of(&die, &own) && size_of(&own, &size) && place <= offset &&
            offset - place < size) {
            *member = die;
            *begin = place;
            return true;
        }
        more = dwarf_siblingof(&die, &die);
    }
    return false;
}

typedef struct path {
    char *text;
    size_t size, used;
} path;

static bool __attribute__((format(printf, 2, 3))) append(path *p, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(p->text + p->used, p->size - p->used, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= p->size - p->used)
        return false;
    p->used += (size_t)length;
    return true;
}

/* One step down. FALSE: no more is known. */
static bool descend(Dwarf_Die *type, uint64_t *offset, path *p)
{
    int tag = dwarf_tag(type);
    Dwarf_Word size;
    Dwarf_Die inner;
    uint64_t begin;

    if (tag == DW_TAG_array_type) {
        if (!type_of(type, &inner) || !size_of(&inner, &size) || !append(p, "[%llu]", (unsigned long long)(*offset / size)))
            return false;
        *offset %= size;
        *type = inner;
        return true;
    }
    if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type) {
        const char *name;
        Dwarf_Die member;

        if (!find_member(type, *offset, &member, &begin) || !type_of(&member, &inner))
            return false;
        name = dwarf_diename(&member); /* an anonymous one adds nothing */
        if (name != NULL && !append(p, ".%s", name))
            return false;
        *offset -= begin;
        *type = inner;
        return true;
    }
    return false;
}

bool kd_name_inside(const kd_variables *all, Dwfl_Module *module, kd_address begin, uint64_t *offset, char *buffer, size_t size)
{
    size_t count = kd_count_up_to(all->list, all->count, sizeof(variable), begin);
    path p = {.text = buffer, .size = size};
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);
    Dwarf_Die die, type;
    bool named = false;

    buffer[0] = '\0';
    if (count == 0 || all->list[count - 1].begin != begin || dwarf == NULL ||
        dwarf_offdie(dwarf, all->list[count - 1].die, &die) == NULL || !type_of(&die, &type))
        return false;
    for (unsigned depth = 0; (*offset != 0 || dwarf_tag(&type) == DW_TAG_array_type) && depth < MOST_DEPTH &&
                             descend(&type, offset, &p); depth++)
        named = true;
    return named;
}
