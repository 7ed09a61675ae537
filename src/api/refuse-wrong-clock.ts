import { request } from "node:https";
import { KcoreError } from "#errors/problem.ts";
import { backdateMs } from "#pki/issue.ts";
import type { Credentials } from "./client.ts";
import { parseEndpoint } from "./endpoint.ts";

/** The time that a controller has for its answer. */
const answerWithinMs = 5_000;

interface ClockOptions extends Pick<Credentials, "cert" | "key"> {
  readonly endpoints: readonly string[];
}

/**
 * Refuses if this machine's clock differs from that of every controller that answers: a certificate signed by this clock would begin too
 * late, or end early. Ten minutes are allowed, since certificates are backdated by as much. If no controller answers, nothing is refused.
 * @throws KcoreError CLOCK_DIFFERS
 */
export async function refuseWrongClock({ endpoints, ...own }: ClockOptions): Promise<void> {
  const answers = await Promise.all(
    endpoints.map(async (endpoint) => ({ endpoint, here: Date.now(), there: await clockAt(endpoint, own) })),
  );
  const clocks = answers.flatMap(({ there, ...at }) => (there === undefined ? [] : { ...at, there }));
  const [first] = clocks;
  if (!first || clocks.some(({ here, there }) => Math.abs(here - there) <= backdateMs)) return;
  const { endpoint, here, there } = first;
  throw new KcoreError({
    code: "CLOCK_DIFFERS",
    message: `this machine's clock says ${timeOf(here)}, that of controller ${endpoint} ${timeOf(there)}: nothing is signed`,
    hint: "compare both with date, and set the wrong one: timedatectl set-ntp true",
  });
}

/** A controller's time; undefined without an answer. The controller's certificate is not verified: by a wrong clock a valid one may fail. */
function clockAt(endpoint: string, own: Pick<Credentials, "cert" | "key">): Promise<number | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(answerWithinMs);
    const probe = request({
      ...parseEndpoint(endpoint),
      ...own,
      path: "/healthz",
      rejectUnauthorized: false,
      agent: false,
      signal,
    });
    probe.once("error", () => resolve(undefined));
    probe.once("response", (response) => {
      const time = Date.parse(response.headers.date ?? "");
      resolve(Number.isNaN(time) ? undefined : time);
      response.destroy();
    });
    probe.end();
  });
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
