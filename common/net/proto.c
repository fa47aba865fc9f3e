/* proto.c: see proto.h. */
#include "common/net/proto.h"

#include <string.h>

#include <jansson.h>

#include "common/base/io.h"
#include "common/base/json.h"

#define JSON_MIN 2 /* {} */

/* clang-format off */
static const struct record_spec record_specs[] = {
	[REC_REQUEST] = { "request", FROM_CLIENT, JSON_MIN, PROTO_RECORD_MAX },
	[REC_REPLY]   = { "reply",   FROM_SERVER, JSON_MIN, PROTO_RECORD_MAX },
	[REC_ERROR]   = { "error",   FROM_SERVER, JSON_MIN, PROTO_RECORD_MAX },
	[REC_STDIN]   = { "stdin",   FROM_CLIENT, 1,        PROTO_RECORD_MAX },
	[REC_STDOUT]  = { "stdout",  FROM_SERVER, 1,        PROTO_RECORD_MAX },
	[REC_STDERR]  = { "stderr",  FROM_SERVER, 1,        PROTO_RECORD_MAX },
	[REC_FILE]    = { "file",    FROM_BOTH,   1,        PROTO_RECORD_MAX },
	[REC_EOF]     = { "eof",     FROM_BOTH,   0,        0                },
	[REC_SIGNAL]  = { "signal",  FROM_CLIENT, 1,        1                },
	[REC_RESIZE]  = { "resize",  FROM_CLIENT, 4,        4                },
	[REC_EXIT]    = { "exit",    FROM_SERVER, JSON_MIN, PROTO_RECORD_MAX },
	[REC_PING]    = { "ping",    FROM_BOTH,   0,        64               },
	[REC_PONG]    = { "pong",    FROM_BOTH,   0,        64               },
	[REC_TAKEN]   = { "taken",   FROM_SERVER, 8,        8                },
};
/* clang-format on */
_Static_assert(nitems(record_specs) == REC_N_TYPES, "a row per record type");

const struct record_spec *
record_spec(unsigned type)
{
	if (type >= nitems(record_specs) || record_specs[type].name == NULL)
		return NULL;
	return &record_specs[type];
}

int
record_check(unsigned type, enum record_sender from, size_t size, struct err *e)
{
	const struct record_spec *spec = record_spec(type);

	if (spec == NULL)
		return err_set(e, ERR_PROTOCOL, "unknown record type %u", type);
	if (!(spec->from & from))
		return err_set(e, ERR_PROTOCOL, "a %s does not send %s records",
		    from == FROM_CLIENT ? "client" : "node", spec->name);
	if (size < spec->min || size > spec->max)
		return err_set(e, ERR_PROTOCOL,
		    "a %s record holds %u to %u bytes, not %zu", spec->name,
		    spec->min, spec->max, size);
	return 0;
}

size_t
proto_format_error(const struct err *e, char buf[PROTO_ERROR_MAX])
{
	char text[sizeof(e->text)];
	json_t *o;
	size_t n;

	memcpy(text, e->text, sizeof(text));
	o = json_pack("{s:i, s:s, s:s}", "code", e->code, "word",
	    err_word(e->code), "text", text);
	if (o == NULL) {
		/* A path or a cut may leave half a character. */
		for (char *p = text; *p != '\0'; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
		o = json_pack("{s:i, s:s, s:s}", "code", e->code, "word",
		    err_word(e->code), "text", text);
	}
	n = o == NULL ? 0 : json_dumpb(o, buf, PROTO_ERROR_MAX, JSON_COMPACT);
	json_decref(o);
	return n;
}

void
proto_parse_error(const void *json, size_t size, struct err *e)
{
	const char *text;
	int64_t code;
	json_t *o;

	o = json_parse_object(json, size, PROTO_RECORD_MAX, e);
	if (o == NULL ||
	    json_get_int(o, "code", 1, INT16_MAX, &code, e) == -1 ||
	    json_get_string(o, "text", PROTO_RECORD_MAX, &text, e) == -1)
		err_wrap(e, "the peer failed without a readable reason");
	else
		err_set(e, (int)code, "%s", text);
	json_decref(o);
}
