/* names.c: see names.h. */
#include "proxyd/static/names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base/io.h"

#define EXTENSION_MAX 16

/* Plain files: what browsers load beside a page, and what people put up to
 * be fetched.  What is not here goes to the node. */
static const char plain[] =
    "css js mjs map json xml txt html htm csv ics vcf pdf webmanifest "
    "png jpg jpeg gif webp avif svg ico bmp tif tiff "
    "woff woff2 ttf otf eot "
    "mp3 ogg oga ogv wav m4a mp4 m4v webm mov flac "
    "zip gz tgz bz2 xz 7z rar tar iso dmg exe msi apk deb rpm wasm "
    "doc docx xls xlsx ppt pptx odt ods odp rtf epub";

/* Programs, wherever the extension stands: AddHandler goes by every one of
 * "x.php.jpg".  Never plain, not even when a site says so: their source
 * would be shown. */
static const char scripts[] =
    "php php3 php4 php5 php7 php8 phtml pht phps phar inc cgi fcgi fpl pl "
    "pm py pyc rb lua sh bash asp aspx ashx asmx cer jsp jspx jspa do "
    "shtml stm shtm cfm cfc var asis";

#define END(text, why)                      \
	{                                   \
		text, sizeof(text) - 1, why \
	}

/* What editors and people leave behind; the text is the end of a name. */
static const struct {
	const char *end;
	size_t len;
	const char *why;
} backups[] = {
	END("~", "an editor's copy of the version before"),
	END("#", "an editor's copy of what was not saved"),
	END(".bak", "a copy made by hand: often of a program"),
	END(".old", "the same"),
	END(".orig", "the original of a merge or a patch"),
	END(".rej", "the part of a patch that did not fit"),
	END(".save", "what nano leaves when it is killed"),
	END(".swp", "vim's open file"),
	END(".swo", "the same, second"),
	END(".tmp", "half of something"),
	END(".dpkg-old", "a configuration before an upgrade"),
	END(".dpkg-dist", "and the one that was not taken"),
};

const char *const name_indexes[] = {
	"index.php",
	"index.php3",
	"index.php4",
	"index.php5",
	"index.php7",
	"index.php8",
	"index.phtml",
	"index.cgi",
	"index.fcgi",
	"index.pl",
	"index.py",
	"index.rb",
	"index.shtml",
	"index.asp",
	"index.aspx",
	"index.jsp",
	"index.cfm",
	"default.php",
	"default.html",
	"default.htm",
	"home.html",
	"home.htm",
	"index.xhtml",
	"index.htm",
	NULL,
};

/* Whether a list of words split by one space has this one, in any case. */
static bool
listed(const char *list, const char *word, size_t len)
{
	char lower[EXTENSION_MAX + 1];

	if (len == 0 || len > EXTENSION_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		lower[i] = (char)tolower((unsigned char)word[i]);
	lower[len] = '\0';
	for (const char *p = list; (p = strstr(p, lower)) != NULL; p += len)
		if ((p == list || p[-1] == ' ') &&
		    (p[len] == ' ' || p[len] == '\0'))
			return true;
	return false;
}

static bool
is_backup(const char *path, size_t len)
{
	int last = len > 0 ? tolower((unsigned char)path[len - 1]) : 0;

	for (size_t i = 0; i < nitems(backups); i++) {
		const char *end = backups[i].end;
		size_t n = backups[i].len;

		/* The last byte tells nearly all of them apart. */
		if (end[n - 1] == last && len >= n &&
		    strncasecmp(path + len - n, end, n) == 0)
			return true;
	}
	return false;
}

static bool
is_hidden(const char *path, size_t len)
{
	static const char known[] = ".well-known/"; /* RFC 8615 */

	for (size_t i = 0; i < len; i++)
		if (path[i] == '.' && (i == 0 || path[i - 1] == '/') &&
		    !(i == 0 && strncmp(path, known, sizeof(known) - 1) == 0))
			return true;
	return is_backup(path, len);
}

/* Whether one of the extensions in "a.b.c" is a program's. */
static bool
is_script(const char *name)
{
	const char *dot = strchr(name, '.');

	while (dot != NULL) {
		size_t n = strcspn(dot + 1, ".");

		if (listed(scripts, dot + 1, n))
			return true;
		dot = strchr(dot + 1, '.');
	}
	return false;
}

static const char *
last_segment(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash != NULL ? slash + 1 : path;
}

const char *
name_extension(const char *path, size_t len)
{
	const char *dot = strrchr(last_segment(path, len), '.');

	return dot != NULL ? dot + 1 : "";
}

enum name_kind
name_judge(const char *path, size_t len, const char *extensions)
{
	const char *ext = name_extension(path, len);
	size_t n = strlen(ext);

	if (is_hidden(path, len))
		return NAME_HIDDEN;
	if (n == 0 || is_script(last_segment(path, len)))
		return NAME_NODE;
	return listed(*extensions != '\0' ? extensions : plain, ext, n) ?
	    NAME_PLAIN :
	    NAME_NODE;
}
