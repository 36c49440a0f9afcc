/* value.h: the memory behind an atomic access of 1 to 16 bytes, and what a read-modify-write makes of its value. */
#ifndef LAB_VALUE_H
#define LAB_VALUE_H

#include "engine.h"

#include <string.h>

static inline u128 lab_value_read(uintptr_t address, size_t size)
{
    u128 value = 0;
    switch (size) {
    case 1:
        return *(volatile uint8_t *)address;
    case 2:
        return *(volatile uint16_t *)address;
    case 4:
        return *(volatile uint32_t *)address;
    case 8:
        return *(volatile uint64_t *)address;
    default:
        memcpy(&value, (const void *)address, size);
        return value;
    }
}

static inline void lab_value_write(uintptr_t address, size_t size, u128 value)
{
    switch (size) {
    case 1:
        *(volatile uint8_t *)address = (uint8_t)value;
        break;
    case 2:
        *(volatile uint16_t *)address = (uint16_t)value;
        break;
    case 4:
        *(volatile uint32_t *)address = (uint32_t)value;
        break;
    case 8:
        *(volatile uint64_t *)address = (uint64_t)value;
        break;
    default:
        memcpy((void *)address, &value, size);
        break;
    }
}

static inline u128 lab_value_combine(lab_rmw_kind kind, u128 old, u128 operand, size_t size)
{
    u128 value = 0;
    switch (kind) {
    case RMW_EXCHANGE:
        value = operand;
        break;
    case RMW_ADD:
        value = old + operand;
        break;
    case RMW_SUB:
        value = old - operand;
        break;
    case RMW_AND:
        value = old & operand;
        break;
    case RMW_OR:
        value = old | operand;
        break;
    case RMW_XOR:
        value = old ^ operand;
        break;
    case RMW_NAND:
        value = ~(old & operand);
        break;
    }
    return size == 16 ? value : value & (((u128)1 << (8 * size)) - 1);
}

#endif
