/*
 * number.h: the numbers in names.  A number is its digits, zeros included:
 * 1, 01 and 001 are three numbers.
 *
 * All digit strings of 1 to NUMBER_DIGITS digits are counted through, first
 * by length, then by value: 0..9, 00..99, 000..999 and so on.  So a range
 * like 08-11, or the part of 8-11 with as many digits, is an interval of
 * plain integers, and sets of numbers need no care for zeros.
 */
#ifndef MUSTER_NUMBER_H
#define MUSTER_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define NUMBER_DIGITS 18

/* len digits, 1 to NUMBER_DIGITS of them. */
uint64_t number_parse(const char *digits, size_t len);

/* The number of this value with so many digits. */
uint64_t number_make(uint64_t value, size_t len);

size_t number_len(uint64_t number);
uint64_t number_value(uint64_t number);

/* The greatest number with so many digits: 9, 99, 999. */
uint64_t number_last(size_t len);

/* 10 to the power of n, n at most NUMBER_DIGITS. */
uint64_t number_power(size_t n);

/* Writes the digits, no NUL; returns how many. */
size_t number_format(uint64_t number, char buf[NUMBER_DIGITS]);

/* Order as text ("10" before "9"), as strcmp. */
int number_text_cmp(uint64_t a, uint64_t b);

#endif
