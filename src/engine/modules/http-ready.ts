import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, Duration, HttpUrl } from "../step/fields.ts";
import { httpFunction } from "../step/fragments/http.ts";
import { sh } from "../step/sh.ts";

const Status = z.number().int().min(100).max(599);

/**
 * ```yaml
 * http.ready: { url: "http://127.0.0.1:8080/healthz", status: [200], contains: ok }
 * ```
 * The node sends the request by the first of these programs that it has: curl, GNU wget, BusyBox wget, for http also bash.
 * BusyBox wget checks no certificates, so over TLS it needs `insecure`; a client certificate needs curl. Redirects are not
 * followed, except by BusyBox wget. The request is repeated every 2 s, 30 times, unless the step has `retry`.
 */
export const httpReady = defineModule({
  name: "http.ready",
  summary: "Waits until a URL answers as it should, as seen from the node.",
  alsoKnownAs: ["uri", "http.wait_for_successful_query", "wait_for", "curl", "url"],
  args: z
    .strictObject({
      url: HttpUrl.describe("The URL to request."),
      status: z
        .union([Status.transform((status) => [status]), z.array(Status).min(1)])
        .default([200])
        .describe("The wanted status, or a list of them."),
      contains: z.string().min(1).optional().describe("A text that the answer must hold, in one line."),
      insecure: z.boolean().default(false).describe("Accept any certificate."),
      caFile: AbsolutePath.optional().describe("The CA to trust, a file on the node."),
      certFile: AbsolutePath.optional().describe("A client certificate, a file on the node."),
      keyFile: AbsolutePath.optional().describe("The client certificate's key, a file on the node."),
      limit: Duration.default(5).describe("How long one attempt may take."),
    })
    .refine(
      ({ certFile, keyFile }) => (certFile === undefined) === (keyFile === undefined),
      "certFile and keyFile need each other",
    ),
  refusals: ["TOOL_MISSING"],
  step: ({ url, status, contains, ...request }) => {
    const wantedStatus = status.join(" or ");
    return {
      effects: { writes: [], reads: [{ is: "system" }] },
      want: { status: wantedStatus, ...(contains === undefined ? {} : { contains }) },
      probe: sh`${httpFunction(url, request)}
http
case ${` ${status.join(" ")} `} in *" $status "*) status=${wantedStatus} ;; esac
fact status "$status"
${
  contains === undefined
    ? sh``
    : sh`if grep -qF -e ${contains} "$K_TMP/body" 2>/dev/null; then fact contains ${contains}
else fact contains "not in: $(head -c 200 "$K_TMP/body" 2>/dev/null | tr -d '\000')"; fi`
}`,
      retry: { attempts: 31, interval: 2 },
      timeout: 120 + 31 * request.limit,
    };
  },
});
