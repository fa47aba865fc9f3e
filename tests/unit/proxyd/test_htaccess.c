/* test_htaccess.c: which lines of an .htaccess can change an answer. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "common/base/io.h"
#include "proxyd/static/htaccess.h"
#include "proxyd/static/htaccess_cache.h"

#define NO     HTACCESS_HARMLESS
#define DIR    HTACCESS_DIRECTORY
#define YES    HTACCESS_DECIDES
#define IF_PHP "<IfModule mod_php.c>\n"
#define END    "</IfModule>\n"

static const struct {
	const char *text;
	enum htaccess verdict;
} cases[] = {
	{ "", NO },
	{ "\n\n  \n", NO },
	{ "# Require all denied\n", NO },
	{ "   # x", NO },
	{ "# a \\\nRequire all denied", NO }, /* one long comment */
	{ "# a \\\r\nRequire all denied", NO },
	{ "Server\\\nSignature Off", NO },
	{ "ServerSignature Off", NO },
	{ "serversignature OFF\r\n", NO },
	{ "\tServerSignature\t\tEMail  \n", NO },
	{ "ServerSignature", YES }, /* a 500 from the node */
	{ "ServerSignature maybe", YES },
	{ "Options -Indexes", NO },
	{ "Options +indexes", NO },
	{ "Options Indexes", YES },
	{ "Options -Indexes +FollowSymLinks", YES },
	{ "Options -FollowSymLinks", YES },
	{ "Options None", YES },
	{ "DirectoryIndex index.php", DIR },
	{ "DirectoryIndex", YES },
	{ "DirectorySlash Off", DIR },
	{ "FallbackResource /index.php", DIR },
	{ "FallbackResource a b", YES },
	{ "LimitRequestBody 1024", NO },
	{ "LimitRequestBody x", YES },
	{ "php_value memory_limit 64M", YES }, /* without mod_php: a 500 */
	{ IF_PHP "php_value memory_limit 64M\n" END, NO },
	{ "<IfModule !mod_php.c>\nphp_value a b\n" END, YES },
	{ "<IfModule mod_x.c>\nphp_value a b\n" END, YES },
	{ "<IfModule mod_x.c>\n" IF_PHP "php_flag a on\n" END END, NO },
	{ "<ifmodule mod_php7.c>\n  php_flag a on\n</IFMODULE>", NO },
	{ "<Files a.css>\nServerSignature Off\n</Files>", NO },
	{ "<Files a.css>\nRequire all denied\n</Files>", YES },
	{ "<Files ~ \"a\">\nServerSignature Off\n</Files>", YES },
	{ "<Files>\n</Files>", YES },
	{ "<Files a.css>\n", YES },
	{ "</Files>", YES },
	{ "<Files a.css>\n</IfModule>", YES },
	{ "<Files a.css\n</Files>", YES },
	{ "<FilesMatch a>\n</FilesMatch>", YES },
	{ "<If true>\n</If>", YES },
	{ "<RequireAny>\n</RequireAny>", YES },
	{ "<>", YES },
	{ "<", YES },
	{ "Require all granted", YES },
	{ "Deny from all", YES },
	{ "Order allow,deny", YES },
	{ "RewriteEngine On", YES },
	{ "RewriteEngine Off", YES },
	{ "<IfModule mod_rewrite.c>\nRewriteEngine off\n" END, NO },
	{ "<IfModule mod_rewrite.c>\nRewriteEngine on\n" END, YES },
	{ "RewriteRule ^ - [F]", YES },
	{ "Redirect /a /b", YES },
	{ "RedirectMatch a /b", YES },
	{ "Header set X y", YES },
	{ "<IfModule mod_headers.c>\nHeader set X y\n" END, YES },
	{ "ErrorDocument 404 /x", YES },
	{ "AddType text/x .css", YES },
	{ "AddHandler x .css", YES },
	{ "SetHandler x", YES },
	{ "ForceType text/plain", YES },
	{ "AddDefaultCharset utf-8", YES },
	{ "AddOutputFilterByType DEFLATE text/css", YES },
	{ "ExpiresActive On", YES },
	{ "AuthType Basic", YES },
	{ "SetEnvIf a b c", YES },
	{ "FileETag None", YES },
	{ "Include x", YES },
	{ "NoSuchThing x", YES },
	{ "ServerSignatureX Off", YES },
	{ "ServerSignatur Off", YES },
	{ "\xef\xbb\xbfServerSignature Off", YES },
	{ "ServerSignature Off\nDirectoryIndex a\n", DIR },
	{ "DirectoryIndex a\nDeny from all\n", YES },
};

static void
lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < nitems(cases); i++)
		if (htaccess_judge(cases[i].text, strlen(cases[i].text)) !=
		    cases[i].verdict)
			fail_msg("wrong: %s", cases[i].text);
}

static void
bounds(void **state)
{
	static char text[HTACCESS_MAX + 1];
	char deep[9 * 13 + 1] = "";

	(void)state;
	assert_int_equal(htaccess_judge("a\0b", 3), YES);
	memset(text, '\n', sizeof(text));
	assert_int_equal(htaccess_judge(text, HTACCESS_MAX), NO);
	assert_int_equal(htaccess_judge(text, HTACCESS_MAX + 1), YES);
	memset(text, '#', 3000); /* a line too long to be read */
	assert_int_equal(htaccess_judge(text, HTACCESS_MAX), YES);
	for (int i = 0; i < 9; i++)
		memcpy(deep + (ptrdiff_t)i * 13, "<IfModule a>\n", 14);
	assert_int_equal(htaccess_judge(deep, strlen(deep)), YES);
}

static void
the_cache_forgets_what_changed(void **state)
{
	static struct htaccess_cache c;
	struct stat st = { .st_dev = 1,
		.st_ino = 7,
		.st_size = 10,
		.st_ctim = { 1000, 5 } };
	enum htaccess v = YES;

	(void)state;
	assert_false(htaccess_cache_find(&c, &st, &v));
	htaccess_cache_put(&c, &st, NO, 1001); /* changed just now */
	assert_false(htaccess_cache_find(&c, &st, &v));
	htaccess_cache_put(&c, &st, NO, 1002);
	assert_true(htaccess_cache_find(&c, &st, &v));
	assert_int_equal(v, NO);
	st.st_ctim.tv_nsec = 6;
	assert_false(htaccess_cache_find(&c, &st, &v));
	st.st_ctim.tv_nsec = 5;
	st.st_size = 11;
	assert_false(htaccess_cache_find(&c, &st, &v));
	st.st_size = 10;
	st.st_dev = 2;
	assert_false(htaccess_cache_find(&c, &st, &v));
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(bounds),
		cmocka_unit_test(the_cache_forgets_what_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
