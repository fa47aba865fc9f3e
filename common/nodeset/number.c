/* number.c: see number.h. */
#include "common/nodeset/number.h"

#include <assert.h>

static const uint64_t power[NUMBER_DIGITS + 1] = {
	1,
	10,
	100,
	1000,
	10000,
	100000,
	1000000,
	10000000,
	100000000,
	1000000000,
	10000000000,
	100000000000,
	1000000000000,
	10000000000000,
	100000000000000,
	1000000000000000,
	10000000000000000,
	100000000000000000,
	1000000000000000000,
};

/* How many digit strings are shorter than len: 10 + 100 + ..., whose decimal
 * digits are all ones. */
static uint64_t
shorter(size_t len)
{
	return (power[len] - 10) / 9;
}

uint64_t
number_parse(const char *digits, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value * 10 + (uint64_t)(digits[i] - '0');
	return number_make(value, len);
}

uint64_t
number_make(uint64_t value, size_t len)
{
	assert(len >= 1 && len <= NUMBER_DIGITS && value < power[len]);
	return shorter(len) + value;
}

size_t
number_len(uint64_t number)
{
	size_t len = 1;

	while (len < NUMBER_DIGITS && number >= shorter(len + 1))
		len++;
	return len;
}

uint64_t
number_value(uint64_t number)
{
	return number - shorter(number_len(number));
}

uint64_t
number_last(size_t len)
{
	return shorter(len) + power[len] - 1;
}

uint64_t
number_power(size_t n)
{
	return power[n];
}

size_t
number_format(uint64_t number, char buf[NUMBER_DIGITS])
{
	size_t len = number_len(number);
	uint64_t value = number - shorter(len);

	for (size_t i = len; i-- > 0; value /= 10)
		buf[i] = (char)('0' + value % 10);
	return len;
}

int
number_text_cmp(uint64_t a, uint64_t b)
{
	size_t a_len = number_len(a), b_len = number_len(b);
	uint64_t x = number_value(a) * power[NUMBER_DIGITS - a_len];
	uint64_t y = number_value(b) * power[NUMBER_DIGITS - b_len];

	if (x != y)
		return x < y ? -1 : 1;
	return (a_len > b_len) - (a_len < b_len);
}
