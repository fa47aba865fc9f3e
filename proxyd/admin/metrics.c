/*
 * metrics.c: see metrics.h.
 *
 * Each metric is a row of a table: its name, type, help, and the field of
 * report.h's JSON that it shows; so both speak of the same numbers.
 */
#include "proxyd/admin/metrics.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/io.h"
#include "proxyd/admin/report_certs.h"

struct metric {
	const char *name, *type, *help;
	const char *field;
	double scale;
};

/* clang-format off */
static const struct metric node_metrics[] = {
	{ "muster_node_active", "gauge", "Requests a node works on.", "active", 1 },
	{ "muster_node_requests_total", "counter", "Requests given to a node.", "total", 1 },
	{ "muster_node_failures_total", "counter", "Requests a node failed.", "failed", 1 },
	{ "muster_node_retries_total", "counter", "Requests sent on to another node.", "retried", 1 },
	{ "muster_node_connects_total", "counter", "Connections opened to a node.", "connects", 1 },
	{ "muster_node_received_bytes_total", "counter", "Bytes from a node.", "bytes_in", 1 },
	{ "muster_node_sent_bytes_total", "counter", "Bytes to a node.", "bytes_out", 1 },
	{ "muster_node_latency_seconds", "gauge", "Moving average to the first byte.", "latency_us", 1e-6 },
	{ "muster_node_latency_p99_seconds", "gauge", "99 of 100 first bytes came within, over the last one to two minutes.", "p99_us", 1e-6 },
};
static const struct metric worker_metrics[] = {
	{ "muster_worker_clients", "gauge", "Client connections.", "clients", 1 },
	{ "muster_worker_tunnels", "gauge", "Open tunnels (WebSocket).", "tunnels", 1 },
	{ "muster_worker_node_connections", "gauge", "Connections to nodes.", "node_connections", 1 },
	{ "muster_worker_queued", "gauge", "Requests that wait for a node.", "queued", 1 },
	{ "muster_worker_collecting", "gauge", "Requests whose body is on its way, without a node.", "collecting", 1 },
	{ "muster_worker_delivering", "gauge", "Responses that slow clients still take, without a node.", "delivering", 1 },
	{ "muster_worker_spool_bytes", "gauge", "Bodies on disk.", "spool_bytes", 1 },
	{ "muster_worker_spool_full_total", "counter", "Bodies that found no room on disk.", "spool_full", 1 },
	{ "muster_worker_spool_errors_total", "counter", "Failed writes to disk.", "spool_errors", 1 },
	{ "muster_worker_accepted_total", "counter", "Client connections taken.", "accepted", 1 },
	{ "muster_worker_requests_total", "counter", "Requests.", "requests", 1 },
	{ "muster_worker_log_dropped_total", "counter", "Log lines lost to a slow disk.", "log_dropped", 1 },
	{ "muster_worker_refused_total", "counter", "Connections refused: their address had too many.", "refused", 1 },
	{ "muster_worker_compressed_total", "counter", "Answers compressed.", "compressed", 1 },
	{ "muster_worker_compress_in_bytes_total", "counter", "Their bytes before.", "compress_in", 1 },
	{ "muster_worker_compress_out_bytes_total", "counter", "Their bytes behind.", "compress_out", 1 },
	{ "muster_worker_compress_full_total", "counter", "Answers not compressed for want of memory.", "compress_full", 1 },
	{ "muster_worker_compress_held_bytes", "gauge", "Memory that compressors hold.", "compress_held", 1 },
	{ "muster_worker_uncounted_total", "counter", "Requests whose client the table had no room for.", "uncounted", 1 },
	{ "muster_worker_handshaking", "gauge", "TLS handshakes under way.", "handshaking", 1 },
	{ "muster_worker_handshakes_total", "counter", "TLS handshakes.", "handshakes", 1 },
	{ "muster_worker_handshakes_resumed_total", "counter", "Those that resumed a session.", "resumed", 1 },
	{ "muster_worker_handshakes_failed_total", "counter", "Those that came to nothing.", "handshakes_failed", 1 },
	{ "muster_worker_cpu_seconds_total", "counter", "CPU time.", "cpu_s", 1 },
	{ "muster_worker_resident_bytes", "gauge", "Resident memory.", "rss_kb", 1024 },
};
static const struct metric reason_metrics[] = {
	{ "muster_reasons_total", "counter", "What refused, failed or delayed requests and connections; tls_: handshakes.", "total", 1 },
};
static const struct metric site_metrics[] = {
	{ "muster_site_requests_total", "counter", "Requests for a site.", "requests", 1 },
	{ "muster_site_received_bytes_total", "counter", "Bytes from its clients.", "bytes_in", 1 },
	{ "muster_site_sent_bytes_total", "counter", "Bytes to its clients.", "bytes_out", 1 },
	{ "muster_site_node_seconds_total", "counter", "Time nodes spent on it.", "node_us", 1e-6 },
	{ "muster_site_limited_total", "counter", "Requests that its limits refused.", "limited", 1 },
	{ "muster_site_errors_total", "counter", "Answers 5xx.", "s5xx", 1 },
};
static const struct metric cert_metrics[] = {
	{ "muster_certificates", "gauge", "Certificates of sites in force.", "certificates", 1 },
	{ "muster_certificates_first_not_after_seconds", "gauge", "When the first of them ends, since 1970.", "not_after_s", 1 },
};
static const struct metric soon_metrics[] = {
	{ "muster_certificate_not_after_seconds", "gauge", "When one ends, since 1970; those that do within 30 days.", "not_after_s", 1 },
};
/* clang-format on */

