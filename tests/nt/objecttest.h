/* objecttest.h: names and attributes for the tests of the system services. */
#ifndef INTERLOCK_TESTS_OBJECTTEST_H
#define INTERLOCK_TESTS_OBJECTTEST_H

#include "support.h"

#include <interlock/nt.h>

#include <string.h>

#include "ob/obp.h"

typedef struct {
    UNICODE_STRING name;
    OBJECT_ATTRIBUTES attributes;
} test_name;

/* The attributes of an object with this name; NULL: without one. Good until the end of the enclosing block. */
#define NAMED(text, root, flags) (&name_object(&(test_name){0}, (text), (root), (flags))->attributes)

static inline test_name *name_object(test_name *self, const WCHAR *text, HANDLE root, ULONG flags)
{
    size_t length = 0;

    while (text && text[length])
        length++;
    self->name.Buffer = (WCHAR *)text;
    self->name.Length = (USHORT)(length * sizeof(WCHAR));
    self->name.MaximumLength = self->name.Length;
    InitializeObjectAttributes(&self->attributes, text ? &self->name : NULL, flags, root, NULL);
    return self;
}

static inline UNICODE_STRING counted(const WCHAR *text)
{
    test_name self;

    return name_object(&self, text, NULL, 0)->name;
}

static inline int text_equal(const UNICODE_STRING *string, const WCHAR *text)
{
    UNICODE_STRING other = counted(text);

    return string->Length == other.Length && memcmp(string->Buffer, other.Buffer, other.Length) == 0;
}

static inline HANDLE open_directory(const WCHAR *path)
{
    HANDLE directory;

    assert_int_equal(NtOpenDirectoryObject(&directory, DIRECTORY_ALL_ACCESS, NAMED(path, NULL, 0)), STATUS_SUCCESS);
    return directory;
}

static inline void close_handle(HANDLE handle)
{
    assert_int_equal(NtClose(handle), STATUS_SUCCESS);
}

/* The counts of the object and its handles, for leak checks. */
static inline OBJECT_BASIC_INFORMATION basic_information(HANDLE handle)
{
    OBJECT_BASIC_INFORMATION information;

    assert_int_equal(NtQueryObject(handle, ObjectBasicInformation, &information, sizeof(information), NULL), 0);
    return information;
}

static inline OBJECT_TYPE *type_named(const char *name)
{
    for (POBJECT_TYPE type = ObpFirstType; type; type = type->NextType)
        if (strcmp(type->Name, name) == 0)
            return type;
    return NULL;
}

static inline ULONG objects_of(const char *type)
{
    return type_named(type)->TotalNumberOfObjects;
}

static inline ULONG handles_of(const char *type)
{
    return type_named(type)->TotalNumberOfHandles;
}

#endif