static int write_certs(const struct report *, struct evbuffer *);
static void write_group(struct evbuffer *, const struct metric *, size_t n,
    json_t *rows, const char *const *labels);
static void write_sample(struct evbuffer *, const struct metric *, json_t *row,
    const char *const *labels);
static void write_up(struct evbuffer *, json_t *nodes);
static void write_label(struct evbuffer *, const char *name, json_t *value);

int
metrics_write(const struct report *r, struct evbuffer *out, struct err *e)
{
	static const char *const node_labels[] = { "node", "role", NULL };
	static const char *const worker_labels[] = { "pid", NULL };
	static const char *const reason_labels[] = { "reason", NULL };
	static const char *const site_labels[] = { "site", "owner", NULL };
	json_t *nodes = report_nodes(r), *workers = report_workers(r);
	json_t *reasons = report_reasons(r), *rest = NULL;
	json_t *sites = report_sites(r, METRICS_SITES, false, &rest);
	int rv = 0;

	if (nodes == NULL || workers == NULL || reasons == NULL ||
	    rest == NULL) {
		rv = err_set(e, ERR_LOCAL, "out of memory for metrics");
		goto out;
	}
	if (r->snapshot->head->n_sites > METRICS_SITES) {
		json_object_set_new(rest, "site", json_string("other"));
		json_array_append(sites, rest);
	}
	write_up(out, nodes);
	write_group(out, node_metrics, nitems(node_metrics), nodes,
	    node_labels);
	write_group(out, worker_metrics, nitems(worker_metrics), workers,
	    worker_labels);
	write_group(out, reason_metrics, nitems(reason_metrics), reasons,
	    reason_labels);
	write_group(out, site_metrics, nitems(site_metrics), sites,
	    site_labels);
	if (write_certs(r, out) == -1)
		rv = err_set(e, ERR_LOCAL, "out of memory for metrics");
out:
	json_decref(nodes);
	json_decref(workers);
	json_decref(reasons);
	json_decref(sites);
	json_decref(rest);
	return rv;
}

static int
write_certs(const struct report *r, struct evbuffer *out)
{
	static const char *const no_labels[] = { NULL };
	static const char *const labels[] = { "site", "kind", NULL };
	json_t *all = json_pack("[o]", report_certs(r));
	json_t *soon = report_certs_soon(r, clock_wall_ms() / 1000);
	int rv = all == NULL || soon == NULL ? -1 : 0;

	if (rv == 0) {
		write_group(out, cert_metrics, nitems(cert_metrics), all,
		    no_labels);
		write_group(out, soon_metrics, nitems(soon_metrics), soon,
		    labels);
	}
	json_decref(all);
	json_decref(soon);
	return rv;
}

static void
write_up(struct evbuffer *out, json_t *nodes)
{
	static const char *const labels[] = { "node", "role", "state", NULL };
	static const struct metric up = { "muster_node_up", "gauge",
		"Whether a node gets requests.", "up", 1 };
	json_t *row;
	size_t i;

	json_array_foreach (nodes, i, row) {
		const char *state =
		    json_string_value(json_object_get(row, "state"));

		json_object_set_new(row, "up",
		    json_integer(state != NULL && strcmp(state, "up") == 0));
	}
	write_group(out, &up, 1, nodes, labels);
}

static void
write_group(struct evbuffer *out, const struct metric *metrics, size_t n,
    json_t *rows, const char *const *labels)
{
	json_t *row;
	size_t j;

	for (size_t i = 0; i < n; i++) {
		evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n",
		    metrics[i].name, metrics[i].help, metrics[i].name,
		    metrics[i].type);
		json_array_foreach (rows, j, row)
			write_sample(out, &metrics[i], row, labels);
	}
}

static void
write_sample(struct evbuffer *out, const struct metric *m, json_t *row,
    const char *const *labels)
{
	json_t *value = json_object_get(row, m->field);

	if (value == NULL)
		return;
	evbuffer_add_printf(out, "%s{", m->name);
	for (size_t i = 0; labels[i] != NULL; i++) {
		if (i > 0)
			evbuffer_add(out, ",", 1);
		write_label(out, labels[i], json_object_get(row, labels[i]));
	}
	/* A double would round what is above 2^53. */
	if (json_is_integer(value) && m->scale >= 1)
		evbuffer_add_printf(out, "} %lld\n",
		    (long long)json_integer_value(value) * (long long)m->scale);
	else
		evbuffer_add_printf(out, "} %.15g\n",
		    json_number_value(value) * m->scale);
}

/* Names are checked where they enter, so that none needs an escape; an owner
 * may hold any printable byte. */
static void
write_label(struct evbuffer *out, const char *name, json_t *value)
{
	if (json_is_integer(value)) {
		evbuffer_add_printf(out, "%s=\"%lld\"", name,
		    (long long)json_integer_value(value));
		return;
	}
	evbuffer_add_printf(out, "%s=\"", name);
	for (const char *p = json_is_string(value) ? json_string_value(value) :
						     "";
	     *p != '\0'; p++)
		evbuffer_add_printf(out,
		    *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
	evbuffer_add(out, "\"", 1);
}
